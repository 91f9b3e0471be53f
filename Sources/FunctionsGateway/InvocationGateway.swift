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
/// of a callable's error and with CORS headers, because browsers hide an error without them.
package struct InvocationGateway: Sendable {
  /// The longest body of a request.
  package static let bodyBytesMax = 10 << 20

  /// The most names that a 404 lists.
  private static let namesMax = 100

  private let project: String
  private let functions: @Sendable () -> [String: FunctionEndpoint]
  private let invoker: any FunctionInvoker
  private let makeID: @Sendable () -> String
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
    if let refusal = refusal(of: target) {
      return own(refusal.statusCode, refusal.statusMessage, for: request)
    }
    let body: ByteBuffer
    do {
      body = try await request.wholeBody(upTo: Self.bodyBytesMax)
    } catch is BodyTooLarge {
      return own(
        .invalidArgument,
        "The request's body is longer than \(Self.bodyBytesMax) bytes.",
        httpStatus: 413,
        closes: true,
        for: request
      )
    } catch {
      return own(.cancelled, "The request's body did not arrive.", closes: true, for: request)
    }
    let id = makeID()
    var head = request.head
    head.path = target.path
    let invocation = InvocationRequest(id: id, function: target.name, head: head, body: body)
    do {
      let reply = try await context.client.whileConnected { try await invoker.invoke(invocation) }
      return response(reply, context.client)
    } catch {
      return response(error, id: id, function: target.name, for: request)
    }
  }

  private func response(_ reply: InvocationReply, _ client: ClientWatch) -> Response {
    let head = reply.head
    switch reply.body {
    case .whole(let buffer):
      return Response(
        status: head.status,
        headers: head.headerFields,
        body: ResponseBody(byteBuffer: buffer)
      )
    case .stream(let pieces):
      let length = head.headerFields[.contentLength].flatMap(Int.init)
      return Response(
        status: head.status,
        headers: head.headerFields,
        body: ResponseBody(contentLength: length) { writer in
          // The function may be silent for long: only the watch tells then that the client left.
          while let piece = try await client.whileConnected({ try await pieces.nextElement() }) {
            try await writer.write(piece)
          }
          try await writer.finish(nil)
        }
      )
    }
  }

  private func response(
    _ error: any Error,
    id: String,
    function: String,
    for request: Request
  ) -> Response {
    guard let error = error as? InvocationError else {
      if !(error is CancellationError) {
        logger.error(
          "An invocation failed without a status",
          metadata: ["invocation.id": "\(id)", "function.name": "\(function)", "error": "\(error)"]
        )
      }
      return own(.cancelled, "The request was cancelled.", for: request)
    }
    logger.debug(
      "An invocation has no reply",
      metadata: ["invocation.id": "\(id)", "error": "\(error)"]
    )
    switch error.kind {
    case .notFound: return own(.notFound, notFound(function), for: request)
    case .overloaded:
      return own(.resourceExhausted, error.message, httpStatus: 503, for: request)
    case .cannotStart:
      // The reason is in the function's log; it may hold output that is not for a client.
      let message = "The function \(function) cannot be started; see its log."
      return own(.unavailable, message, for: request)
    case .drained:
      return own(
        .unavailable,
        "The function \(function) is being stopped; try again.",
        for: request
      )
    case .timedOut:
      return own(.deadlineExceeded, "The function \(function) timed out (\(id)).", for: request)
    case .crashed:
      return own(.internal, "The function \(function) crashed (\(id)).", for: request)
    case .failed:
      return own(.internal, "The function \(function) failed (\(id)).", for: request)
    }
  }

  /// An answer of the gateway itself.
  private func own(
    _ code: StatusCode,
    _ message: String,
    httpStatus: Int? = nil,
    closes: Bool = false,
    for request: Request
  ) -> Response {
    if let preflight = CORSPolicy.callables.preflight(request) { return preflight }
    var response = Response.error(code, message, form: .callable, httpStatus: httpStatus)
    CORSPolicy.callables.apply(to: &response, for: request)
    // What is left of a body that was not read is not worth reading.
    if closes { response.headers[.connection] = "close" }
    return response
  }

  private func refusal(of target: FunctionTarget) -> StatusError? {
    guard !target.name.isEmpty else {
      return StatusError(
        .notFound,
        "A function is called at /\(project)/REGION/NAME. \(names())"
      )
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
      return StatusError(
        .notFound,
        "This server runs project \(project), not \(target.project). \(names())"
      )
    }
    guard let endpoint = functions()[target.name] else {
      return StatusError(.notFound, notFound(target.name))
    }
    guard endpoint.regions.contains(target.region) else {
      let regions = endpoint.regions.joined(separator: ", ")
      return StatusError(
        .notFound,
        "The function \(target.name) is in region \(regions), not \(target.region)."
      )
    }
    guard endpoint.eventTrigger == nil else {
      return StatusError(
        .notFound,
        "The function \(target.name) is triggered by events and cannot be called; "
          + "`hearth fire \(target.name)` sends it one. \(names())"
      )
    }
    return nil
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
  fileprivate func nextElement() async throws -> Element? {
    var iterator = makeAsyncIterator()
    return try await iterator.next()
  }
}
