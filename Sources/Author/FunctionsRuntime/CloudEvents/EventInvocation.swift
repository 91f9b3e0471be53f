import Events
import HTTPMessages
import HTTPTypes
import Identity
import Invocation
import NIOCore
import StatusCodes

/// The protocol between the request of an event or a scheduled run and its handler.
struct EventInvocation {
  let scope: FunctionScope

  /// Responds with 204 if the handler returns, 500 if it throws, and 400 if `prepare` throws.
  ///
  /// `prepare` decodes the payload and returns a closure that runs the handler. This separates two
  /// kinds of failures: an invalid payload is a permanent failure, while the retry policy applies
  /// to a failed handler. Google's protocol has no permanent failure. In production an event that
  /// fails permanently is therefore logged and acknowledged. Only a request that is not an event at
  /// all gets 400 there.
  func reply(
    to request: InvocationRequest,
    _ prepare: (CloudEvent) throws -> () async throws -> Void
  ) async -> Response {
    await reply {
      try CloudEventReader.event(of: request)
    } preparing: {
      try prepare($0)
    }
  }

  /// Responds to a request that is not a CloudEvent, by the same rules as for events.
  func reply<Envelope>(
    reading envelope: () throws -> Envelope,
    preparing prepare: (Envelope) throws -> () async throws -> Void
  ) async -> Response {
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
      return Response(head: HTTPResponse(status: .noContent), body: .whole(ByteBuffer()))
    } catch is CancellationError where Task.isCancelled {
      // A timeout or a shutdown. The caller that cancelled decides what happens to the event.
      scope.logger.notice("The function was cancelled")
      return Self.text("The function was cancelled.", status: .internalServerError, advice: nil)
    } catch {
      let advice = (error as? EventError)?.advice
      let waits = advice != nil && advice != .never && scope.options.retry?.triesAgain == true
      // A handler that requests a retry has handled the problem, so a warning is sufficient.
      await scope.handlerThrew(error, level: waits ? .warning : .error)
      return scope.acknowledged(
        Self.text("The function failed.", status: .internalServerError, advice: advice),
        advice
      )
    }
  }

  private func refused(_ error: any Error) -> Response {
    let reason =
      switch error {
      case let error as EventRefusedError: error.message
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
  ) -> Response {
    var head = HTTPResponse(status: status)
    let body = ByteBuffer(string: text + "\n")
    head.headerFields[.contentType] = "text/plain; charset=utf-8"
    head.headerFields[.contentLength] = String(body.readableBytes)
    head.headerFields.set(advice)
    return Response(head: head, body: .whole(body))
  }
}

extension FunctionScope {
  /// Returns a success in production if the event must not be retried; otherwise returns the reply.
  func acknowledged(_ reply: Response, _ advice: RetryAdvice?) -> Response {
    guard credentials.mode == .production, advice == .never else { return reply }
    return Response(head: HTTPResponse(status: .noContent), body: .whole(ByteBuffer()))
  }
}

extension HTTPFields {
  /// Sets the headers that say when to retry: Hearth's own, and `Retry-After` for Cloud Tasks.
  mutating func set(_ advice: RetryAdvice?) {
    self[RetryAdvice.header] = advice?.headerValue
    switch advice {
    case .after(let seconds), .exactlyAfter(let seconds):
      self[.retryAfter] = String(Int(Swift.min(seconds, 86_400).rounded(.up)))
    case .never, nil: break
    }
  }
}
