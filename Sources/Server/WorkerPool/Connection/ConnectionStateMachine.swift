import NIOCore

/// Tracks the protocol state of a worker connection, which carries one request at a time.
struct ConnectionStateMachine {
  /// The parts of a response head that determine how the body is handled.
  struct Head: Equatable {
    var statusCode: Int
    var contentLength: Int?
    var isKeepAlive: Bool
  }

  enum HeadAction: Equatable {
    /// Drop an interim response, such as 100; the final response follows.
    case ignore
    /// Hold the head back until the body is complete.
    case keep
    /// Deliver the head now; the body follows in pieces.
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
    /// The response is complete, but no caller is waiting for it anymore.
    case finishAbandoned
  }

  enum CancelAction: Equatable {
    case none
    /// Signal the worker that the caller has left, and wait until it has closed its side.
    case halfClose
  }

  enum CloseAction: Equatable {
    case none
    /// The worker closed the connection before its response was complete.
    case breakInvocation
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

  /// The largest announced body that is collected and delivered as a whole.
  let wholeBytesMax: Int
  private var state = State.idle

  init(wholeBytesMax: Int) {
    self.wholeBytesMax = wholeBytesMax
  }

  /// True if the connection can carry a new request.
  var isIdle: Bool {
    if case .idle = state { true } else { false }
  }

  /// Begins a request; returns false if the connection cannot take it.
  mutating func start() -> Bool {
    guard case .idle = state else { return false }
    state = .awaitingHead
    return true
  }

  /// Processes the head of a response.
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

  /// Processes a piece of the body.
  ///
  /// The first piece of a collected body is kept without copying.
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

  /// Processes the end of the response.
  ///
  /// Afterwards the connection is idle, or must be closed if `isReusable` is false.
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

  /// Records that the caller has left.
  mutating func cancel() -> CancelAction {
    switch state {
    case .awaitingHead, .collecting, .streaming:
      state = .abandoned
      return .halfClose
    case .idle, .abandoned, .closed: return .none
    }
  }

  /// Records that the connection has closed or can no longer be used.
  mutating func closed() -> CloseAction {
    defer { state = .closed }
    switch state {
    case .awaitingHead, .collecting, .streaming: return .breakInvocation
    case .abandoned: return .finishAbandoned
    case .idle, .closed: return .none
    }
  }
}
