import Foundation
import Testing

@testable import OutboundHTTP

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@Suite("URLSession over sockets", .timeLimit(.minutes(5)))
struct URLSessionTransportTests {
  @Test("Method, headers and body arrive, and so does the answer")
  func roundTrip() async throws {
    try await RawServer.run { request, connection in
      let echo = [
        request.line, request.header("x-key") ?? "-", request.header("content-type") ?? "-",
        request.header("cookie") ?? "-", String(decoding: request.body, as: UTF8.self),
      ]
      try await connection.reply(
        "201 Created",
        headers: ["X-Answer: a", "Set-Cookie: c=1"],
        body: echo.joined(separator: "|")
      )
    } _: { server in
      let client = URLSessionTransport()
      var headers: OutboundHeaders = ["X-Key": "k", "Content-Type": "application/json"]
      headers.append("x-key", "l")
      let request = OutboundRequest(
        method: "PATCH",
        url: OutboundURL.make(base: server.unproxiedURL, path: ["a b"], query: [("q", "ü&")]),
        headers: headers,
        body: Array("{\"a\":1}".utf8)
      )
      // Twice, so that a stored cookie would be sent.
      for _ in 1...2 {
        let response = try await client.send(request)

        #expect(response.status == 201)
        #expect(response.headers["x-ANSWER"] == "a")
        let line = "PATCH /a%20b?q=%C3%BC%26 HTTP/1.1"
        #expect(response.text == "\(line)|k,l|application/json|-|{\"a\":1}")
      }
    }
  }

  @Test("A body without a type is not called a form")
  func untypedBody() async throws {
    try await RawServer.run { request, connection in
      try await connection.reply(body: request.header("content-type") ?? "-")
    } _: { server in
      let request = OutboundRequest(method: "POST", url: server.unproxiedURL, body: [1])
      let response = try await URLSessionTransport().send(request)

      #expect(response.text == "application/octet-stream")
    }
  }

  @Test("Bodiless methods send none", arguments: ["GET", "DELETE", "POST", "HEAD"])
  func methods(method: String) async throws {
    try await RawServer.run { request, connection in
      try await connection.reply(
        headers: ["X-Line: \(request.line) \(request.header("content-length") ?? "0")"],
        body: method == "HEAD" ? "" : "body"
      )
    } _: { server in
      let response = try await URLSessionTransport().send(
        OutboundRequest(method: method, url: server.unproxiedURL + "/x")
      )

      #expect(response.headers["x-line"] == "\(method) /x HTTP/1.1 0")
      #expect(response.text == (method == "HEAD" ? "" : "body"))
    }
  }

  @Test("A connection serves one request after another, unless each asks for its own")
  func connections() async throws {
    for (usesFreshConnection, count) in [(false, 1), (true, 5)] {
      try await RawServer.run { _, connection in
        try await connection.reply(body: "ok")
      } _: { server in
        let client = URLSessionTransport()
        let request = OutboundRequest(
          url: server.unproxiedURL,
          usesFreshConnection: usesFreshConnection
        )
        for _ in 0..<5 {
          let response = try await client.send(request)
          #expect(response.text == "ok")
        }

        #expect(server.connections.now == count)
      }
    }
  }

  @Test("A connection of its own is closed after its request")
  func freshConnectionEnds() async throws {
    let (ended, end) = AsyncStream<Void>.makeStream()
    try await RawServer.run { _, connection in
      try await connection.reply(body: "ok")
      for await _ in connection.closed {}
      end.finish()
    } _: { server in
      let client = URLSessionTransport()
      let request = OutboundRequest(url: server.unproxiedURL, usesFreshConnection: true)
      let response = try await client.send(request)
      #expect(response.text == "ok")

      for await _ in ended {}
      withExtendedLifetime(client) {}
    }
  }

  @Test("Many requests at once get their own answers, on shared connections and on their own")
  func concurrency() async throws {
    try await RawServer.run { request, connection in
      try await connection.reply(body: request.line)
    } _: { server in
      let client = URLSessionTransport()
      let right = try await withThrowingTaskGroup(of: Bool.self) { group in
        for number in 0..<100 {
          group.addTask {
            let request = OutboundRequest(
              url: "\(server.unproxiedURL)/\(number)",
              usesFreshConnection: number % 4 == 0
            )
            return try await client.send(request).text == "GET /\(number) HTTP/1.1"
          }
        }
        return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
      }

      #expect(right == 100)
    }
  }

