import OutboundHTTP
import Testing

@Suite("Client over sockets", .timeLimit(.minutes(5)))
struct OutboundClientTests {
  @Test("Method, headers and body arrive, and so does the answer")
  func roundTrip() async throws {
    try await RawServer.run { request, connection in
      let echo = [
        request.line, request.header("x-key") ?? "-", request.header("expect") ?? "-",
        request.header("content-type") ?? "-", String(decoding: request.body, as: UTF8.self),
      ]
      try await connection.reply(
        "201 Created",
        headers: ["X-Answer: a", "x-answer: b"],
        body: echo.joined(separator: "|")
      )
    } _: { server in
      let client = OutboundClient()
      let response = try await client.send(
        OutboundRequest(
          method: "PATCH",
          url: OutboundURL.make(base: server.url, path: ["a b"], query: [("q", "ü&")]),
          headers: ["X-Key": "k"],
          body: Array("{\"a\":1}".utf8)
        )
      )

      #expect(response.status == 201)
      #expect(response.headers["X-ANSWER"] == "a")
      #expect(response.headers.values("x-answer") == ["a", "b"])
      #expect(response.text == "PATCH /a%20b?q=%C3%BC%26 HTTP/1.1|k|-|-|{\"a\":1}")
    }
  }

  @Test("Bodiless methods send none", arguments: ["GET", "DELETE", "POST", "HEAD"])
  func methods(method: String) async throws {
    try await RawServer.run { request, connection in
      let length = request.header("content-length") ?? "-"
      try await connection.reply(
        headers: ["X-Line: \(request.line) \(length)"],
        body: request.line.hasPrefix("HEAD") ? "" : "body"
      )
    } _: { server in
      let response = try await OutboundClient().send(
        OutboundRequest(method: method, url: server.url + "/x")
      )

      let length = method == "POST" ? "0" : "-"
      #expect(response.headers["x-line"] == "\(method) /x HTTP/1.1 \(length)")
      #expect(response.text == (method == "HEAD" ? "" : "body"))
    }
  }

  @Test("A connection serves one request after another")
  func reuse() async throws {
    try await RawServer.run { _, connection in
      try await connection.reply(body: "ok")
    } _: { server in
      let client = OutboundClient()
      for _ in 0..<20 {
        let response = try await client.send(OutboundRequest(url: server.url))
        #expect(response.text == "ok")
      }

      #expect(server.connections.now == 1)
    }
  }

  @Test("Many requests share a few connections, in line")
  func concurrency() async throws {
    try await RawServer.run { request, connection in
      try await connection.reply(body: request.line)
    } _: { server in
      let client = OutboundClient(configuration: .init(connectionsMax: 4))
      let right = try await withThrowingTaskGroup(of: Bool.self) { group in
        for number in 0..<200 {
          group.addTask {
            let response = try await client.send(OutboundRequest(url: "\(server.url)/\(number)"))
            return response.text == "GET /\(number) HTTP/1.1"
          }
        }
        return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
      }

      #expect(right == 200)
      #expect(server.connections.now <= 4)
    }
  }

