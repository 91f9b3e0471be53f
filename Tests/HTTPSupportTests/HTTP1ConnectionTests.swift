import HTTPMessages
import HTTPSupport
import HTTPTypes
import NIOCore
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

@Suite("HTTP/1 connections", .timeLimit(.minutes(5)))
struct HTTP1ConnectionTests {
  private let echo: HTTPService.Responder = { request, _ in
    let body = String(buffer: try await request.wholeBody(upTo: 1 << 20))
    return .text(
      "\(request.method) \(request.head.path ?? "") \(request.head.authority ?? "") \(body)."
    )
  }

  /// Sends a request on a new connection and returns the output until the server closes it.
  private func answer(
    to text: String,
    _ configuration: HTTPService.Configuration = HTTPService.Configuration()
  ) async throws -> String {
    try await withService(configuration: configuration, responder: echo) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send(text)
        return try await client.receiveAll()
      }
    }
  }

  // MARK: - Invalid requests

  private static let line = "POST /a HTTP/1.1\r\nHost: a\r\n"

  @Test(
    "What two readers could understand differently gets its status, and the connection ends",
    arguments: [
      ("GET /a HTTP/1.1\r\n\r\n", 400), ("GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
      ("GET /a HTTP/1.1\r\nHost : a\r\n\r\n", 400),
      ("GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400), ("GET /a\r\n\r\n", 505),
      ("GET /a HTTP/2.0\r\nHost: a\r\n\r\n", 505), ("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
      ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}", 400),
      (line + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
      (line + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
      (line + "Content-Length: +3\r\n\r\nabc", 400), (line + "Content-Length: 3,3\r\n\r\nabc", 400),
      (line + "Content-Length: 0x3\r\n\r\nabc", 400), (line + "Content-Length: -1\r\n\r\n", 400),
      (line + "Content-Length: 99999999999999999999\r\n\r\n", 400),
      (line + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
      (line + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
      ("POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
      (line + "Transfer-Encoding: chunked\r\n\r\nx\r\n", 400),
      (line + "Transfer-Encoding: chunked\r\n\r\n-1\r\n", 400),
      (line + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n", 400),
      (line + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", 400),
      (line + "X: a\u{0}b\r\n\r\n", 400), (line + "X: a\rb\r\n\r\n", 400),
      (line + "Expect: 200-ok\r\n\r\n", 417),
      (line + "X: " + String(repeating: "x", count: 90_000) + "\r\n\r\n", 431),
      (line + String(repeating: "X: y\r\n", count: 400) + "\r\n", 431),
      ("GET /" + String(repeating: "x", count: 90_000) + " HTTP/1.1\r\nHost: a\r\n\r\n", 431),
    ]
  )
  func refusals(text: String, status: Int) async throws {
    let answer = try await answer(to: text)
    #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(answer)")
    #expect(answer.contains("Connection: close\r\n"))
    #expect(answer.hasSuffix("}}"))
  }

  @Test("What comes behind a malformed request is not looked at, and what came before is answered")
  func garbageBehind() async throws {
    let good = "GET /good HTTP/1.1\r\nHost: a\r\n\r\n"
    let answer = try await answer(to: good + "garbage\r\n\r\n" + good)
    #expect(answer.ranges(of: "GET /good").count == 1)
    #expect(answer.contains("HTTP/1.1 400 "))
  }

  @Test(
    "A target may be a URL, whose host counts",
    arguments: [
      ("http://b:1/x?y=1", "GET /x?y=1 b:1"), ("HTTP://b", "GET / b"), ("http://b?c", "GET /?c b"),
    ]
  )
  func absoluteTargets(target: String, seen: String) async throws {
    let head = "GET \(target) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    #expect(try await answer(to: head).hasSuffix("\(seen) ."))
  }

  // MARK: - Framing

  @Test("Chunks are put together, and an empty body is one")
  func chunks() async throws {
    let head = Self.line + "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    #expect(
      try await answer(to: head + "3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: v\r\n\r\n")
        .hasSuffix("POST /a a abcde.")
    )
    #expect(try await answer(to: head + "0\r\n\r\n").hasSuffix("POST /a a ."))
  }

  @Test("HTTP/1.0 closes unless it asks to be kept, and gets no chunks")
  func http10() async throws {
    #expect(try await answer(to: "GET /a HTTP/1.0\r\n\r\n").hasSuffix("GET /a  ."))
    let kept = "GET /a HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"
    let answers = try await answer(to: kept + "GET /b HTTP/1.0\r\n\r\n")
    #expect(answers.contains("Connection: keep-alive\r\n"))
    #expect(answers.hasSuffix("GET /b  ."))
    let pieces: HTTPService.Responder = { _, _ in
      Response(status: .ok, body: .produced { try await $0(ByteBuffer(string: "piece")) })
    }
    try await withService(responder: pieces) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send("GET / HTTP/1.0\r\n\r\n")
        #expect(try await client.receiveAll().hasSuffix("\r\n\r\npiece"))
      }
    }
  }

  @Test("A response whose body is not as long as announced ends with the connection")
  func wrongLengths() async throws {
    for text in ["ab", "abcdef"] {
      let responder: HTTPService.Responder = { _, _ in
        Response(
          status: .ok,
          headers: [.contentLength: "4"],
          body: .produced { try await $0(ByteBuffer(string: text)) }
        )
      }
      try await withService(responder: responder) { address, _ in
        try await RawConnection.with(address) { client in
          try await client.send(
            "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"
          )
          let answers = try await client.receiveAll()
          #expect(answers.ranges(of: "HTTP/1.1 200").count == 1)
          #expect(!answers.contains("abcdef"))
        }
      }
    }
  }

  @Test("A responder's own fields of the connection do not reach the client twice")
  func ownFields() async throws {
    let responder: HTTPService.Responder = { _, _ in
      var response = Response.text("x")
      response.headers[.contentLength] = "17"
      response.headers[.transferEncoding] = "chunked"
      response.headers[.connection] = "close"
      return response
    }
    try await withService(responder: responder) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        let answer = try await client.receiveAll()
        #expect(answer.contains("Content-Length: 1\r\n") && !answer.contains("chunked"))
        #expect(answer.ranges(of: "onnection: close").count == 1)
      }
    }
  }

  @Test("Thousands of requests in one piece are answered one after the other")
  func pipeline() async throws {
    let count = 2000
    let immediate = Immediate()
    try await withService(immediate: immediate, responder: echo) { address, _ in
      try await RawConnection.with(address) { client in
        let requests = (0..<count).map { "GET /\($0) HTTP/1.1\r\nHost: a\r\n\r\n" }.joined()
        try await client.send(
          requests + "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        )
        let answers = try await client.receiveAll()
        let bodies = answers.split(separator: "\r\n\r\n").dropFirst().compactMap {
          $0.split(separator: ".").first.flatMap { Int($0.dropFirst()) }
        }
        #expect(bodies == Array(0..<count))
      }
    }
  }

  private struct Immediate: ImmediateResponder {
    func begin(
      _ request: Request,
      on eventLoop: any EventLoop,
      reply: @escaping @Sendable (Response) -> Void
    ) -> (@Sendable () -> Void)? {
      reply(.text("\(request.path)."))
      return {}
    }
  }

  private let slowEcho: HTTPService.Responder = { request, _ in
    // Gives the connection time to read what follows; no event of a responder shows that it has.
    if request.path == "/slow" { for _ in 0..<100 { await Task.yield() } }
    return .text("\(try await request.wholeBody(upTo: 1 << 20).readableBytes).")
  }

  @Test(
    "A body that is read as it comes is read behind a request that is being answered, too",
    arguments: [
      "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
      "Content-Length: 100000\r\n\r\n" + String(repeating: "x", count: 100_000),
    ]
  )
  func streamedBehind(rest: String) async throws {
    let get = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"
    let last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    try await withService(responder: slowEcho) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send(get + "POST / HTTP/1.1\r\nHost: a\r\n\(rest)" + last)
        let answers = try await client.receiveAll()
        let bodies = answers.split(separator: "\r\n\r\n").dropFirst().compactMap {
          $0.split(separator: ".").first
        }
        #expect(bodies == ["0", rest.hasPrefix("T") ? "5" : "100000", "0"])
      }
    }
  }

  @Test(
    "Who sends no more gets all of an answer that is under way, in one piece or in many",
    arguments: [true, false],
    ["", "Connection: close\r\n"]
  )
  func halfClosedUnderWay(isWhole: Bool, fields: String) async throws {
    let bytes = 16 << 20
    let large: HTTPService.Responder = { request, _ in
      guard request.path == "/" else { return .text("small.") }
      let piece = ByteBuffer(repeating: 65, count: 1 << 16)
      return Response(
        status: .ok,
        headers: [.contentLength: "\(bytes)"],
        body: isWhole
          ? .whole(ByteBuffer(repeating: 65, count: bytes))
          : .produced { write in for _ in 0..<(bytes >> 16) { try await write(piece) } }
      )
    }
    let configuration = HTTPService.Configuration(halfCloseTimeMax: .seconds(600))
    try await withService(configuration: configuration, responder: large) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n")
        let head = try await client.receive(until: "\r\n\r\n")
        client.finishSending()
        // The response stays unread until the server has noticed the half-close: until each of its
        // event loops has served a later connection.
        for _ in 0..<System.coreCount {
          try await RawConnection.with(address) { other in
            try await other.send("GET /small HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await other.receive(until: "small.").contains("200 OK"))
          }
        }
        let rest = try await client.receiveAll()
        #expect(head.utf8.count + rest.utf8.count > bytes)
      }
    }
  }

  @Test("A stop of the server does not cut an answer that is still unread")
  func stopUnderWay() async throws {
    let bytes = 8 << 20
    let large: HTTPService.Responder = { _, _ in
      Response(status: .ok, body: .whole(ByteBuffer(repeating: 65, count: bytes)))
    }
    // A long limit, because the machine may be slow.
    let configuration = HTTPService.Configuration(drainTimeMax: .seconds(60))
    try await withService(configuration: configuration, responder: large) { address, group in
      try await RawConnection.with(address) { client in
        try await client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        let head = try await client.receive(until: "\r\n\r\n")
        await group.triggerGracefulShutdown()
        #expect(head.utf8.count + (try await client.receiveAll()).utf8.count > bytes)
      }
    }
  }

  @Test("What comes behind the last request of a connection does not cost it its answer")
  func surplus() async throws {
    let bytes = 8 << 20
    let large: HTTPService.Responder = { _, _ in
      Response(status: .ok, body: .whole(ByteBuffer(repeating: 65, count: bytes)))
    }
    try await withService(responder: large) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: x,\tClose\r\n\r\n")
        let head = try await client.receive(until: "\r\n\r\n")
        try await client.send("\r\n")
        #expect(head.utf8.count + (try await client.receiveAll()).utf8.count > bytes)
      }
    }
  }

  @Test("An empty line between requests begins none")
  func emptyLine() async throws {
    let configuration = HTTPService.Configuration(headTimeMax: .milliseconds(100))
    let text = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
    try await withService(configuration: configuration, responder: echo) { address, _ in
      // On a machine that stalls, a head itself may outrun its time.
      try await eventually("the request after the empty line is answered") {
        try await RawConnection.with(address) { client in
          try await client.send(text)
          _ = try await client.receive(until: "/a a .")
          // Fails if the server has closed the connection.
          guard (try? await client.send("\r\n")) != nil else { return false }
          // Longer than the time limit of a request head.
          try await Task.sleep(for: .milliseconds(300))
          // Fails, too, if the server has closed the connection.
          guard (try? await client.send(text)) != nil else { return false }
          return try await client.receive(until: "/a a .").contains("200 OK")
        }
      }
    }
  }

  // MARK: - Unread bodies

  private let refuses: HTTPService.Responder = { request, _ in
    guard request.headers[.expect] == nil else { return .text("no", status: .contentTooLarge) }
    do {
      return .text("\(try await request.wholeBody(upTo: 8).readableBytes)")
    } catch let error as BodyTooLargeError {
      return .error(error, httpStatus: 413)
    }
  }

  @Test(
    "A client that sends a long refused body before reading receives the refusal, then the end",
    arguments: ["Content-Length: 33554432\r\nConnection: close", "Transfer-Encoding: chunked"]
  )
  func unreadBody(fields: String) async throws {
    try await withService(responder: refuses) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send("POST / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n")
        let piece = String(repeating: "x", count: 0x10000)
        let part = fields.hasPrefix("T") ? "10000\r\n\(piece)\r\n" : piece
        // In one call: the server closes a connection whose client pauses for two seconds.
        try await client.send(String(repeating: part, count: 512))
        #expect(try await client.receiveAll().hasPrefix("HTTP/1.1 413 "))
      }
    }
  }

  @Test("A body without end is read no further than some megabytes")
  func endlessBody() async throws {
    try await withService(responder: refuses) { address, _ in
      let sent = try await RawConnection.with(address) { client in
        let fields = "Content-Length: 99999999999"
        try await client.send("POST / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n")
        var sent = 0
        let piece = String(repeating: "x", count: 1 << 20)
        do {
          while sent < 1 << 30 {
            try await client.send(piece)
            sent += 1 << 20
          }
        } catch {
          // The server has closed the connection.
        }
        return sent
      }
      // The client's own buffers may hold much of it.
      #expect(sent < 1 << 30)
    }
  }

  @Test("A short unread body is skipped, and the next request is handled")
  func skippedBody() async throws {
    let body = String(repeating: "x", count: 100_000)
    try await withService(responder: refuses) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n\(body)")
        #expect(try await client.receive(until: "}}").hasPrefix("HTTP/1.1 413 "))
        try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
        #expect(try await client.receive(until: "\r\n\r\n1").contains("200 OK"))
      }
    }
  }

  @Test(
    "A client that expects 100-continue for a refused body receives the refusal, then the end",
    arguments: ["Content-Length: 100000", "Transfer-Encoding: chunked"]
  )
  func refusedExpectation(length: String) async throws {
    let fields = "Expect: 100-continue\r\n\(length)"
    try await withService(responder: refuses) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send("POST / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n")
        #expect(try await client.receiveAll().hasPrefix("HTTP/1.1 413 "))
      }
    }
  }

  // MARK: - Time limits

  @Test(
    "What stops half-way is given up, each part in its time",
    arguments: [
      ("GET / HT", "408"), ("GET / HTTP/1.1\r\nHost: a\r\n", "408"),
      ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf", "408"),
      ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\nhalf", "408"),
      ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", "408"),
    ]
  )
  func halfRequests(text: String, status: String) async throws {
    let brief = Duration.milliseconds(50)
    let configuration = HTTPService.Configuration(
      headTimeMax: brief,
      shortBodyTimeMax: brief,
      bodyPauseMax: brief
    )
    #expect(try await answer(to: text, configuration).hasPrefix("HTTP/1.1 \(status) "))
  }

  @Test("A body that comes more slowly than the least rate gets 408, although it does not pause")
  func tricklingBody() async throws {
    let configuration = HTTPService.Configuration(
      bodyPauseMax: .seconds(600),
      bodyTimeMin: .milliseconds(50),
      bodyRateMin: 1 << 30
    )
    let text = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\nhalf"
    #expect(try await answer(to: text, configuration).hasPrefix("HTTP/1.1 408 "))
  }

  @Test("Who says nothing is let go in silence")
  func idle() async throws {
    let configuration = HTTPService.Configuration(idleTimeMax: .milliseconds(50))
    #expect(try await answer(to: "", configuration).isEmpty)
  }

  @Test("A client that reads no responses receives no further ones and delays no other client")
  func slowReader() async throws {
    let answered = Mutex(0)
    let large: HTTPService.Responder = { request, _ in
      guard request.path == "/large" else { return .text("small.") }
      answered.withLock { $0 += 1 }
      return Response(status: .ok, body: .whole(ByteBuffer(repeating: 65, count: 8 << 20)))
    }
    try await withService(responder: large) { address, _ in
      try await RawConnection.with(address) { client in
        let request = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n"
        try await client.send(String(repeating: request, count: 100))
        try await RawConnection.with(address) { other in
          try await other.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
          #expect(try await other.receive(until: "small.").contains("200 OK"))
        }
      }
    }
    #expect(answered.withLock { $0 } < 10)
  }
}
