import Events
import HTTPTypes
import Identity
import Invocation
import NIOCore
import RuntimeSupport

/// Everything between the request of an event or a scheduled run and a handler, and back.
struct EventExchange {
  let scope: FunctionScope

  /// Answers an event: 204 when the handler returned, 500 when it threw, 400 when `prepare` did.
  ///
  /// `prepare` decodes the payload and returns the handler's run, so that two kinds of failure stay
  /// apart: a payload's failure is permanent, and the retry policy decides on a handler's. Google's
  /// protocol has no permanent failure, so in production such an event is acknowledged after it is
  /// logged; only a request that is no event at all gets 400 there.
  func reply(
    to request: InvocationRequest,
    _ prepare: (CloudEvent) throws -> () async throws -> Void
  ) async -> InvocationReply {
    await reply {
      try CloudEventReader.event(of: request)
    } preparing: {
      try prepare($0)
    }
  }

  /// Answers a request other than an event, in the same way.
  func reply<Envelope>(
    reading envelope: () throws -> Envelope,
    preparing prepare: (Envelope) throws -> () async throws -> Void
  ) async -> InvocationReply {
    let received: Envelope
    let run: () async throws -> Void
    do {
      received = try envelope()
    } catch {
      return refused(error)
    }
    do {
      run = try prepare(received)
    } catch {
      return scope.acknowledged(refused(error), .never)
    }
    do {
      try await run()
      return InvocationReply(head: HTTPResponse(status: .noContent), body: .whole(ByteBuffer()))
    } catch is CancellationError where Task.isCancelled {
      // A time-out or a shutdown: whoever cancelled decides what happens to the event.
      scope.logger.notice("The function was cancelled")
      return Self.text("The function was cancelled.", status: .internalServerError, advice: nil)
    } catch {
      let advice = (error as? EventError)?.advice
      let waits = advice != nil && advice != .never && scope.options.retry?.triesAgain == true
      // A handler that knows when to try again has coped; nobody needs to act.
      scope.logger.log(
        level: waits ? .warning : .error,
        "The function failed",
        metadata: ["error": "\(error)"]
      )
      return scope.acknowledged(
        Self.text("The function failed.", status: .internalServerError, advice: advice),
        advice
      )
    }
  }

  private func refused(_ error: any Error) -> InvocationReply {
    let reason =
      switch error {
      case let error as EventRefusal: error.message
      case let error as StatusError: error.statusMessage
      default: "The event does not decode: \(error)."
      }
    scope.logger.error("The event is refused", metadata: ["error": "\(reason)"])
    return Self.text(reason, status: .badRequest, advice: .never)
  }

  private static func text(
    _ text: String,
    status: HTTPResponse.Status,
    advice: RetryAdvice?
  ) -> InvocationReply {
    var head = HTTPResponse(status: status)
    let body = ByteBuffer(string: text + "\n")
    head.headerFields[.contentType] = "text/plain; charset=utf-8"
    head.headerFields[.contentLength] = String(body.readableBytes)
    head.headerFields.set(advice)
    return InvocationReply(head: head, body: .whole(body))
  }
}

extension FunctionScope {
  /// In production, a success when the event must not be retried; otherwise the reply itself.
  func acknowledged(_ reply: InvocationReply, _ advice: RetryAdvice?) -> InvocationReply {
    guard credentials.mode == .production, advice == .never else { return reply }
    return InvocationReply(head: HTTPResponse(status: .noContent), body: .whole(ByteBuffer()))
  }
}

extension HTTPFields {
  /// Tells Hearth, by its own header, and Cloud Tasks, by HTTP's, when to try again.
  mutating func set(_ advice: RetryAdvice?) {
    self[RetryAdvice.header] = advice?.headerValue
    switch advice {
    case .after(let seconds), .exactlyAfter(let seconds):
      self[.retryAfter] = String(Int(Swift.min(seconds, 86_400).rounded(.up)))
    case .never, nil: break
    }
  }
}
