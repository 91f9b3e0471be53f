import NIOCore
import RuntimeSupport

/// What one stream has received and sent, and what to do next.
///
/// The owner reports what happens, then acts on `next()` until it is nil.
struct GRPCStreamState {
  private enum Inbound {
    /// The call's one request, once it has arrived.
    case one(GRPCMessage?)
    case many
    /// The client has finished, or what it sends no longer matters.
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

  /// The state of a call whose head was accepted.
  init(takesOneRequest: Bool, decoder: GRPCMessageDecoder) {
    inbound = takesOneRequest ? .one(nil) : .many
    self.decoder = decoder
  }

  /// The bytes that no action has handed out.
  var heldBytes: Int {
    if case .one(let request?) = inbound {
      request.bytes.readableBytes + decoder.heldBytes
    } else {
      decoder.heldBytes
    }
  }

  /// What the owner must do.
  enum Action: Equatable {
    /// Run the call with its one request.
    case call(GRPCMessage)
    /// Hand the request to the running call.
    case deliver(GRPCMessage)
    /// Tell the running call that no request follows.
    case finishRequests
    /// End the call with this status.
    case fail(StatusError)
  }

  /// Bytes of the request stream arrived.
  mutating func received(_ bytes: ByteBuffer) {
    switch inbound {
    case .one, .many: decoder.append(bytes)
    case .over: break
    }
  }

  /// The client has finished sending.
  mutating func receivedEnd() {
    clientFinished = true
  }

  /// The next thing to do, or nil until more arrives.
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

  /// Whether the head goes before the reply about to be written; nil when it is too late.
  mutating func sending() -> Bool? {
    switch outbound {
    case .idle:
      outbound = .headSent
      return true
    case .headSent: return false
    case .ended: return nil
    }
  }

  /// Whether the trailers stand alone, without a head before them, at the call's end.
  ///
  /// Nil when the call has already ended.
  mutating func end() -> Bool? {
    guard outbound != .ended else { return nil }
    let trailersOnly = outbound == .idle
    closed()
    return trailersOnly
  }

  /// Whether the call's end has been written.
  var isEnded: Bool { outbound == .ended }

  /// The stream is gone; nothing can be written any more.
  mutating func closed() {
    outbound = .ended
    inbound = .over
    decoder.clear()
  }

  private static let truncated = StatusError.invalidArgument(
    "The request stream ended within a message."
  )

  /// The status that gRPC lists for a wrong number of requests.
  private static let wrongCount = StatusError(
    .unimplemented,
    "The method takes exactly one request message."
  )
}