  @Test("A server that is not there cannot be connected to")
  func cannotConnect() async throws {
    let port = try RefusingPort()
    for method in ["GET", "POST"] {
      let request = OutboundRequest(
        method: method,
        url: "http://localhost:\(port.number)/secret?k=v",
        body: method == "POST" ? [1] : []
      )

      let error = await #expect(throws: OutboundHTTPError.self) {
        try await URLSessionTransport().send(request)
      }
      #expect(error?.kind == .cannotConnect)
      #expect(error?.message.hasPrefix("localhost: ") == true)
      #expect(error?.message.contains("secret") == false)
    }
    withExtendedLifetime(port) {}
  }

  @Test("Silence ends with the total timeout, before the head and after it")
  func timeout() async throws {
    try await RawServer.run { request, connection in
      if request.line.contains("/head") {
        try await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
      }
      for await _ in connection.closed {}
    } _: { server in
      let client = URLSessionTransport()
      for path in ["/silence", "/head"] {
        let error = await #expect(throws: OutboundHTTPError.self) {
          try await client.send(
            OutboundRequest(url: server.unproxiedURL + path, timeout: .milliseconds(60))
          )
        }
        #expect(error == OutboundHTTPError(.timedOut, "localhost: the request timed out"))
      }
    }
  }

  @Test("Cancelling ends the exchange for both sides")
  func cancellation() async throws {
    let (arrived, arrival) = AsyncStream<Void>.makeStream()
    let (ended, end) = AsyncStream<Void>.makeStream()
    try await RawServer.run { _, connection in
      arrival.yield()
      for await _ in connection.closed {}
      end.finish()
    } _: { server in
      let client = URLSessionTransport()
      let error = await withTaskGroup(of: OutboundHTTPError?.self) { group in
        group.addTask {
          await #expect(throws: OutboundHTTPError.self) {
            try await client.send(OutboundRequest(url: server.unproxiedURL))
          }
        }
        for await _ in arrived { break }
        group.cancelAll()
        return await group.next() ?? nil
      }

      #expect(error?.kind == .cancelled)
      for await _ in ended {}
    }
  }

  @Test("A cancelled task sends nothing", arguments: [false, true])
  func cancelledBefore(usesFreshConnection: Bool) async throws {
    try await RawServer.run { _, connection in
      try await connection.reply(body: "ok")
    } _: { server in
      let client = URLSessionTransport()
      let request = OutboundRequest(
        url: server.unproxiedURL,
        usesFreshConnection: usesFreshConnection
      )
      let error = await withTaskGroup(of: OutboundHTTPError?.self) { group in
        group.cancelAll()
        group.addTask {
          await #expect(throws: OutboundHTTPError.self) { try await client.send(request) }
        }
        return await group.next() ?? nil
      }

      #expect(error?.kind == .cancelled)
      #expect(server.connections.now == 0)
    }
  }

  @Test("A body over the bound fails, one at the bound does not")
  func tooLarge() async throws {
    try await RawServer.run { _, connection in
      try await connection.reply(body: String(repeating: "x", count: 1000))
    } _: { server in
      let client = URLSessionTransport()
      let fits = OutboundRequest(url: server.unproxiedURL, responseBytesMax: 1000)
      let whole = try await client.send(fits).body
      #expect(whole.count == 1000)
      let collected = try await client.stream(fits).body.collect(upTo: .max)
      #expect(collected.count == 1000)

      let exceeds = OutboundRequest(url: server.unproxiedURL, responseBytesMax: 999)
      let error = await #expect(throws: OutboundHTTPError.self) {
        try await client.send(exceeds)
      }
      #expect(error?.kind == .tooLarge)
      let streamError = await #expect(throws: OutboundHTTPError.self) {
        try await client.stream(exceeds).body.collect(upTo: .max)
      }
      #expect(streamError?.kind == .tooLarge)
    }
  }

  @Test(
    "A connection that breaks off fails the request",
    arguments: [
      "Content-Length: 100\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ]
  )
  func brokenOff(rest: String) async throws {
    try await RawServer.run { _, connection in
      try await connection.write("HTTP/1.1 200 OK\r\n" + rest)
      throw RawServer.HangupError()
    } _: { server in
      let error = await #expect(throws: OutboundHTTPError.self) {
        try await URLSessionTransport().send(OutboundRequest(url: server.unproxiedURL))
      }
      #expect(error?.kind == .failed)
    }
  }

  @Test(
    "A request that may have been acted on and may not happen twice is not sent again",
    arguments: ["POST", "PATCH"],
    [[], [1]]
  )
  func resending(method: String, body: [UInt8]) async throws {
    let seen = ConnectionCount()
    try await RawServer.run({ request, connection in
      guard request.line.contains("/act") else { return try await connection.reply(body: "warm") }
      // The server performs the action, but the response is lost with its connection.
      seen.add()
      if seen.now == 1 { throw RawServer.HangupError() }
      try await connection.reply(body: "done")
    }) { server in
      let client = URLSessionTransport()
      _ = try await client.send(OutboundRequest(url: server.unproxiedURL + "/warm"))
      let request = OutboundRequest(method: method, url: server.unproxiedURL + "/act", body: body)
      let error = await #expect(throws: OutboundHTTPError.self) { try await client.send(request) }
      #expect(error?.kind == .failed)
    }
    #expect(seen.now == 1)
  }

  @Test("A redirect is an answer unless asked to be followed, and stays within its scheme")
  func redirects() async throws {
    try await RawServer.run { request, connection in
      let path = request.line.split(separator: " ")[1]
      let location: String? =
        switch path {
        case "/here", "/nowhere": nil
        case "/tls": "https://127.0.0.1:1/"
        case "/circle": "/circle"
        default: "/here"
        }
      let status = path == "/here" ? "200 OK" : path == "/body" ? "307 Moved" : "302 Found"
      try await connection.reply(
        status,
        headers: location.map { ["Location: \($0)"] } ?? [],
        body: path == "/nowhere" ? "" : path == "/here" ? "here" : "moved"
      )
    } _: { server in
      let client = URLSessionTransport()
      let stays = try await client.send(OutboundRequest(url: server.unproxiedURL))
      #expect(stays.status == 302)
      #expect(stays.text == "moved")
      #expect(stays.headers["location"] == "/here")
      let nowhere = OutboundRequest(url: server.unproxiedURL + "/nowhere", redirectsMax: 3)
      #expect(try await client.send(nowhere).status == 302)
      let streamed = try await client.stream(OutboundRequest(url: server.unproxiedURL))
      #expect(streamed.status == 302)
      #expect(try await streamed.body.collect(upTo: 100) == Array("moved".utf8))

      let goes = try await client.send(
        OutboundRequest(url: server.unproxiedURL, redirectsMax: 3)
      )
      #expect(goes.status == 200)
      #expect(goes.text == "here")
      #expect(goes.headers["location"] == nil)

      let refusals = [
        (
          "/tls", OutboundHTTPError(.invalidRequest, "localhost: the redirect is to another scheme")
        ),
        ("/circle", OutboundHTTPError(.failed, "localhost: there are more than 3 redirects")),
      ]
      for (path, refusal) in refusals {
        let error = await #expect(throws: OutboundHTTPError.self) {
          try await client.send(OutboundRequest(url: server.unproxiedURL + path, redirectsMax: 3))
        }
        #expect(error == refusal)
      }
    }
  }

  @Test("A redirect that asks for the body again does not lose it")
  func redirectedBody() async throws {
    try await RawServer.run { request, connection in
      if request.line.contains("/here") {
        try await connection.reply(body: "\(request.body.count)")
      } else {
        try await connection.reply("307 Moved", headers: ["Location: /here"], body: "")
      }
    } _: { server in
      let request = OutboundRequest(
        method: "POST",
        url: server.unproxiedURL,
        body: [1],
        redirectsMax: 3
      )
      #if canImport(FoundationNetworking)
        let error = await #expect(throws: OutboundHTTPError.self) {
          try await URLSessionTransport().send(request)
        }
        #expect(error?.kind == .failed)
      #else
        #expect(try await URLSessionTransport().send(request).text == "1")
      #endif
    }
  }

  @Test("A refusal for lack of credentials is an answer")
  func unauthorized() async throws {
    try await RawServer.run { _, connection in
      let header = "WWW-Authenticate: Basic realm=\"r\""
      try await connection.reply("401 Unauthorized", headers: [header], body: "who?")
    } _: { server in
      let client = URLSessionTransport()
      let response = try await client.send(OutboundRequest(url: server.unproxiedURL))
      #expect(response.status == 401)
      #expect(response.text == "who?")
    }
  }

  @Test("A compressed body is complete though longer on the wire")
  func compressed() async throws {
    try await RawServer.run { _, connection in
      let bytes = try #require(
        Data(base64Encoded: "H4sIAAAAAAACA8tIzcnJBwCGphA2BQAAAA==")
      )
      let head =
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(bytes.count)\r\n\r\n"
      try await connection.write(Array(head.utf8) + Array(bytes))
    } _: { server in
      let client = URLSessionTransport()
      let response = try await client.send(OutboundRequest(url: server.unproxiedURL))
      #expect(response.text == "hello")
    }
  }

  @Test(
    "Requests that cannot be sent are refused",
    arguments: [
      OutboundRequest(url: "ftp://localhost/"),
      OutboundRequest(url: "http://localhost/a b"),
      OutboundRequest(url: "http:///path"),
      OutboundRequest(url: "http://localhost/{a}"),
      OutboundRequest(url: "http://localhost/", body: [1]),
      OutboundRequest(method: "GET /\r\nX:", url: "http://localhost/"),
      OutboundRequest(url: "http://localhost/", headers: ["X": "a\r\nY: b"]),
    ]
  )
  func invalid(request: OutboundRequest) async throws {
    let error = await #expect(throws: OutboundHTTPError.self) {
      try await URLSessionTransport().send(request)
    }
    #expect(error?.kind == .invalidRequest)
  }
}

