import Dispatch
import HTTPMessages
import HTTPTypes
import Invocation
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import Testing
import TestSupport

@testable import WorkerPool

/// The connection against a small server that responds by path.
@Suite("Worker connection", .timeLimit(.minutes(5)))
struct WorkerConnectionTests {
  @Test("A reply of unknown length is handed over in pieces, and the connection serves again")
  func streams() async throws {
    try await withConnection { connection, owner in
      for _ in 0..<2 {
        let reply = try await owner.send("/stream", over: connection)
        guard case .stream(let pieces) = reply.body else {
          Issue.record("The body is not streamed")
          return
        }
        var text = ""
        for try await piece in pieces { text += String(buffer: piece) }
        #expect(text == "abc")
        #expect(await owner.next() == .ended(isReusable: true))
      }
    }
  }

  @Test("A small reply is handed over whole, without the headers of its connection")
  func whole() async throws {
    try await withConnection { connection, owner in
      let reply = try await owner.send("/whole", over: connection)

      guard case .whole(let body) = reply.body else {
        Issue.record("The body is not whole")
        return
      }
      #expect(String(buffer: body) == "id=1 length=0 hop=none")
      #expect(reply.head.headerFields[.connection] == nil)
      #expect(await owner.next() == .ended(isReusable: false))
      await #expect(throws: NotSentError.self) { try await owner.send("/whole", over: connection) }
    }
  }

  @Test("A reply that is cut off breaks the invocation")
  func cut() async throws {
    try await withConnection { connection, owner in
      let reply = try await owner.send("/cut", over: connection)
      #expect(await owner.next() == .broke(isStreaming: true))

      await #expect(throws: CutError.self) { _ = try await reply.body.collect(upTo: 100) }
    }
  }

  @Test(
    "What a worker had sent when it crashed is delivered, even if its connection has not read it",
    arguments: ["/begin", "/stream"]
  )
  func crashed(path: String) async throws {
    let (sent, send) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .unbounded)
    try await withConnection(sent: { send.finish() }) { connection, owner in
      let invocation = owner.invocation(path)
      let reports = Mutex(0)
      // It blocks the connection's own event loop, which must not read before the crash.
      let free = DispatchSemaphore(value: 0)
      let reply: Response = try await withCheckedThrowingContinuation { continuation in
        let completion: WorkerInvocation.Completion = { continuation.resume(with: $0) }
        #expect(invocation.begin(completion))
        connection.eventLoop.execute {
          connection.send(invocation, for: owner)
          free.wait()
          invocation.workerCrashed(CutError()) { reports.withLock { $0 += 1 } }
        }
        Task {
          for await _ in sent {}
          free.signal()
        }
      }
      guard case .stream(let pieces) = reply.body else {
        Issue.record("The body is not streamed")
        return
      }
      var text = ""
      var error: (any Error)?
      do {
        for try await piece in pieces { text += String(buffer: piece) }
      } catch let thrown {
        error = thrown
      }
      let isWhole = path == "/stream"
      #expect(text == (isWhole ? "abc" : "ab"))
      #expect((error is CutError) == !isWhole)
      #expect(reports.withLock { $0 } == (isWhole ? 0 : 1))
      #expect(
        await owner.next() == (isWhole ? .ended(isReusable: false) : .broke(isStreaming: false))
      )
    }
  }

  @Test("A cancelled invocation half-closes; what the worker answers then settles it")
  func cancelled() async throws {
    try await withConnection { connection, owner in
      let invocation = owner.invocation("/wait")
      let call = Task { try await owner.send(invocation, over: connection) }
      await owner.waitUntilStarted(invocation)
      invocation.fail(CancellationError())
      invocation.cancelOnConnection()

      await #expect(throws: CancellationError.self) { try await call.value }
      #expect(await owner.next() == .ended(isReusable: false))
    }
  }

  @Test("A request's body goes out as it arrives, and the connection serves again")
  func uploads() async throws {
    try await withConnection { connection, owner in
      for _ in 0..<2 {
        let (pieces, piece) = AsyncThrowingStream.makeStream(of: ByteBuffer.self)
        let invocation = owner.invocation("/echo", body: .stream(pieces))
        piece.yield(ByteBuffer(string: "a"))
        let reply = try await owner.send(invocation, over: connection)
        guard case .stream(let echoed) = reply.body else {
          Issue.record("The body is not streamed")
          return
        }
        var texts = echoed.makeAsyncIterator()
        #expect(try await texts.next().map { String(buffer: $0) } == "a")
        piece.yield(ByteBuffer(string: "b"))
        #expect(try await texts.next().map { String(buffer: $0) } == "b")
        piece.finish()
        #expect(try await texts.next() == nil)
        #expect(await owner.next() == .ended(isReusable: true))
      }
    }
  }

  @Test("A worker that answers before the request's end is not sent another on that connection")
  func answersEarly() async throws {
    try await withConnection { connection, owner in
      let (pieces, piece) = AsyncThrowingStream.makeStream(of: ByteBuffer.self)
      piece.yield(ByteBuffer(string: "a"))
      let reply = try await owner.send(
        owner.invocation("/early", body: .stream(pieces)),
        over: connection
      )

      guard case .whole(let body) = reply.body else {
        Issue.record("The body is not whole")
        return
      }
      #expect(String(buffer: body) == "early")
      #expect(await owner.next() == .ended(isReusable: false))
      piece.finish()
    }
  }

  @Test("A request that does not arrive whole fails its invocation")
  func cutUpload() async throws {
    try await withConnection { connection, owner in
      let (pieces, piece) = AsyncThrowingStream.makeStream(of: ByteBuffer.self)
      piece.finish(throwing: CutError())

      await #expect(throws: CutError.self) {
        try await owner.send(owner.invocation("/wait", body: .stream(pieces)), over: connection)
      }
    }
  }

  /// Connects to a `WorkerStub`, which calls `sent` once its response is written.
  private func withConnection(
    sent: @escaping @Sendable () -> Void = {},
    _ body: (WorkerConnection, Owner) async throws -> Void
  ) async throws {
    let folder = try TemporaryFolder()
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.configureHTTPServerPipeline()
          try channel.pipeline.syncOperations.addHandler(WorkerStub(sent: sent))
        }
      }
      .bind(unixDomainSocketPath: folder.path("s")).get()
    let connection = try await WorkerConnection.connect(
      to: .socket(folder.path("s")),
      on: group.any(),
      WorkerFleet.Configuration()
    ).get()
    let result: Result<Void, any Error>
    do {
      result = .success(try await body(connection, Owner()))
    } catch {
      result = .failure(error)
    }
    connection.close()
    try await server.close()
    try await group.shutdownGracefully()
    try result.get()
  }
}

