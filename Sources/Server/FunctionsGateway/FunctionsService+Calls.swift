import FlowControl
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Identifiers
import Invocation
import InvocationContext
import Logging
import Manifests
import NIOCore
import StatusCodes

extension FunctionsService {
  /// The bytes of an HTTP function's body that are read before it is invoked.
  ///
  /// Most bodies are shorter. This applies only to bodies of known length.
  private static let readAheadBytes = 256 << 10

  /// Handles a call; its invocation is cancelled when the client disconnects.
  func call(_ request: Request, _ context: HTTPContext) async -> Response {
    let target = FunctionTarget(request.head.path ?? "/")
    let endpoint: FunctionEndpoint
    switch lookUp(target) {
    case .success(let found): endpoint = found
    case .failure(let refusal): return own(refusal).reply(to: request.head)
    }
    let isHTTP = endpoint.httpsTrigger != nil
    var bounded: BoundedBody?
    let body: RequestBody
    do {
      if isHTTP {
        let upload = try request.boundedBody(upTo: FunctionLimits.uploadBytesMax)
        bounded = upload
        // A body that may never be complete should not occupy a worker. A body without a length is
        // not read ahead, because its client may be waiting for a part of the response.
        let isAnnounced = request.headers[.contentLength] != nil
        body = isAnnounced ? try await upload.readAhead(Self.readAheadBytes) : upload.body
      } else {
        body = .whole(try await request.wholeBody(upTo: FunctionLimits.bodyBytesMax))
      }
    } catch {
      return GatewayErrorResponse(brokenBody: error).reply(to: request.head, isHTTP: isHTTP)
    }
    let invocation = invocation(of: target, request.head, body)
    let result: Result<Response, any Error>
    do {
      result = .success(
        try await context.client.whileConnected { try await invoker.invoke(invocation) }
      )
    } catch {
      result = .failure(error)
    }
    if case .failure = result, let failure = bounded?.failure {
      return GatewayErrorResponse(brokenBody: failure).reply(to: request.head, isHTTP: isHTTP)
    }
    return response(to: request.head, invocation, endpoint, result)
  }

  /// Begins to handle a call with a complete body, on the connection's event loop.
  ///
  /// The returned function cancels the invocation.
  func beginCall(
    _ request: Request,
    on eventLoop: any EventLoop,
    reply: @escaping @Sendable (Response) -> Void
  ) -> @Sendable () -> Void {
    let target = FunctionTarget(request.head.path ?? "/")
    let endpoint: FunctionEndpoint
    switch lookUp(target) {
    case .success(let found): endpoint = found
    case .failure(let refusal):
      reply(own(refusal).reply(to: request.head))
      return {}
    }
    let invocation = invocation(of: target, request.head, request.body)
    return invoker.begin(invocation, near: eventLoop) { result in
      reply(self.response(to: request.head, invocation, endpoint, result))
    }
  }

  /// Returns the client's response for the outcome of its invocation.
  private func response(
    to head: HTTPRequest,
    _ invocation: InvocationRequest,
    _ endpoint: FunctionEndpoint,
    _ result: Result<Response, any Error>
  ) -> Response {
    switch result {
    case .success(var reply):
      FailureReason.remove(from: &reply.head)
      if case .stream(let pieces) = reply.body, endpoint.callableTrigger != nil,
        ServerSentEvents.areWanted(by: head)
      {
        reply.body = EventStream.body(of: pieces) { answer(to: $0, invocation) }
      }
      return reply
    case .failure(let error):
      return answer(to: error, invocation)
        .reply(to: head, isHTTP: endpoint.httpsTrigger != nil)
    }
  }

  private func own(_ refusal: StatusError) -> GatewayErrorResponse {
    GatewayErrorResponse(refusal.statusCode, refusal.statusMessage)
  }

  /// Creates the invocation, with the headers and path that the function should see.
  private func invocation(
    of target: FunctionTarget,
    _ head: HTTPRequest,
    _ body: RequestBody
  ) -> InvocationRequest {
    var head = head
    head.path = target.path
    head.headerFields.removeServersOwn(prefixes: HTTPFields.serversOwn + ["ce-"])
    // On Cloud Run, each request belongs to a trace.
    if !(head.headerFields[.traceParent].map(TraceParent.isValid) ?? false) {
      head.headerFields[.traceParent] = Self.newTrace()
    }
    return InvocationRequest(id: makeID(), function: target.name, head: head, body: body)
  }

  private static func newTrace() -> String {
    func digits() -> String { UInt64.random(in: 1 ... .max).hexDigits }
    return "00-\(digits())\(digits())-\(digits())-01"
  }

  /// Returns the response for an invocation that failed before its response was complete.
  private func answer(to error: any Error, _ invocation: InvocationRequest) -> GatewayErrorResponse
  {
    let (id, function) = (invocation.id, invocation.function)
    guard let error = error as? InvocationError else {
      if !(error is CancellationError) {
        logger.error(
          "An invocation failed without a status",
          metadata: ["invocation.id": "\(id)", "function.name": "\(function)", "error": "\(error)"]
        )
      }
      return GatewayErrorResponse(.cancelled, "The request was cancelled.")
    }
    logger.debug(
      "An invocation has no reply",
      metadata: ["invocation.id": "\(id)", "error": "\(error)"]
    )
    switch error.kind {
    case .notFound: return GatewayErrorResponse(.notFound, notFound(function))
    case .overloaded:
      // Cloud Run responds with 429 if all instances are busy, and callables map 429 to this code.
      return GatewayErrorResponse(.resourceExhausted, error.message)
    case .cannotStart:
      // The reason is in the function's log; it may contain output that clients must not see.
      return GatewayErrorResponse(
        .unavailable,
        "The function \(function) cannot be started; see its log."
      )
    case .placesTaken, .unserved:
      // The message contains only numbers and function names, which a 404 lists as well.
      return GatewayErrorResponse(.unavailable, error.message)
    case .drained:
      return GatewayErrorResponse(
        .unavailable,
        "The function \(function) is being stopped; try again."
      )
    case .timedOut:
      return GatewayErrorResponse(.deadlineExceeded, "The function \(function) timed out (\(id)).")
    case .crashed:
      return GatewayErrorResponse(
        .internal,
        "The function \(function) crashed (\(id)).",
        isCrash: true
      )
    case .failed:
      return GatewayErrorResponse(
        .internal,
        "The function \(function) failed (\(id)).",
        isCrash: true
      )
    }
  }
}