@Suite("Streamed responses over URLSession", .timeLimit(.minutes(5)))
struct URLSessionStreamTests {
  @Test("Lines of an event stream are there before the body has ended")
  func events() async throws {
    let (asked, ask) = AsyncStream<Void>.makeStream()
    try await RawServer.run { _, connection in
      try await connection.write(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
      )
      var number = 0
      for await _ in asked {
        number += 1
        try await connection.write("8\r\ndata: \(number)\n\r\n")
        if number == 3 { break }
      }
      try await connection.write("0\r\n\r\n")
    } _: { server in
      let response = try await URLSessionTransport().stream(
        OutboundRequest(url: server.unproxiedURL)
      )
      #expect(response.status == 200)

      var lines: [String] = []
      ask.yield()
      for try await line in response.body.lines() {
        lines.append(line)
        ask.yield()
      }
      #expect(lines == ["data: 1", "data: 2", "data: 3"])
    }
  }

  @Test("A large body loses nothing")
  func large() async throws {
    let line = String(repeating: "0123456789abcdef", count: 512)
    try await RawServer.run { _, connection in
      let lines = (0..<1000).map { "\($0) \(line)\n" }
      let length = lines.reduce(0) { $0 + $1.utf8.count }
      try await connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n")
      for line in lines { try await connection.write(line) }
    } _: { server in
      let client = URLSessionTransport()
      let response = try await client.stream(
        OutboundRequest(url: server.unproxiedURL, timeout: nil)
      )
      var expected = 0
      for try await text in response.body.lines() {
        let isRight = text == "\(expected) \(line)"
        if !isRight { Issue.record("line \(expected) is wrong") }
        expected += 1
      }

      #expect(expected == 1000)
    }
  }

