import HTTPSupport
import HTTPTypes
import HummingbirdCore
import Invocation
import NIOCore
import ServiceLifecycle
import Synchronization
import Testing

@Suite("The short way", .timeLimit(.minutes(1)))
struct ShortWayTests {
  private let long: HTTPService.Responder = { request, _ in
    .text("long \(try await request.wholeBody(upTo: 1 << 20).readableBytes)")
  }

  private func post(_ path: String, _ body: String = "", _ fields: String = "") -> String {
    "POST \(path) HTTP/1.1\r\nHost: a\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
  }

  @Test("Short requests are answered on the way, and those that come behind a long one after it")
  func order() async throws {
    try await withService(short: ShortEcho(), responder: long) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send(post("/response", "x") + post("/short", "ab"))
        let short = try await client.receive(until: "short ab")
        #expect(short.contains("response x"))

        try await client.send(
          post("/other", "abc") + post("/short", "abcd") + "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        )
        let long = try await client.receive(until: "long 0")
        let bodies = long.split(separator: "\r\n").compactMap { line in
          ["long 3", "long 4", "long 0"].first { line.hasPrefix($0) }
        }
        #expect(bodies == ["long 3", "long 4", "long 0"])
      }
    }
  }

  @Test("A long request that came in one piece with a short one is answered after it")
  func longBehindShort() async throws {
    let echo = ShortEcho()
    try await withService(short: echo, responder: long) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send(post("/held", "ab") + "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await echo.held.value()
        echo.release()
        #expect(try await client.receive(until: "long 0").contains("short ab"))
      }
    }
  }

  @Test(
    "A request that stops half-way is given up, whichever way it goes",
    arguments: ["/short", "/other"]
  )
  func halfRequest(path: String) async throws {
    let configuration = HTTPService.Configuration(idleTimeMax: .milliseconds(50))
    try await withService(configuration: configuration, short: ShortEcho(), responder: long) {
      address,
      _ in
      try await RawConnection.with(address) { client in
        try await client.send("POST \(path) HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf")
        #expect(try await client.receiveAll().isEmpty)
      }
    }
  }

  @Test(
    "What is long, of unknown length, or waits for a word to go on, goes on",
    arguments: [
      "Content-Length: 70000\r\n\r\n" + String(repeating: "x", count: 70_000),
      "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
      "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
    ]
  )
  func goesOn(rest: String) async throws {
    try await withService(short: ShortEcho(), responder: long) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send("POST /short HTTP/1.1\r\nHost: a\r\n\(rest)")
        #expect(try await client.receive(until: "long ").contains("200 OK"))
      }
    }
  }

  @Test("What is screened is refused, short or not")
  func screened() async throws {
    try await withService(short: ShortEcho(), responder: long) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send(post("/short", "ab", "Authorization: refused\r\n"))
        #expect(try await client.receive(until: "screened").contains("403"))
      }
    }
  }

  @Test("Connection: close ends the connection after the answer")
  func closes() async throws {
    try await withService(short: ShortEcho(), responder: long) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send(post("/short", "ab", "Connection: close\r\n"))
        #expect(try await client.receiveAll().hasSuffix("short ab"))
      }
    }
  }

  @Test("An answer under way is told when its client leaves, and the connection stays till its end")
  func clientLeaves() async throws {
    let echo = ShortEcho()
    try await withService(short: echo, responder: long) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send(post("/held", "ab"))
        await echo.held.value()
      }
      // The connection's end is what stops it.
      await echo.stopped.value()
    }
  }

  @Test("A stop of the server waits for a short answer, and only then closes the connection")
  func quiesces() async throws {
    let echo = ShortEcho()
    try await withService(short: echo, responder: long) { address, group in
      try await RawConnection.with(address) { client in
        try await client.send(post("/held", "ab"))
        await echo.held.value()
        await group.triggerGracefulShutdown()
        echo.release()
        #expect(try await client.receiveAll().hasSuffix("short ab"))
      }
    }
  }
}

/// Takes POSTs to its paths and says back what it got.
private final class ShortEcho: ShortResponder {
  /// Fires when `/held` has come, and when it was told to stop.
  let held = Moment()
  let stopped = Moment()
  private let waiting = Mutex<(@Sendable () -> Void)?>(nil)

  func takes(_ head: HTTPRequest) -> Bool {
    head.method == .post && ["/short", "/response", "/held"].contains(head.path)
  }

  func answer(
    _ head: HTTPRequest,
    _ body: ByteBuffer,
    on eventLoop: any EventLoop,
    reply: @escaping @Sendable (InvocationReply) -> Void
  ) -> @Sendable () -> Void {
    let text = String(buffer: body)
    let answer: @Sendable () -> Void = {
      let bytes = ByteBuffer(string: "short \(text)")
      var response = HTTPResponse(status: .ok)
      response.headerFields[.contentLength] = String(bytes.readableBytes)
      reply(InvocationReply(head: response, body: .whole(bytes)))
    }
    switch head.path {
    case "/response":
      let bytes = ByteBuffer(string: "response \(text)")
      let body = InvocationReply.Body.produced { write in try await write(bytes) }
      reply(InvocationReply(head: HTTPResponse(status: .ok), body: body))
    case "/held":
      waiting.withLock { $0 = answer }
      held.fire()
    default: answer()
    }
    return { [stopped] in stopped.fire() }
  }

  /// Answers what is held.
  func release() { waiting.withLock { $0 }?() }
}

/// Something that happens once.
private final class Moment: Sendable {
  private let stream: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation

  init() { (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(1)) }

  func fire() { continuation.yield() }

  /// Returns once it has happened.
  func value() async { for await _ in stream { break } }
}
