import OutboundHTTP
import Testing

@Suite("Transports over sockets", .timeLimit(.minutes(5)))
struct TransportConformance {
  @Test(
    "Method, headers and body arrive, and so does the answer",
    arguments: TransportKind.allCases
  )
  func roundTrip(kind: TransportKind) async throws {
    try await RawServer.run { request, connection in
      let echo = [
        request.line, request.header("x-key") ?? "-", request.header("expect") ?? "-",
        request.header("content-type") ?? "-", request.header("cookie") ?? "-",
        String(decoding: request.body, as: UTF8.self),
      ]
      try await connection.reply(
        "201 Created",
        headers: ["X-Answer: a", "Set-Cookie: c=1"],
        body: echo.joined(separator: "|")
      )
    } _: { server in
      let client = kind.make()
      let request = OutboundRequest(
        method: "PATCH",
        url: OutboundURL.make(base: kind.url(server), path: ["a b"], query: [("q", "ü&")]),
        headers: ["X-Key": "k", "Content-Type": "application/json"],
        body: Array("{\"a\":1}".utf8)
      )
      // Twice, so that a stored cookie would be sent.
      for _ in 1...2 {
        let response = try await client.send(request)

        #expect(response.status == 201)
        #expect(response.headers["x-ANSWER"] == "a")
        let line = "PATCH /a%20b?q=%C3%BC%26 HTTP/1.1"
        #expect(response.text == "\(line)|k|-|application/json|-|{\"a\":1}")
      }
    }
  }

  @Test(
    "Bodiless methods send none",
    arguments: TransportKind.allCases,
    ["GET", "DELETE", "POST", "HEAD"]
  )
  func methods(kind: TransportKind, method: String) async throws {
    try await RawServer.run { request, connection in
      try await connection.reply(
        headers: [
          "X-Line: \(request.line)", "X-Length: \(request.header("content-length") ?? "-")",
        ],
        body: method == "HEAD" ? "" : "body"
      )
    } _: { server in
      let response = try await kind.make().send(
        OutboundRequest(method: method, url: kind.url(server) + "/x")
      )

      #expect(response.headers["x-line"] == "\(method) /x HTTP/1.1")
      let lengths = kind == .curl ? [method == "POST" ? "0" : "-"] : ["0", "-"]
      #expect(lengths.contains(response.headers["x-length"] ?? ""))
      #expect(response.text == (method == "HEAD" ? "" : "body"))
    }
  }

  @Test(
    "A connection serves one request after another, unless each asks for its own",
    arguments: TransportKind.allCases,
    [false, true]
  )
  func connections(kind: TransportKind, usesFreshConnection: Bool) async throws {
    try await RawServer.run { _, connection in
      try await connection.reply(body: "ok")
    } _: { server in
      let client = kind.make()
      let request = OutboundRequest(
        url: kind.url(server),
        usesFreshConnection: usesFreshConnection
      )
      for _ in 0..<20 {
        let response = try await client.send(request)
        #expect(response.text == "ok")
      }

      #expect(server.connections.now == (usesFreshConnection ? 20 : 1))
    }
  }

  @Test("A connection of its own is closed after its request", arguments: TransportKind.allCases)
  func freshConnectionEnds(kind: TransportKind) async throws {
    let (ended, end) = AsyncStream<Void>.makeStream()
    try await RawServer.run { _, connection in
      try await connection.reply(body: "ok")
      for await _ in connection.closed {}
      end.finish()
    } _: { server in
      let client = kind.make()
      let request = OutboundRequest(url: kind.url(server), usesFreshConnection: true)
      let response = try await client.send(request)
      #expect(response.text == "ok")

      for await _ in ended {}
      withExtendedLifetime(client) {}
    }
  }