  @Test("A reader that falls behind by more than the bound fails, after what had come")
  func slowReader() async throws {
    let (ended, end) = AsyncStream<Void>.makeStream()
    try await RawServer.run { _, connection in
      try await connection.write(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"
      )
      // A single piece of any size is within the bound.
      await withTaskGroup(of: Void.self) { group in
        group.addTask { for await _ in connection.closed {} }
        group.addTask {
          let piece = [UInt8](repeating: UInt8(ascii: "x"), count: 64 << 10)
          while (try? await connection.write(Array("10000\r\n".utf8) + piece + [13, 10])) != nil {}
        }
        await group.next()
        group.cancelAll()
      }
      end.finish()
    } _: { server in
      let client = URLSessionTransport(streamBufferBytesMax: 1024)
      let response = try await client.stream(OutboundRequest(url: server.unproxiedURL))
      for await _ in ended {}

      var pieces = response.body.makeAsyncIterator()
      let piece = try await pieces.next()
      #expect(piece?.starts(with: "half".utf8) == true)
      let error = await #expect(throws: OutboundHTTPError.self) { try await pieces.next() }
      #expect(error?.kind == .tooLarge)
      #expect(error?.message == "the response has more than 1024 bytes that wait for the reader")
    }
  }

  @Test("The total timeout counts while the body is read")
  func timeout() async throws {
    try await RawServer.run { _, connection in
      try await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
      for await _ in connection.closed {}
    } _: { server in
      let client = URLSessionTransport()
      let request = OutboundRequest(url: server.unproxiedURL, timeout: .milliseconds(300))
      let error = await #expect(throws: OutboundHTTPError.self) {
        for try await _ in try await client.stream(request).body {}
      }
      #expect(error?.kind == .timedOut)
    }
  }

  @Test("Cancelling a reader ends the exchange for both sides")
  func cancellation() async throws {
    let (ended, end) = AsyncStream<Void>.makeStream()
    try await RawServer.run { _, connection in
      try await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
      for await _ in connection.closed {}
      end.finish()
    } _: { server in
      let (arrived, arrival) = AsyncStream<Void>.makeStream()
      let client = URLSessionTransport()
      let body = try await client.stream(OutboundRequest(url: server.unproxiedURL)).body
      let error = await withTaskGroup(of: OutboundHTTPError?.self) { group in
        group.addTask {
          await #expect(throws: OutboundHTTPError.self) {
            for try await _ in body { arrival.yield() }
          }
        }
        for await _ in arrived { break }
        group.cancelAll()
        return await group.next() ?? nil
      }

      #expect(error?.kind == .cancelled)
      for await _ in ended {}
    }
  }

  @Test("Letting go of a body ends the exchange")
  func lettingGo() async throws {
    let (ended, end) = AsyncStream<Void>.makeStream()
    try await RawServer.run { _, connection in
      try await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
      for await _ in connection.closed {}
      end.finish()
    } _: { server in
      let client = URLSessionTransport()
      do {
        let response = try await client.stream(OutboundRequest(url: server.unproxiedURL))
        for try await piece in response.body {
          #expect(piece == Array("half".utf8))
          break
        }
      }
      for await _ in ended {}
      withExtendedLifetime(client) {}
    }
  }

  @Test("A body that breaks off throws after what had come")
  func brokenOff() async throws {
    try await RawServer.run { _, connection in
      try await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
      throw RawServer.HangupError()
    } _: { server in
      let client = URLSessionTransport()
      let response = try await client.stream(OutboundRequest(url: server.unproxiedURL))
      var pieces = response.body.makeAsyncIterator()
      let piece = try await pieces.next()
      #expect(piece == Array("half".utf8))

      let error = await #expect(throws: OutboundHTTPError.self) { try await pieces.next() }
      #expect(error?.kind == .failed)
    }
  }

  @Test("A body outlives the client that it came from")
  func outlives() async throws {
    try await RawServer.run { _, connection in
      try await connection.reply(body: "whole")
    } _: { server in
      let request = OutboundRequest(url: server.unproxiedURL)
      let body = try await URLSessionTransport().stream(request).body
      #expect(try await body.collect(upTo: 100) == Array("whole".utf8))
    }
  }
}

