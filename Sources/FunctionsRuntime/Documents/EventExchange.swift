import HTTPTypes
import Invocation
import NIOCore
import RuntimeSupport

/// Everything between the HTTP request of a CloudEvent and a handler, and back.
struct EventExchange {
  let scope: FunctionScope

  /// Answers an event: 204 when the handler returned, 500 when it threw, 400 when `prepare` did.
  ///
  /// `prepare` decodes the payload and gives back the handler's run, so that the two kinds of
  /// failure stay apart: one is permanent, the other for the retry policy to decide.
  func reply(
    to request: InvocationRequest,
    _ prepare: (ReceivedEvent) throws -> () async throws -> Void
  ) async -> InvocationReply {
    let run: () async throws -> Void
    do {
      run = try prepare(try ReceivedEvent(request))
    } catch {
      return refused(error)
    }
    do {
      try await run()
      return InvocationReply(head: HTTPResponse(status: .noContent), body: .whole(ByteBuffer()))
    } catch is CancellationError where Task.isCancelled {
      // Time-out or shutdown: who cancelled knows what becomes of the event.
      scope.logger.notice("The function was cancelled")
      return Self.text("The function was cancelled.", status: .internalServerError, advice: nil)
    } catch {
      scope.logger.error("The function failed", metadata: ["error": "\(error)"])
      let advice = (error as? EventError)?.advice
      return Self.text("The function failed.", status: .internalServerError, advice: advice)
    }
  }

  private func refused(_ error: any Error) -> InvocationReply {
    let reason =
      switch error {
      case let error as ReceivedEvent.Refusal: error.message
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
    head.headerFields[RetryAdvice.header] = advice?.headerValue
    return InvocationReply(head: head, body: .whole(body))
  }
}