  @Test(
    "Many requests at once get their own answers, on shared connections and on their own",
    arguments: TransportKind.allCases
  )
  func concurrency(kind: TransportKind) async throws {
    try await RawServer.run { request, connection in
      try await connection.reply(body: request.line)
    } _: { server in
      let client = kind.make()
      let right = try await withThrowingTaskGroup(of: Bool.self) { group in
        for number in 0..<100 {
          group.addTask {
            let request = OutboundRequest(
              url: "\(kind.url(server))/\(number)",
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

  @Test(
    "A server that is not there cannot be connected to",
    arguments: TransportKind.allCases,
    ["GET", "POST"]
  )
  func cannotConnect(kind: TransportKind, method: String) async throws {
    let port = try RefusingPort()
    let request = OutboundRequest(
      method: method,
      url: "http://\(kind.host):\(port.number)/secret?k=v",
      body: method == "POST" ? [1] : []
    )

    let error = await #expect(throws: OutboundHTTPError.self) {
      try await kind.make().send(request)
    }
    withExtendedLifetime(port) {}
    #expect(error?.kind == .cannotConnect)
    #expect(error?.message.hasPrefix("\(kind.host): ") == true)
    #expect(error?.message.contains("secret") == false)
  }

  @Test(
    "Silence ends with the total timeout, before the head and after it",
    arguments: TransportKind.allCases,
    ["/silence", "/head"]
  )
  func timeout(kind: TransportKind, path: String) async throws {
    try await RawServer.run { request, connection in
      if request.line.contains("/head") {
        try await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
      }
      for await _ in connection.closed {}
    } _: { server in
      let client = kind.make()
      let request = OutboundRequest(url: kind.url(server) + path, timeout: .milliseconds(60))
      let error = await #expect(throws: OutboundHTTPError.self) { try await client.send(request) }
      #expect(error == OutboundHTTPError(.timedOut, kind.timeoutMessage))
    }
  }

  @Test("Cancelling ends the exchange for both sides", arguments: TransportKind.allCases)
  func cancellation(kind: TransportKind) async throws {
    let (arrived, arrival) = AsyncStream<Void>.makeStream()
    let (ended, end) = AsyncStream<Void>.makeStream()
    try await RawServer.run { _, connection in
      arrival.yield()
      for await _ in connection.closed {}
      end.finish()
    } _: { server in
      let client = kind.make()
      let error = await withTaskGroup(of: OutboundHTTPError?.self) { group in
        group.addTask {
          await #expect(throws: OutboundHTTPError.self) {
            try await client.send(OutboundRequest(url: kind.url(server)))
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

  @Test(
    "A cancelled task sends nothing",
    arguments: TransportKind.allCases,
    [false, true]
  )
  func cancelledBefore(kind: TransportKind, usesFreshConnection: Bool) async throws {
    try await RawServer.run { _, connection in
      try await connection.reply(body: "ok")
    } _: { server in
      let client = kind.make()
      let request = OutboundRequest(
        url: kind.url(server),
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

  @Test(
    "A body over the bound fails, one at the bound does not",
    arguments: TransportKind.allCases
  )
  func tooLarge(kind: TransportKind) async throws {
    try await RawServer.run { _, connection in
      try await connection.reply(body: String(repeating: "x", count: 1000))
    } _: { server in
      let client = kind.make()
      let fits = OutboundRequest(url: kind.url(server), responseBytesMax: 1000)
      let whole = try await client.send(fits).body
      #expect(whole.count == 1000)
      let collected = try await client.stream(fits).body.collect(upTo: .max)
      #expect(collected.count == 1000)

      let exceeds = OutboundRequest(url: kind.url(server), responseBytesMax: 999)
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
    arguments: TransportKind.allCases,
    ["Content-Length: 100\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"]
  )
  func brokenOff(kind: TransportKind, rest: String) async throws {
    try await RawServer.run { _, connection in
      try await connection.write("HTTP/1.1 200 OK\r\n" + rest)
      throw RawServer.HangupError()
    } _: { server in
      let error = await #expect(throws: OutboundHTTPError.self) {
        try await kind.make().send(OutboundRequest(url: kind.url(server)))
      }
      #expect(error?.kind == .failed)
    }
  }

  /// A request whose response is lost with a reused connection.
  struct LostResponse: Sendable {
    var kind: TransportKind
    var method: String
    var body: [UInt8]
    /// The number of times that the request is sent.
    var times: Int
  }

  private static let lostResponses =
    TransportKind.allCases.flatMap { kind in
      [
        LostResponse(kind: kind, method: "GET", body: [], times: 2),
        LostResponse(kind: kind, method: "POST", body: [], times: 1),
        LostResponse(kind: kind, method: "POST", body: [1], times: 1),
        LostResponse(kind: kind, method: "PATCH", body: [], times: 1),
        LostResponse(kind: kind, method: "PATCH", body: [1], times: 1),
      ]
    }
    // FoundationNetworking does not end such a request before its timeout.
    + [LostResponse(kind: .curl, method: "PUT", body: [1], times: 2)]

  @Test(
    "A request that may have been acted on is sent again only if it may happen twice",
    arguments: lostResponses
  )
  func resending(lost: LostResponse) async throws {
    let seen = ConnectionCount()
    try await RawServer.run({ request, connection in
      guard request.line.contains("/act") else { return try await connection.reply(body: "warm") }
      // The server performs the action, but the response is lost with a reused connection.
      seen.add()
      if seen.now == 1 { throw RawServer.HangupError() }
      try await connection.reply(body: "done")
    }) { server in
      let client = lost.kind.make()
      _ = try await client.send(OutboundRequest(url: lost.kind.url(server) + "/warm"))
      let request = OutboundRequest(
        method: lost.method,
        url: lost.kind.url(server) + "/act",
        body: lost.body
      )
      if lost.times == 1 {
        let error = await #expect(throws: OutboundHTTPError.self) { try await client.send(request) }
        #expect(error?.kind == .failed)
      } else {
        #expect(try await client.send(request).status == 200)
      }
    }
    #expect(seen.now == lost.times)
  }

  @Test(
    "A redirect is an answer unless asked to be followed, and stays within its scheme",
    arguments: TransportKind.allCases
  )
  func redirects(kind: TransportKind) async throws {
    try await RawServer.run { request, connection in
      let path = request.line.split(separator: " ")[1]
      let location: String? =
        switch path {
        case "/here", "/nowhere": nil
        case "/tls": "https://127.0.0.1:1/"
        case "/circle": "/circle"
        default: "/here"
        }
      try await connection.reply(
        path == "/here" ? "200 OK" : "302 Found",
        headers: location.map { ["Location: \($0)"] } ?? [],
        body: path == "/nowhere" ? "" : path == "/here" ? "here" : "moved"
      )
    } _: { server in
      let client = kind.make()
      let request = OutboundRequest(url: kind.url(server))
      let stays = try await client.send(request)
      #expect(stays.status == 302)
      #expect(stays.text == "moved")
      #expect(stays.headers["location"] == "/here")
      let nowhere = OutboundRequest(url: request.url + "/nowhere", redirectsMax: 3)
      #expect(try await client.send(nowhere).status == 302)
      let streamed = try await client.stream(request)
      #expect(streamed.status == 302)
      #expect(try await streamed.body.collect(upTo: 100) == Array("moved".utf8))

      let goes = try await client.send(OutboundRequest(url: request.url, redirectsMax: 3))
      #expect(goes.status == 200)
      #expect(goes.text == "here")
      #expect(goes.headers["location"] == nil)

      for (path, refusal) in [
        ("/tls", OutboundHTTPError(.invalidRequest, kind.schemeMessage)),
        ("/circle", OutboundHTTPError(.failed, kind.redirectsMessage)),
      ] {
        let error = await #expect(throws: OutboundHTTPError.self) {
          try await client.send(OutboundRequest(url: request.url + path, redirectsMax: 3))
        }
        #expect(error == refusal)
      }
    }
  }

  @Test("A refusal for lack of credentials is an answer", arguments: TransportKind.allCases)
  func unauthorized(kind: TransportKind) async throws {
    try await RawServer.run { _, connection in
      let header = "WWW-Authenticate: Basic realm=\"r\""
      try await connection.reply("401 Unauthorized", headers: [header], body: "who?")
    } _: { server in
      let response = try await kind.make().send(OutboundRequest(url: kind.url(server)))
      #expect(response.status == 401)
      #expect(response.text == "who?")
    }
  }

  @Test(
    "Requests that would break the framing are refused",
    arguments: TransportKind.allCases,
    [
      OutboundRequest(url: "ftp://localhost/"),
      OutboundRequest(url: "file:///etc/passwd"),
      OutboundRequest(url: "http://localhost/a b"),
      OutboundRequest(method: "GET /\r\nX:", url: "http://localhost/"),
      OutboundRequest(url: "http://localhost/", headers: ["X": "a\r\nY: b"]),
      OutboundRequest(url: "http://localhost/", headers: ["X Y": "a"]),
    ]
  )
  func invalid(kind: TransportKind, request: OutboundRequest) async throws {
    let error = await #expect(throws: OutboundHTTPError.self) {
      try await kind.make().send(request)
    }
    #expect(error?.kind == .invalidRequest)
  }
}