@Suite("Errors of URLSession")
struct URLSessionErrorTests {
  @Test(
    "A request cannot connect only if nothing can have been sent",
    arguments: [
      URLError.Code.cannotConnectToHost, .cannotFindHost, .notConnectedToInternet,
      .serverCertificateUntrusted,
    ]
  )
  func connecting(code: URLError.Code) {
    #expect(OutboundHTTPError.Kind(code, mayBeSent: false) == .cannotConnect)
    #expect(OutboundHTTPError.Kind(code, mayBeSent: true) == .failed)
  }

  @Test(
    "Other errors have their kind whatever was sent",
    arguments: [
      (URLError.Code.timedOut, OutboundHTTPError.Kind.timedOut), (.cancelled, .cancelled),
      (.dataLengthExceedsMaximum, .tooLarge), (.badURL, .invalidRequest),
      (.unsupportedURL, .invalidRequest), (.networkConnectionLost, .failed),
      (.secureConnectionFailed, .failed), (.unknown, .failed),
    ]
  )
  func others(code: URLError.Code, kind: OutboundHTTPError.Kind) {
    #expect(OutboundHTTPError.Kind(code, mayBeSent: false) == kind)
    #expect(OutboundHTTPError.Kind(code, mayBeSent: true) == kind)
  }

  @Test(
    "Fewer bytes than announced are not the whole body, unless none are sent or they are packed"
  )
  func cutShort() throws {
    func isWhole(
      _ bytes: Int,
      _ method: String = "GET",
      status: Int = 200,
      headers: [String: String] = ["Content-Length": "10"]
    ) throws -> Bool {
      let url = try #require(URL(string: "http://localhost"))
      let response = try #require(
        HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: headers)
      )
      return response.isWhole(bytes: bytes, method: method)
    }

    #expect(try !isWhole(9))
    #expect(try isWhole(10))
    #expect(try isWhole(0, headers: [:]))
    #expect(try isWhole(0, "HEAD"))
    #expect(try isWhole(0, status: 304))
    #expect(try isWhole(5, headers: ["Content-Length": "10", "Content-Encoding": "gzip"]))
  }
}
