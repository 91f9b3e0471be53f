import HTTPMessages
import HTTPSupport
import HTTPTypes
import NIOCore
import ServiceLifecycle
import Synchronization
import Testing

@Suite("Immediate responders", .timeLimit(.minutes(5)))
struct ImmediateResponderTests {
  private let long: HTTPService.Responder = { request, _ in
    .text("long \(try await request.wholeBody(upTo: 1 << 20).readableBytes)")
  }

  private func post(_ path: String, _ body: String = "", _ fields: String = "") -> String {
    "POST \(path) HTTP/1.1\r\nHost: a\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
  }

  @Test("Requests are answered in their order, whatever answers them")
  func order() async throws {
    try await withService(immediate: ImmediateEcho(), responder: long) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send(post("/response", "x") + post("/short", "ab"))
        let short = try await client.receive(until: "short ab")
        #expect(short.contains("response x"))

        try await client.send(
          post("/other", "abc") + post("/short", "abcd") + "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        )
        let long = try await client.receive(until: "long 0")
        let bodies = long.split(separator: "\r\n").compactMap { line in
          ["long 3", "short abcd", "long 0"].first { line.hasPrefix($0) }
        }
        #expect(bodies == ["long 3", "short abcd", "long 0"])
      }
    }
  }

  @Test("A request that came in one piece with one being answered is answered after it")
  func longBehindShort() async throws {
    let echo = ImmediateEcho()
    try await withService(immediate: echo, responder: long) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send(post("/held", "ab") + "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await echo.held.value()
        echo.release()
        #expect(try await client.receive(until: "long 0").contains("short ab"))
      }
    }
  }

  @Test(
    "What is long or of unknown length is the responder's",
    arguments: [
      "Content-Length: 70000\r\n\r\n" + String(repeating: "x", count: 70_000),
      "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    ]
  )
  func goesOn(rest: String) async throws {
    try await withService(immediate: ImmediateEcho(), responder: long) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send("POST /short HTTP/1.1\r\nHost: a\r\n\(rest)")
        #expect(try await client.receive(until: "long ").contains("200 OK"))
      }
    }
  }

  @Test("A screened request is refused before any responder receives it")
  func screened() async throws {
    try await withService(immediate: ImmediateEcho(), responder: long) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send(post("/short", "ab", "Authorization: refused\r\n"))
        #expect(try await client.receive(until: "screened").contains("403"))
      }
    }
  }

  @Test("Connection: close ends the connection after the answer")
  func closes() async throws {
    try await withService(immediate: ImmediateEcho(), responder: long) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send(post("/short", "ab", "Connection: close\r\n"))
        #expect(try await client.receiveAll().hasSuffix("short ab"))
      }
    }
  }

  @Test("Who leaves is not waited for, at the latest when something is written to him")
  func clientLeaves() async throws {
    let echo = ImmediateEcho()
    let configuration = HTTPService.Configuration(halfCloseTimeMax: .zero)
    try await withService(configuration: configuration, immediate: echo, responder: long) {
      address,
      _ in
      try await RawConnection.with(address) { client in
        try await client.send(post("/held", "ab"))
        await echo.held.value()
      }
      await echo.stopped.value()
    }
  }

  @Test("A client that first sends no more, reads the probe, and then leaves is noticed")
  func clientLeavesAfterProbe() async throws {
    let echo = ImmediateEcho()
    let configuration = HTTPService.Configuration(halfCloseTimeMax: .zero)
    try await withService(configuration: configuration, immediate: echo, responder: long) {
      address,
      _ in
      try await RawConnection.with(address) { client in
        try await client.send(post("/held", "ab"))
        await echo.held.value()
        client.finishSending()
        _ = try await client.receive(until: "100 Continue\r\n\r\n")
      }
      await echo.stopped.value()
    }
  }

  @Test("Who only sends no more gets his answer")
  func halfClosed() async throws {
    let echo = ImmediateEcho()
    try await withService(immediate: echo, responder: long) { address, _ in
      try await RawConnection.with(address) { client in
        try await client.send(post("/held", "ab"))
        client.finishSending()
        await echo.held.value()
        echo.release()
        #expect(try await client.receiveAll().hasSuffix("short ab"))
      }
    }
  }

  @Test(
    "Where end of input means leaving, the answer is stopped and the connection stays till its end"
  )
  func leavesByEndOfInput() async throws {
    let echo = ImmediateEcho()
    let configuration = HTTPService.Configuration(halfCloseTimeMax: nil)
    try await withService(configuration: configuration, immediate: echo, responder: long) {
      address,
      _ in
      try await RawConnection.with(address) { client in
        try await client.send(post("/held", "ab"))
        await echo.held.value()
        client.finishSending()
        await echo.stopped.value()
        echo.release()
        #expect(try await client.receiveAll().hasSuffix("short ab"))
      }
    }
  }

  @Test("A stop of the server waits for an answer, and only then closes the connection")
  func quiesces() async throws {
    let echo = ImmediateEcho()
    try await withService(immediate: echo, responder: long) { address, group in
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

/// Accepts POSTs to its paths and echoes them.
private final class ImmediateEcho: ImmediateResponder {
  /// Fires when a request for `/held` has arrived; `stopped` fires when a request is stopped.
  let held = Moment()
  let stopped = Moment()
  private let waiting = Mutex<(@Sendable () -> Void)?>(nil)

  func begin(
    _ request: Request,
    on eventLoop: any EventLoop,
    reply: @escaping @Sendable (Response) -> Void
  ) -> (@Sendable () -> Void)? {
    guard request.method == .post, case .whole(let body) = request.body,
      ["/short", "/response", "/held"].contains(request.path)
    else { return nil }
    let text = String(buffer: body)
    let answer: @Sendable () -> Void = { reply(.text("short \(text)")) }
    switch request.path {
    case "/response":
      let bytes = ByteBuffer(string: "response \(text)")
      reply(Response(status: .ok, body: .produced { write in try await write(bytes) }))
    case "/held":
      waiting.withLock { $0 = answer }
      held.fire()
    default: answer()
    }
    return { [stopped] in stopped.fire() }
  }

  /// Responds to the held request.
  func release() { waiting.withLock { $0 }?() }
}

/// An event that occurs once.
private final class Moment: Sendable {
  private let stream: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation

  init() { (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(1)) }

  func fire() { continuation.yield() }

  /// Returns once the event has occurred.
  func value() async { for await _ in stream { break } }
}
