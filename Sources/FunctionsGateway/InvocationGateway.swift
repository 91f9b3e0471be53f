package import HTTPSupport
import HTTPTypes
package import HummingbirdCore
package import Invocation
package import Logging
import NIOCore
import RuntimeSupport

/// The door through which clients call functions: `/{project}/{region}/{name}[/…]`.
///
/// Passes bytes through in both directions; whatever a function answers is its own. By itself it
/// answers 404 with the names there are, 413, 429, 503, 504 and the 500 of a crash, all in the form
/// of a callable's error and with CORS headers, because browsers hide an error without them. Who
/// calls with `Accept: text/event-stream` gets these as the last event of a stream with status 200:
/// clients that read a stream look at its events and not at the status.
package struct InvocationGateway: Sendable {
  /// The longest body of a call.
  package static let bodyBytesMax = 10 << 20
  /// The longest body of a request to an HTTP function.
  package static let uploadBytesMax = 32 << 20

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
  package init(
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
  package func respond(to request: Request, _ context: HTTPContext) async -> Response {
    let target = FunctionTarget(request.uri.description)
    let endpoint: FunctionEndpoint
    switch lookUp(target) {
    case .success(let found): endpoint = found
    case .failure(let refusal):
      let answer = OwnAnswer(refusal.statusCode, refusal.statusMessage)
      return answer.response(to: request)
    }
    let isHTTP = endpoint.httpsTrigger != nil
    let bytesMax = isHTTP ? Self.uploadBytesMax : Self.bodyBytesMax
    let body: (whole: ByteBuffer, stream: RequestUpload?)
    do {
      body =
        isHTTP
        ? try await request.upload(upTo: bytesMax)
        : (try await request.wholeBody(upTo: bytesMax), nil)
    } catch is BodyTooLarge {
      return OwnAnswer.tooLarge(bytesMax).response(to: request, isHTTP: isHTTP)
    } catch {
      return OwnAnswer(.cancelled, "The request's body did not arrive.", closes: true)
        .response(to: request, isHTTP: isHTTP)
    }
    let id = makeID()
    var head = request.head
    head.path = target.path
    let invocation = InvocationRequest(
      id: id,
      function: target.name,
      head: head,
      body: body.stream.map { .stream($0.pieces) } ?? .whole(body.whole)
    )
    do {
      let reply = try await context.client.whileConnected { try await invoker.invoke(invocation) }
      var ending: EventStream.Ending?
      if endpoint.callableTrigger != nil, OwnAnswer.wantsStream(request) {
        ending = { answer(to: $0, id: id, function: target.name) }
      }
      return response(reply, context.client, ending).closing(body.stream, context)
    } catch {
      let answer =
        body.stream?.isTooLarge ?? false
        ? .tooLarge(bytesMax) : answer(to: error, id: id, function: target.name)
      return answer.response(to: request, isHTTP: isHTTP).closing(body.stream, context)
    }
  }

  func response(
    _ reply: InvocationReply,
    _ client: ClientWatch,
    _ ending: EventStream.Ending?
  ) -> Response {
    let head = reply.head
    let length = head.headerFields[.contentLength].flatMap(Int.init)
    let body: ResponseBody =
      switch reply.body {
      case .whole(let buffer): ResponseBody(byteBuffer: buffer)
      case .produced(let produce):
        ResponseBody(contentLength: length, producing: produce, for: client)
      case .stream(let pieces):
        if let ending {
          EventStream.body(of: pieces, client, ending)
        } else {
          ResponseBody(contentLength: length) { writer in
            // The function may be silent for long: only the watch tells then that the client left.
            while let piece = try await client.whileConnected({ try await pieces.nextElement() }) {
              try await writer.write(piece)
            }
            try await writer.finish(nil)
          }
        }
      }
    return Response(status: head.status, headers: head.headerFields, body: body)
  }

  /// What is told of an invocation that has no reply, or not all of it.
  func answer(to error: any Error, id: String, function: String) -> OwnAnswer {
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
      // 429, as Cloud Run says when all instances are busy, and as the callables' table has it.
      return OwnAnswer(.resourceExhausted, error.message)
    case .cannotStart:
      // The reason is in the function's log; it may hold output that is not for a client.
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

extension AsyncThrowingStream where Element: Sendable, Failure == any Error {
  /// The next element; every iterator of such a stream takes from the same source.
  func nextElement() async throws -> Element? {
    var iterator = makeAsyncIterator()
    return try await iterator.next()
  }
}