private struct CutError: Error {}
private struct NotSentError: Error {}

/// A recorder of the outcomes of its invocations.
private final class Owner: InvocationOwner {
  enum Event: Equatable {
    case ended(isReusable: Bool)
    case broke(isStreaming: Bool)
    case notSent
  }

  private let events: AsyncStream<Event>
  private let event: AsyncStream<Event>.Continuation

  init() {
    (events, event) = AsyncStream.makeStream()
  }

  func next() async -> Event? {
    for await event in events { return event }
    return nil
  }

  func invocation(
    _ path: String,
    body: RequestBody = .whole(ByteBuffer())
  ) -> WorkerInvocation {
    var head = HTTPRequest(method: .get, scheme: nil, authority: nil, path: path)
    head.headerFields[.connection] = "x-hop"
    head.headerFields[fieldName("x-hop")] = "1"
    return WorkerInvocation(InvocationRequest(id: "1", function: "f", head: head, body: body))
  }

  func send(_ path: String, over connection: WorkerConnection) async throws -> Response {
    try await send(invocation(path), over: connection)
  }

  func send(_ invocation: WorkerInvocation, over connection: WorkerConnection) async throws
    -> Response
  {
    try await withCheckedThrowingContinuation { continuation in
      let completion: WorkerInvocation.Completion = { continuation.resume(with: $0) }
      #expect(invocation.begin(completion))
      connection.send(invocation, for: self)
    }
  }

  /// Returns once the connection carries the invocation.
  func waitUntilStarted(_ invocation: WorkerInvocation) async {
    await eventually("the invocation is sent") { invocation.isCarried }
  }

  func invocationEnded(
    _ invocation: WorkerInvocation,
    on connection: WorkerConnection,
    isReusable: Bool
  ) {
    event.yield(.ended(isReusable: isReusable))
  }

  func invocationBroke(_ invocation: WorkerInvocation) {
    event.yield(.broke(isStreaming: invocation.isStreaming))
    invocation.fail(CutError())
  }

  func invocationNotSent(_ invocation: WorkerInvocation) {
    invocation.fail(NotSentError())
  }
}

/// A server that responds by path, as a worker might.
private final class WorkerStub: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private let sent: @Sendable () -> Void
  private var head: HTTPRequestHead?

  init(sent: @escaping @Sendable () -> Void) {
    self.sent = sent
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      self.head = head
      if head.uri == "/echo" {
        write(.head(HTTPResponseHead(version: .http1_1, status: .ok)), context)
      } else if head.uri == "/early" {
        var reply = HTTPResponseHead(version: .http1_1, status: .ok)
        reply.headers = ["content-length": "5"]
        write(.head(reply), context)
        write("early", context)
        write(.end(nil), context)
      }
    case .body(let piece):
      if head?.uri == "/echo" { write(String(buffer: piece), context) }
    case .end:
      guard let head else { return }
      if head.uri == "/echo" { write(.end(nil), context) } else { answer(head, context) }
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    // The client has disconnected, so pending work and the connection end.
    if case .some(.inputClosed) = event as? ChannelEvent { context.close(promise: nil) }
  }

  private func answer(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
    switch head.uri {
    case "/stream":
      write(.head(HTTPResponseHead(version: .http1_1, status: .ok)), context)
      for text in ["a", "b", "c"] { write(text, context) }
      write(.end(nil), context)
      sent()
    case "/begin":
      write(.head(HTTPResponseHead(version: .http1_1, status: .ok)), context)
      for text in ["a", "b"] { write(text, context) }
      sent()
    case "/whole":
      let id = head.headers.first(name: InvocationRequest.idHeader.rawName) ?? "none"
      let length = head.headers.first(name: "content-length") ?? "none"
      let text = "id=\(id) length=\(length) hop=\(head.headers.first(name: "x-hop") ?? "none")"
      var reply = HTTPResponseHead(version: .http1_1, status: .ok)
      reply.headers = ["content-length": "\(text.utf8.count)", "connection": "close"]
      write(.head(reply), context)
      write(text, context)
      write(.end(nil), context)
    case "/cut":
      write(.head(HTTPResponseHead(version: .http1_1, status: .ok)), context)
      write("a", context)
      context.close(promise: nil)
    default: break
    }
  }

  private func write(_ text: String, _ context: ChannelHandlerContext) {
    write(.body(.byteBuffer(ByteBuffer(string: text))), context)
  }

  private func write(_ part: HTTPServerResponsePart, _ context: ChannelHandlerContext) {
    context.writeAndFlush(wrapOutboundOut(part), promise: nil)
  }
}
