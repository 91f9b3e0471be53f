import Foundation
import Testing

@testable import OutboundHTTP

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@Suite("URLSession over sockets", .timeLimit(.minutes(5)))
struct URLSessionTransportTests {
  @Test("Fields of one name are sent as one, and a body without a type is not called a form")
  func fields() async throws {
    try await RawServer.run { request, connection in
      let echo = [request.header("x-key") ?? "-", request.header("content-type") ?? "-"]
      try await connection.reply(body: echo.joined(separator: "|"))
    } _: { server in
      var headers: OutboundHeaders = ["X-Key": "k"]
      headers.append("x-key", "l")
      let request = OutboundRequest(
        method: "POST",
        url: server.unproxiedURL,
        headers: headers,
        body: [1]
      )
      let response = try await URLSessionTransport().send(request)

      #expect(response.text == "k,l|application/octet-stream")
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
      OutboundRequest(url: "http:///path"),
      OutboundRequest(url: "http://localhost/{a}"),
      OutboundRequest(url: "http://localhost/", body: [1]),
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
