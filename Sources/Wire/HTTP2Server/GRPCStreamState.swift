import NIOCore
import StatusCodes

/// The state of one stream's requests and replies, which determines the next action.
///
/// The owner reports each event, then acts on `next()` until it returns nil.
struct GRPCStreamState {
  private enum Inbound {
    /// The call takes one request, which is set once it has arrived.
    case one(GRPCMessage?)
    case many
    /// The client has finished, or its further input no longer matters.
    case over
  }

  private enum Outbound {
    case idle
    case headSent
    case ended
  }

  private var inbound: Inbound
  private var outbound = Outbound.idle
  private var decoder: GRPCMessageDecoder
  private var clientFinished = false

  /// Creates the state of a call whose head was accepted.
  init(takesOneRequest: Bool, decoder: GRPCMessageDecoder) {
    inbound = takesOneRequest ? .one(nil) : .many
    self.decoder = decoder
  }

  /// The number of received bytes that no action has passed on yet.
  var heldBytes: Int {
    if case .one(let request?) = inbound {
      request.bytes.readableBytes + decoder.heldBytes
    } else {
      decoder.heldBytes
    }
  }

  /// An action for the owner of the stream.
  enum Action: Equatable {
    /// Run the call with its only request.
    case call(GRPCMessage)
    /// Pass the request to the running call.
    case deliver(GRPCMessage)
    /// Notify the running call that there are no more requests.
    case finishRequests
    /// End the call with this status.
    case fail(StatusError)
  }

  /// Records bytes of the request stream.
  mutating func received(_ bytes: ByteBuffer) {
    switch inbound {
    case .one, .many: decoder.append(bytes)
    case .over: break
    }
  }

  /// Records that the client has finished sending.
  mutating func receivedEnd() {
    clientFinished = true
  }

  /// Returns the next action; nil until more input arrives.
  mutating func next() -> Action? {
    switch inbound {
    case .over:
      return nil
    case .one(let request):
      return nextOfOne(request)
    case .many:
      do {
        if let message = try decoder.next() { return .deliver(message) }
      } catch {
        return fail(error)
      }
      guard clientFinished else { return nil }
      guard decoder.heldBytes == 0 else { return fail(Self.truncated) }
      inbound = .over
      return .finishRequests
    }
  }

  private mutating func nextOfOne(_ present: GRPCMessage?) -> Action? {
    var request = present
    do {
      while let message = try decoder.next() {
        guard request == nil else { return fail(Self.wrongCount) }
        request = message
      }
    } catch {
      return fail(error)
    }
    inbound = .one(request)
    guard clientFinished else { return nil }
    guard decoder.heldBytes == 0 else { return fail(Self.truncated) }
    guard let request else { return fail(Self.wrongCount) }
    inbound = .over
    return .call(request)
  }

  private mutating func fail(_ error: StatusError) -> Action {
    inbound = .over
    decoder.clear()
    return .fail(error)
  }

  /// Records a reply about to be written; true if the head must precede it, nil if it is too late.
  mutating func sending() -> Bool? {
    switch outbound {
    case .idle:
      outbound = .headSent
      return true
    case .headSent: return false
    case .ended: return nil
    }
  }

  /// Ends the call; true if the trailers are sent alone, without a head before them.
  ///
  /// Nil if the call has already ended.
  mutating func end() -> Bool? {
    guard outbound != .ended else { return nil }
    let trailersOnly = outbound == .idle
    closed()
    return trailersOnly
  }

  /// True if the end of the call has been written.
  var isEnded: Bool { outbound == .ended }

  /// Records that the stream is closed and nothing more can be written.
  mutating func closed() {
    outbound = .ended
    inbound = .over
    decoder.clear()
  }

  private static let truncated = StatusError.invalidArgument(
    "The request stream ended within a message."
  )

  /// The status that gRPC specifies for a wrong number of requests.
  private static let wrongCount = StatusError(
    .unimplemented,
    "The method takes exactly one request message."
  )
}
