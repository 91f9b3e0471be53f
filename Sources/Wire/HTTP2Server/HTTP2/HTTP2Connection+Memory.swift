import HTTPSupport
import NIOCore
import StatusCodes

/// The memory of requests and replies.
extension HTTP2Connection {
  /// Reserves memory for an incoming request and ends its call if the budget is full.
  ///
  /// The memory stays reserved until the call ends, because a handler then has the request.
  func holdRequest(_ stream: HTTP2Stream, moved bytes: Int) {
    guard let budget, !stream.isClosed, let call = stream.call else { return }
    if stream.requestHold == nil, call.heldBytes > HTTP2Stream.uncountedBytesMax {
      stream.requestHold = makeHold(budget, stream.id) { _, stream in
        stream.call?.refuseForSize(Self.stalled)
      }
    }
    guard let hold = stream.requestHold else { return }
    hold.moved(bytes)
    guard !hold.set(call.heldBytes), !hold.isEnded else { return }
    call.refuseForSize(StatusError(budget.error.statusCode, budget.error.statusMessage))
  }

  /// Reserves memory for replies that the client has not read.
  ///
  /// Resets the stream if the budget is full.
  func holdReplies(_ stream: HTTP2Stream, moved bytes: Int) {
    guard let budget, !stream.isClosed else { return }
    guard stream.queuedBytes > HTTP2Stream.uncountedBytesMax else {
      stream.replyHold = nil
      return
    }
    let hold =
      stream.replyHold
      ?? makeHold(budget, stream.id) { connection, stream in
        connection.reset(stream, .enhanceYourCalm)
      }
    stream.replyHold = hold
    hold.moved(bytes)
    if !hold.set(stream.queuedBytes), !hold.isEnded { reset(stream, .enhanceYourCalm) }
  }

  private func makeHold(
    _ budget: TransferBudget,
    _ id: UInt32,
    _ onEnd: @escaping @Sendable (HTTP2Connection, HTTP2Stream) -> Void
  ) -> TransferHold {
    let eventLoop = context?.eventLoop
    return TransferHold(budget) { [weak self] in
      eventLoop?.execute { [weak self] in
        guard let self, let stream = self.streams[id] else { return }
        onEnd(self, stream)
      }
    }
  }

  static let tooManyHeld = StatusError(
    .resourceExhausted,
    "The calls of this connection hold too many bytes."
  )
  private static let stalled = StatusError(
    .unavailable,
    "The request stopped half-way, and its memory was needed for others."
  )
}
