package import HTTPTypes
import HummingbirdCore
package import Invocation
package import NIOCore
import NIOHTTPTypes

/// Answers short requests on the connection's event loop, without the connection's task.
///
/// Most of a small request's cost is the way from the event loop to the answering task and back. A
/// responder that can begin an answer without waiting takes this way; all other requests go to the
/// `HTTPService.Responder` as usual.
package protocol ShortResponder: Sendable {
  /// Whether it answers a request with this head, whose body is at most 64 KiB.
  func takes(_ head: HTTPRequest) -> Bool

  /// Begins to answer a request that it takes; must not block.
  ///
  /// Calls `reply` once, on any thread, even after it was told to stop. Returns a closure that
  /// stops the answer when the client leaves.
  func answer(
    _ head: HTTPRequest,
    _ body: ByteBuffer,
    on eventLoop: any EventLoop,
    reply: @escaping @Sendable (InvocationReply) -> Void
  ) -> @Sendable () -> Void
}

/// Diverts short requests before they reach the connection's task.
///
/// Sits between the HTTP decoder and Hummingbird's handlers. A request is short when the responder
/// takes it, its length is announced, and no earlier request of the connection is still being
/// answered. While a short request is being answered, later ones wait here.
final class ShortWay: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  /// The longest body of a short request.
  static let bodyBytesMax = 64 << 10
  /// The parts of later requests kept while a short one is answered; beyond that, reading stops.
  private static let waitingMax = 64

  private enum State {
    /// Nothing is in progress here; `passed` requests are in progress further on.
    case passing
    case collecting(HTTPRequest, ByteBuffer)
    case answering(stop: @Sendable () -> Void, closes: Bool)
  }

  private let responder: any ShortResponder
  private let screen: HTTPService.Screen
  private let idleTimeMax: TimeAmount
  private var state = State.passing
  /// The requests that went on and are unanswered, and how many of them have arrived whole.
  private var passed = 0
  private var received = 0
  /// Counts the short requests.
  private var begun: UInt64 = 0
  private var waiting: [HTTPRequestPart] = []
  private var isReadHeld = false
  private var heldEvents: [Any] = []
  private var lastActive = NIODeadline.now()
  private var timer: Scheduled<Void>?
  private var context: ChannelHandlerContext?

  init(
    _ responder: any ShortResponder,
    screen: @escaping HTTPService.Screen,
    idleTimeMax: TimeAmount
  ) {
    self.responder = responder
    self.screen = screen
    self.idleTimeMax = idleTimeMax
  }

  // MARK: Life

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    watchIdleness(until: .now() + idleTimeMax, context)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    timer?.cancel()
    self.context = nil
  }

  func channelInactive(context: ChannelHandlerContext) {
    stop()
    context.fireChannelInactive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case ChannelEvent.inputClosed = event { stop() }
    // Further on, the connection looks idle although it is not, and would be closed.
    if case .passing = state {
      context.fireUserInboundEventTriggered(event)
    } else {
      heldEvents.append(event)
    }
  }

  // MARK: Requests

  func read(context: ChannelHandlerContext) {
    guard waiting.count < Self.waitingMax else {
      isReadHeld = true
      return
    }
    context.read()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let part = unwrapInboundIn(data)
    lastActive = .now()
    switch (state, part) {
    case (.answering, _): waiting.append(part)
    case (.passing, .head(let head)):
      guard passed == 0, isShort(head) else {
        passed += 1
        return context.fireChannelRead(data)
      }
      state = .collecting(head, ByteBuffer())
    case (.passing, .end):
      received += 1
      context.fireChannelRead(data)
    case (.passing, .body): context.fireChannelRead(data)
    case (.collecting(let head, var body), .body(var piece)):
      // Moved out of the state first, so that the buffer is not copied.
      state = .passing
      if body.readableBytes == 0 { body = piece } else { body.writeBuffer(&piece) }
      state = .collecting(head, body)
    case (.collecting(let head, let body), .end): begin(head, body, context)
    case (.collecting, .head): context.fireChannelRead(data)
    }
  }

  private func isShort(_ head: HTTPRequest) -> Bool {
    guard let length = head.headerFields[.contentLength].flatMap({ Int($0) }),
      length <= Self.bodyBytesMax, head.headerFields[.expect] == nil, responder.takes(head)
    else { return false }
    // A refused request goes on, and is refused further on.
    return screen(Request(head: head, body: RequestBody(buffer: ByteBuffer()))) == nil
  }

  private func begin(_ head: HTTPRequest, _ body: ByteBuffer, _ context: ChannelHandlerContext) {
    lastActive = .now()
    let closes = head.headerFields[.connection]?.lowercased() == "close"
    // There is nothing to stop until `answer` has returned, and by then it may be over.
    state = .answering(stop: {}, closes: closes)
    begun += 1
    let number = begun
    let eventLoop = context.eventLoop
    let bound = NIOLoopBound(self, eventLoop: eventLoop)
    let stop = responder.answer(head, body, on: eventLoop) { reply in
      if eventLoop.inEventLoop {
        bound.value.write(reply)
      } else {
        eventLoop.execute { bound.value.write(reply) }
      }
    }
    if case .answering = state, number == begun { state = .answering(stop: stop, closes: closes) }
  }

  private func stop() {
    if case .answering(let stop, _) = state { stop() }
  }

  // MARK: Responses

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if case .end = unwrapOutboundIn(data) {
      // A malformed request is answered too, so there can be one answer more than requests.
      passed = max(0, passed - 1)
      received = max(0, received - 1)
      lastActive = .now()
    }
    context.write(data, promise: promise)
  }

  private func write(_ reply: InvocationReply) {
    guard let context, case .answering(_, let closes) = state else { return }
    let head = reply.head
    switch reply.body {
    case .whole(let body):
      context.write(wrapOutboundOut(.head(head)), promise: nil)
      if body.readableBytes > 0 { context.write(wrapOutboundOut(.body(body)), promise: nil) }
      context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
      answered(closes: closes || head.headerFields[.connection] == "close", context)
    case .stream, .produced:
      let response = Response(reply, for: ClientWatch())
      let writer = Writer(bound: NIOLoopBound(self, eventLoop: context.eventLoop))
      let closes = closes || response.headers[.connection] == "close"
      let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
      let eventLoop = context.eventLoop
      // The connection owns the task, which ends with the response or at the first write after its
      // end.
      Task {
        do {
          try await writer.write(.head(response.head))
          try await response.body.write(writer)
          eventLoop.execute { bound.value.ended(closes: closes) }
        } catch {
          eventLoop.execute { bound.value.context?.close(promise: nil) }
        }
      }
    }
  }

  private func ended(closes: Bool) {
    if let context { answered(closes: closes, context) }
  }

  private func answered(closes: Bool, _ context: ChannelHandlerContext) {
    lastActive = .now()
    state = .passing
    guard !closes else { return context.close(promise: nil) }
    let parts = waiting
    waiting = []
    for part in parts { channelRead(context: context, data: wrapInboundOut(part)) }
    // Further on a request is looked at when the reading is complete.
    if !parts.isEmpty { context.fireChannelReadComplete() }
    if case .passing = state {
      let events = heldEvents
      heldEvents = []
      for event in events { context.fireUserInboundEventTriggered(event) }
    }
    if isReadHeld {
      isReadHeld = false
      read(context: context)
    }
  }

  private func send(_ part: HTTPResponsePart) -> EventLoopFuture<Void>? {
    guard let context else { return nil }
    let promise = context.eventLoop.makePromise(of: Void.self)
    context.writeAndFlush(wrapOutboundOut(part), promise: promise)
    return promise.futureResult
  }

  /// Writes the body of a response; each piece waits until the previous one has left.
  private struct Writer: ResponseBodyWriter {
    let bound: NIOLoopBound<ShortWay>

    func write(_ part: HTTPResponsePart) async throws {
      let bound = self.bound
      try await bound.eventLoop.flatSubmit { () -> EventLoopFuture<Void> in
        bound.value.send(part) ?? bound.eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel)
      }.get()
    }

    mutating func write(_ buffer: ByteBuffer) async throws { try await write(.body(buffer)) }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {
      try await write(.end(trailingHeaders))
    }
  }

  // MARK: Idleness

  /// Closes the connection after a long silence.
  ///
  /// Hummingbird's own watch does not see the requests that are answered here.
  private func watchIdleness(until deadline: NIODeadline, _ context: ChannelHandlerContext) {
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(deadline: deadline) { bound.value.timerFired() }
  }

  private func timerFired() {
    guard let context else { return }
    let isBusy =
      switch state {
      case .answering: true
      case .collecting: false
      case .passing: received > 0
      }
    let end = (isBusy ? .now() : lastActive) + idleTimeMax
    guard end <= .now() else { return watchIdleness(until: end, context) }
    context.close(promise: nil)
  }
}
