import HTTPSupport
import HTTPTypes
import HummingbirdCore
import Invocation
import Logging
import NIOCore
import RuntimeSupport

/// The door through which clients call functions: `/{project}/{region}/{name}[/…]`.
///
/// It passes bytes through in both directions; a function's answer stays as it is. The gateway
/// itself answers a 404 with the existing names, 413, 429, 503, 504 and the 500 of a crash, all in
/// the form of a callable's error and with CORS headers, because browsers hide an error without
/// them. A client that calls with `Accept: text/event-stream` gets these as the last event of a
/// stream with status 200, because clients that read a stream look at its events and not at the
/// status.
struct InvocationGateway: Sendable {
  /// The most names that a 404 lists.
  private static let namesMax = 100

  private let project: String
  private let functions: @Sendable () -> [String: FunctionEndpoint]
  let invoker: any FunctionInvoker
  let makeID: @Sendable () -> String
  private let logger: Logger
  private let loggedProjects = OnceEach()

  /// A door to the functions of one project.
  ///
  /// `functions` is asked with each request; `makeID` makes the invocations' ids.
  init(
    project: String,
    functions: @escaping @Sendable () -> [String: FunctionEndpoint],
    invoker: any FunctionInvoker,
    makeID: @escaping @Sendable () -> String = { RandomID.make() },
    logger: Logger
  ) {
    self.project = project
    self.functions = functions
    self.invoker = invoker
    self.makeID = makeID
    self.logger = logger
  }

  /// Answers one request; the invocation is cancelled when the client goes away.
  func respond(to request: Request, _ context: HTTPContext) async -> Response {
    var upload: RequestUpload?
    let reply = await reply(to: request, context.client, &upload)
    return Response(reply, for: context.client).closing(upload, context)
  }

  private func reply(
    to request: Request,
    _ client: ClientWatch,
    _ upload: inout RequestUpload?
  ) async -> InvocationReply {
    let target = FunctionTarget(request.uri.description)
    let endpoint: FunctionEndpoint
    switch lookUp(target) {
    case .success(let found): endpoint = found
    case .failure(let refusal):
      return OwnAnswer(refusal.statusCode, refusal.statusMessage).reply(to: request.head)
    }
    let isHTTP = endpoint.httpsTrigger != nil
    let bytesMax = isHTTP ? InvocationLimits.uploadBytesMax : InvocationLimits.bodyBytesMax
    let body: InvocationRequest.Body
    do {
      if isHTTP {
        (body, upload) = try await request.upload(upTo: bytesMax)
      } else {
        body = .whole(try await request.wholeBody(upTo: bytesMax))
      }
    } catch is BodyTooLarge {
      return OwnAnswer.tooLarge(bytesMax).reply(to: request.head, isHTTP: isHTTP)
    } catch {
      return OwnAnswer(.cancelled, "The request's body did not arrive.", closes: true)
        .reply(to: request.head, isHTTP: isHTTP)
    }
    let invocation = invocation(of: target, request.head, body)
    do {
      var reply = try await client.whileConnected { try await invoker.invoke(invocation) }
      if case .stream(let pieces) = reply.body, endpoint.callableTrigger != nil,
        ServerSentEvents.areWanted(by: request.head)
      {
        reply.body = EventStream.body(of: pieces) { answer(to: $0, invocation) }
      }
      return reply
    } catch {
      let own =
        upload?.isTooLarge ?? false ? .tooLarge(bytesMax) : answer(to: error, invocation)
      return own.reply(to: request.head, isHTTP: isHTTP)
    }
  }

  /// The request as the function must see it.
  func invocation(
    of target: FunctionTarget,
    _ head: HTTPRequest,
    _ body: InvocationRequest.Body
  ) -> InvocationRequest {
    var head = head
    head.path = target.path
    head.headerFields.removeServersOwn(prefixes: HTTPFields.serversOwn + ["ce-"])
    return InvocationRequest(id: makeID(), function: target.name, head: head, body: body)
  }

  /// The answer for an invocation that has no reply, or only part of one.
  func answer(to error: any Error, _ invocation: InvocationRequest) -> OwnAnswer {
    let (id, function) = (invocation.id, invocation.function)
    guard let error = error as? InvocationError else {
      if !(error is CancellationError) {
        logger.error(
          "An invocation failed without a status",
          metadata: ["invocation.id": "\(id)", "function.name": "\(function)", "error": "\(error)"]
        )
      }
      return OwnAnswer(.cancelled, "The request was cancelled.")
    }
    logger.debug(
      "An invocation has no reply",
      metadata: ["invocation.id": "\(id)", "error": "\(error)"]
    )
    switch error.kind {
    case .notFound: return OwnAnswer(.notFound, notFound(function))
    case .overloaded:
      // 429, as Cloud Run answers when all instances are busy, and as in the callables' table.
      return OwnAnswer(.resourceExhausted, error.message)
    case .cannotStart:
      // The reason is in the function's log; it may hold output that clients must not see.
      return OwnAnswer(.unavailable, "The function \(function) cannot be started; see its log.")
    case .drained:
      return OwnAnswer(.unavailable, "The function \(function) is being stopped; try again.")
    case .timedOut:
      return OwnAnswer(.deadlineExceeded, "The function \(function) timed out (\(id)).")
    case .crashed:
      return OwnAnswer(.internal, "The function \(function) crashed (\(id)).", isCrash: true)
    case .failed:
      return OwnAnswer(.internal, "The function \(function) failed (\(id)).", isCrash: true)
    }
  }

  func lookUp(_ target: FunctionTarget) -> Result<FunctionEndpoint, StatusError> {
    func refused(_ message: String) -> Result<FunctionEndpoint, StatusError> {
      .failure(StatusError(.notFound, message))
    }
    guard !target.name.isEmpty else {
      return refused("A function is called at /\(project)/REGION/NAME. \(names())")
    }
    guard target.project == project else {
      if loggedProjects.isNew(target.project) {
        logger.warning(
          """
          Calls to project \(target.project); this suite serves \(project). Correct the client's \
          project, or start with --project.
          """
        )
      }
      return refused("This server runs project \(project), not \(target.project). \(names())")
    }
    guard let endpoint = functions()[target.name] else {
      return refused(notFound(target.name))
    }
    guard endpoint.regions.contains(target.region) else {
      let regions = endpoint.regions.joined(separator: ", ")
      return refused("The function \(target.name) is in region \(regions), not \(target.region).")
    }
    guard endpoint.eventTrigger == nil else {
      return refused(
        "The function \(target.name) is triggered by events and cannot be called; "
          + "`hearth fire \(target.name)` sends it one. \(names())"
      )
    }
    return .success(endpoint)
  }

  private func notFound(_ name: String) -> String {
    "There is no function named \(name). \(names())"
  }

  private func names() -> String {
    let callable = functions().filter { $0.value.eventTrigger == nil }
    guard !callable.isEmpty else { return "No function that can be called is deployed." }
    let names = callable.map { "\($0.value.regions[0])/\($0.key)" }.sorted()
    let more = names.count > Self.namesMax ? " and \(names.count - Self.namesMax) more" : ""
    return "Functions: \(names.prefix(Self.namesMax).joined(separator: ", "))\(more)."
  }
}