  @Test("Past the line a request is refused at once")
  func line() async throws {
    try await RawServer.run { _, connection in
      for await _ in connection.closed {}
    } _: { server in
      let client = OutboundClient(configuration: .init(connectionsMax: 1, waitingMax: 0))
      let first = try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { _ = try await client.send(OutboundRequest(url: server.url)) }
        // When a request is refused, the first one is in progress. Until then requests wait and
        // time out.
        var refusal: OutboundHTTPError?
        while refusal?.kind != .failed {
          do {
            let request = OutboundRequest(url: server.url, timeout: .milliseconds(10))
            _ = try await client.send(request)
          } catch let error as OutboundHTTPError {
            refusal = error
          }
        }
        group.cancelAll()
        return refusal
      }

      #expect(first?.message == "1 requests are under way already; try later")
    }
  }

  @Test("A server that is not there cannot be connected to")
  func cannotConnect() async throws {
    let port = try RefusingPort()
    let request = OutboundRequest(url: "http://127.0.0.1:\(port.number)/secret?k=v")

    let error = await #expect(throws: OutboundHTTPError.self) {
      try await OutboundClient().send(request)
    }
    withExtendedLifetime(port) {}
    #expect(error?.kind == .cannotConnect)
    #expect(error?.message.contains("127.0.0.1") == true)
    #expect(error?.message.contains("secret") == false)
  }

  @Test("Silence ends with the total timeout, in line too")
  func timeout() async throws {
    try await RawServer.run { _, connection in
      for await _ in connection.closed {}
    } _: { server in
      let client = OutboundClient(configuration: .init(connectionsMax: 1))
      let request = OutboundRequest(url: server.url, timeout: .milliseconds(60))
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<3 {
          group.addTask {
            let error = await #expect(throws: OutboundHTTPError.self) {
              try await client.send(request)
            }
            #expect(error?.kind == .timedOut)
          }
        }
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
      let client = OutboundClient()
      let error = await withTaskGroup(of: OutboundHTTPError?.self) { group in
        group.addTask {
          await #expect(throws: OutboundHTTPError.self) {
            try await client.send(OutboundRequest(url: server.url))
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

  @Test("A cancelled task sends nothing")
  func cancelledBefore() async throws {
    try await RawServer.run { _, connection in
      try await connection.reply(body: "ok")
    } _: { server in
      let error = await withTaskGroup(of: OutboundHTTPError?.self) { group in
        group.cancelAll()
        group.addTask {
          await #expect(throws: OutboundHTTPError.self) {
            try await OutboundClient().send(OutboundRequest(url: server.url))
          }
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
      let client = OutboundClient()
      let fits = OutboundRequest(url: server.url, responseBytesMax: 1000)
      let response = try await client.send(fits)
      #expect(response.body.count == 1000)

      let error = await #expect(throws: OutboundHTTPError.self) {
        try await client.send(OutboundRequest(url: server.url, responseBytesMax: 999))
      }
      #expect(error?.kind == .tooLarge)
    }
  }

  @Test("A connection that breaks off fails the request")
  func brokenOff() async throws {
    try await RawServer.run { _, connection in
      try await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
      throw RawServer.HangupError()
    } _: { server in
      let error = await #expect(throws: OutboundHTTPError.self) {
        try await OutboundClient().send(OutboundRequest(url: server.url))
      }
      #expect(error?.kind == .failed)
    }
  }

  @Test(
    "A request that may have been acted on is sent again only if it may happen twice",
    arguments: [("GET", 2), ("PUT", 2), ("POST", 1), ("PATCH", 1)]
  )
  func resending(method: String, times: Int) async throws {
    let seen = ConnectionCount()
    try await RawServer.run({ request, connection in
      guard request.line.contains("/act") else { return try await connection.reply(body: "warm") }
      // The server performs the action, but the response is lost with a reused connection.
      seen.add()
      if seen.now == 1 { throw RawServer.HangupError() }
      try await connection.reply(body: "done")
    }) { server in
      let client = OutboundClient()
      _ = try await client.send(OutboundRequest(url: server.url + "/warm"))
      let request = OutboundRequest(method: method, url: server.url + "/act", body: [1])
      if times == 1 {
        let error = await #expect(throws: OutboundHTTPError.self) { try await client.send(request) }
        #expect(error?.kind == .failed)
      } else {
        #expect(try await client.send(request).status == 200)
      }
    }
    #expect(seen.now == times)
  }

  @Test("A redirect is an answer unless asked to be followed, and stays within its scheme")
  func redirects() async throws {
    try await RawServer.run { request, connection in
      let path = request.line.split(separator: " ")[1]
      switch path {
      case "/here": try await connection.reply(body: "here")
      case "/tls":
        let headers = ["Location: https://127.0.0.1:1/"]
        try await connection.reply("302 Found", headers: headers, body: "moved")
      default: try await connection.reply("302 Found", headers: ["Location: /here"], body: "moved")
      }
    } _: { server in
      let client = OutboundClient()
      let stays = try await client.send(OutboundRequest(url: server.url))
      #expect(stays.status == 302)
      #expect(stays.text == "moved")

      let goes = try await client.send(OutboundRequest(url: server.url, redirectsMax: 3))
      #expect(goes.status == 200)
      #expect(goes.text == "here")
      #expect(goes.headers["location"] == nil)

      let error = await #expect(throws: OutboundHTTPError.self) {
        try await client.send(OutboundRequest(url: server.url + "/tls", redirectsMax: 3))
      }
      #expect(error?.kind == .invalidRequest)
    }
  }

  @Test(
    "Requests that would break the framing are refused",
    arguments: [
      OutboundRequest(url: "ftp://127.0.0.1/"),
      OutboundRequest(url: "file:///etc/passwd"),
      OutboundRequest(url: "http://127.0.0.1/a b"),
      OutboundRequest(method: "GET /\r\nX:", url: "http://127.0.0.1/"),
      OutboundRequest(url: "http://127.0.0.1/", headers: ["X": "a\r\nY: b"]),
      OutboundRequest(url: "http://127.0.0.1/", headers: ["X Y": "a"]),
    ]
  )
  func invalid(request: OutboundRequest) async throws {
    let error = await #expect(throws: OutboundHTTPError.self) {
      try await OutboundClient().send(request)
    }
    #expect(error?.kind == .invalidRequest)
  }
}
