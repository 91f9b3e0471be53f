import NIOCore

/// Follows one request at a time over one connection to a worker.
struct ConnectionStateMachine {
  /// What the head of a reply says about its body.
  struct Head: Equatable {
    var statusCode: Int
    var contentLength: Int?
    var isKeepAlive: Bool
  }

  enum HeadAction: Equatable {
    /// An interim reply, such as 100; the real one follows.
    case ignore
    /// Keep the head until the body is whole.
    case keep
    /// Hand the head over; the body follows in pieces.
    case deliver
  }

  enum BodyAction: Equatable {
    case none
    case forward(ByteBuffer)
  }

  enum EndAction: Equatable {
    case none
    case deliverWhole(ByteBuffer)
    case finishStream
    /// The reply is complete, but nobody waits for it any more.
    case finishAbandoned
  }

  enum CancelAction: Equatable {
    case none
    /// Tell the worker that nobody waits, and wait until it has closed its side.
    case halfClose
  }

  enum CloseAction: Equatable {
    case none
    /// The worker went away before it had answered.
    case breakExchange
    case finishAbandoned
  }

  private enum State {
    case idle
    case awaitingHead
    case collecting(ByteBuffer?, isKeepAlive: Bool)
    case streaming(isKeepAlive: Bool)
    case abandoned
    case closed
  }

  /// Replies announced up to this size are handed over whole.
  let wholeBytesMax: Int
  private var state = State.idle

  /// A fresh connection.
  init(wholeBytesMax: Int) {
    self.wholeBytesMax = wholeBytesMax
  }

  /// Whether the connection takes a request.
  var isIdle: Bool {
    if case .idle = state { true } else { false }
  }

  /// Begins a request; false when the connection does not take one.
  mutating func start() -> Bool {
    guard case .idle = state else { return false }
    state = .awaitingHead
    return true
  }

  /// Takes the head of a reply.
  mutating func head(_ head: Head) -> HeadAction {
    guard case .awaitingHead = state, head.statusCode >= 200 else { return .ignore }
    let hasNoBody = head.statusCode == 204 || head.statusCode == 304
    if hasNoBody || head.contentLength.map({ $0 <= wholeBytesMax }) ?? false {
      state = .collecting(nil, isKeepAlive: head.isKeepAlive)
      return .keep
    }
    state = .streaming(isKeepAlive: head.isKeepAlive)
    return .deliver
  }

  /// Takes a piece of the body; the first piece of a whole body is kept without copying.
  mutating func body(_ piece: ByteBuffer) -> BodyAction {
    switch state {
    case .collecting(let collected, let isKeepAlive):
      state = .idle
      if var collected {
        collected.writeImmutableBuffer(piece)
        state = .collecting(collected, isKeepAlive: isKeepAlive)
      } else {
        state = .collecting(piece, isKeepAlive: isKeepAlive)
      }
      return .none
    case .streaming: return .forward(piece)
    case .idle, .awaitingHead, .abandoned, .closed: return .none
    }
  }

  /// Ends the reply, after which the connection is idle or must be closed.
  mutating func end() -> (action: EndAction, isReusable: Bool) {
    switch state {
    case .collecting(let body, let isKeepAlive):
      state = isKeepAlive ? .idle : .closed
      return (.deliverWhole(body ?? ByteBuffer()), isKeepAlive)
    case .streaming(let isKeepAlive):
      state = isKeepAlive ? .idle : .closed
      return (.finishStream, isKeepAlive)
    case .abandoned:
      state = .closed
      return (.finishAbandoned, false)
    case .awaitingHead: return (.none, true)
    case .idle, .closed: return (.none, false)
    }
  }

  /// Notes that the caller has gone.
  mutating func cancel() -> CancelAction {
    switch state {
    case .awaitingHead, .collecting, .streaming:
      state = .abandoned
      return .halfClose
    case .idle, .abandoned, .closed: return .none
    }
  }

  /// Notes that the connection has ended or can no longer be used.
  mutating func closed() -> CloseAction {
    defer { state = .closed }
    switch state {
    case .awaitingHead, .collecting, .streaming: return .breakExchange
    case .abandoned: return .finishAbandoned
    case .idle, .closed: return .none
    }
  }
}
