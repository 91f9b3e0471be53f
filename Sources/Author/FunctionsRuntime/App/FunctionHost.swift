package import HTTPTypes
package import Identity
package import Invocation
package import Logging
package import NIOCore
import RuntimeSupport

/// Runs an app's functions within this process.
///
/// The worker's HTTP server and in-process tests both come through here.
package struct FunctionHost: FunctionInvoker {
  private let functions: [String: FunctionDefinition]
  private let target: FunctionDefinition?
  private let preparations: [Preparation]
  private let manifest: FunctionManifest
  private let credentials: CredentialReader
  private let queueing: TaskQueueing?
  private let debugFeatures: DebugFeatures
  private let requestTimeMax: Duration?
  private let makeLogger: @Sendable (_ function: String) -> Logger

  /// A host of a checked app; with a `target` it serves that function only, at every path.
  ///
  /// The target must fit its `signature`. A request that runs for longer than `requestTimeMax` is
  /// cancelled and answered with 504; nil leaves that to others. `tasks` takes the tasks that
  /// functions enqueue; without it the process's environment decides. Throws `InvalidFunctions`,
  /// also when the app has no function of the target's name.
  package init(
    app: FunctionsApp,
    target: String? = nil,
    signature: FunctionSignature? = nil,
    requestTimeMax: Duration? = nil,
    credentials: CredentialReader,
    tasks: (any TaskEnqueuer)? = nil,
    debugFeatures: DebugFeatures = DebugFeatures(),
    makeLogger: @escaping @Sendable (_ function: String) -> Logger = { Logger(label: $0) }
  ) throws(InvalidFunctions) {
    self.manifest = try app.manifest()
    self.functions = Dictionary(app.functions.map { ($0.name, $0) }) { first, _ in first }
    self.credentials = credentials
    let options = functions.mapValues(\.options)
    self.queueing = tasks.map { TaskQueueing(enqueuer: $0, options: options) }
    self.debugFeatures = debugFeatures
    self.makeLogger = makeLogger
    self.target = target.flatMap { [functions] in functions[$0] }
    if let target, self.target == nil {
      throw InvalidFunctions(problems: [
        "FUNCTION_TARGET is \"\(target)\", but no function has that name. There are: "
          + functions.keys.sorted().joined(separator: ", ") + "."
      ])
    }
    self.preparations = (self.target.map { [$0] } ?? app.functions).flatMap(\.preparations)
    self.requestTimeMax = requestTimeMax
    if let signature, let target = self.target, !signature.fits(target.trigger) {
      throw InvalidFunctions(problems: [
        "FUNCTION_SIGNATURE_TYPE is \"\(signature.rawValue)\", but the function "
          + "\"\(target.name)\" is of another kind; set "
          + "\(FunctionSignature.proper(for: target.trigger).rawValue)."
      ])
    }
  }

  /// Runs the preparations of the served functions, in the functions' order; each once.
  ///
  /// Throws the first error of a preparation.
  package func prepare() async throws {
    var done: Set<ObjectIdentifier> = []
    for preparation in preparations
    where done.insert(ObjectIdentifier(preparation)).inserted {
      try await preparation.body()
    }
  }

  /// Runs the function that the request names; throws only when there is none.
  package func invoke(_ request: InvocationRequest) async throws -> InvocationReply {
    guard let function = functions[request.function] else {
      throw InvocationError(.notFound, unknown(request.function))
    }
    return await run(function, request)
  }

  /// Whether the function that the path names gets its body as the bytes arrive.
  package func streamsBody(of head: HTTPRequest) -> Bool {
    target(of: head).function?.trigger == .http
  }

  /// Answers an HTTP request whose body has arrived.
  package func respond(to head: HTTPRequest, body: ByteBuffer) async -> InvocationReply {
    await respond(to: head, body: .whole(body))
  }

  /// Answers an HTTP request: health, the manifest, or the function that the path names.
  ///
  /// The function sees the path below its name. The invocation's id comes with the request or is
  /// made up.
  package func respond(
    to head: HTTPRequest,
    body: InvocationRequest.Body
  ) async -> InvocationReply {
    switch Self.path(of: head) {
    case "/__/health": return .text("ok\n", type: "text/plain; charset=utf-8")
    case "/__/functions.yaml" where target == nil:
      return .text(manifest.json, type: "text/yaml; charset=utf-8")
    default: break
    }
    let (name, path, function) = target(of: head)
    guard let function else { return CallableReply.error(.notFound, unknown(name), for: head) }
    var head = head
    head.path = path
    let request = InvocationRequest(
      id: head.headerFields[InvocationRequest.idHeader] ?? RandomID.make(),
      function: name,
      head: head,
      body: body
    )
    return await run(function, request)
  }

  private static func path(of head: HTTPRequest) -> Substring {
    (head.path ?? "/").prefix { $0 != "?" }
  }

  /// The function that a request is for, and the target that it sees.
  private func target(
    of head: HTTPRequest
  ) -> (name: String, path: String?, function: FunctionDefinition?) {
    if let target { return (target.name, head.path, target) }
    if let name = head.headerFields[InvocationRequest.functionHeader] {
      return (name, head.path, functions[name])
    }
    let whole = head.path ?? "/"
    let name = whole.dropFirst().prefix { $0 != "/" && $0 != "?" }
    let rest = whole[name.endIndex...]
    return (String(name), rest.hasPrefix("/") ? String(rest) : "/\(rest)", functions[String(name)])
  }

  /// The answer to a request whose body is longer than its function takes.
  package func refuseTooLarge(_ head: HTTPRequest) -> InvocationReply {
    refuseTooLarge(head, of: target(of: head).function)
  }

  private func refuseTooLarge(
    _ head: HTTPRequest,
    of function: FunctionDefinition?
  ) -> InvocationReply {
    CallableReply.error(
      .invalidArgument,
      "Request payload size exceeds the limit: \(Self.bytesMax(of: function)) bytes.",
      httpStatus: 413,
      for: head,
      function?.options.cors ?? .any
    )
  }

  private static func bytesMax(of function: FunctionDefinition?) -> Int {
    function?.trigger == .http ? InvocationLimits.uploadBytesMax : InvocationLimits.bodyBytesMax
  }

  private func run(
    _ function: FunctionDefinition,
    _ request: InvocationRequest
  ) async -> InvocationReply {
    guard request.wholeBody.readableBytes <= Self.bytesMax(of: function) else {
      return refuseTooLarge(request.head, of: function)
    }
    // Browsers and crawlers ask any server for these; the framework's contract keeps them from
    // functions.
    let isEvent = FunctionSignature.proper(for: function.trigger) == .cloudevent
    if !isEvent, target != nil, Self.unserved.contains(Self.path(of: request.head)) {
      return InvocationReply(head: HTTPResponse(status: .notFound), body: .whole(ByteBuffer()))
    }
    let scope = FunctionScope(
      options: function.options,
      credentials: credentials,
      debugFeatures: debugFeatures,
      logger: makeLogger(function.name)
    )
    let deadline = requestTimeMax.map { ContinuousClock.now + $0 }
    let timeMax = function.options.timeout ?? .seconds(InvocationLimits.secondsDefault)
    let end = ContinuousClock.now + min(requestTimeMax ?? timeMax, timeMax)
    var reply = await within(request, scope.logger, until: end) {
      await bounded(request) { await function.respond(request, scope) }
    }
    if case .produced(let produce) = reply.body {
      let timed = deadline.map { deadline in
        TimedBody(
          deadline: deadline,
          lastEvent: function.trigger == .callable
            ? ServerSentEvents.frame(CallableErrorEnvelope.json(.deadlineExceeded, late(request)))
            : nil
        )
      }
      reply.body = .produced { write in
        try await within(request, scope.logger, until: end) {
          if let timed {
            try await timed.write(with: write, produce)
          } else {
            try await produce(write)
          }
        }
      }
    }
    if reply.head.status.kind == .serverError {
      reply.head.headerFields[Self.statusHeader] = "error"
    }
    return reply
  }

  /// Runs the work of an invocation, so that its log lines and writes can be attributed to it.
  private func within<Result>(
    _ request: InvocationRequest,
    _ logger: Logger,
    until end: ContinuousClock.Instant,
    _ body: () async throws -> Result
  ) async rethrows -> Result {
    let fields = request.head.headerFields
    let invocation = RunningInvocation(
      id: request.id,
      trace: TraceContext(
        traceParent: fields[InvocationRequest.traceHeader],
        cloudTraceContext: fields[Self.cloudTraceHeader]
      )
    )
    return try await RunningInvocation.$current.withValue(invocation) {
      try await EventCause.with(
        header: fields[InvocationRequest.causeHeader],
        traceParent: fields[InvocationRequest.traceHeader]
      ) {
        try await InvocationDeadline.$current.withValue(end) {
          try await TaskQueueing.$current.withValue(queueing) {
            try await withLogger(logger) { _ in try await body() }
          }
        }
      }
    }
  }

  private static let unserved: Set<Substring> = ["/robots.txt", "/favicon.ico"]

  /// The function's reply, or 504 when its time is over.
  private func bounded(
    _ request: InvocationRequest,
    _ respond: @escaping @Sendable () async -> InvocationReply
  ) async -> InvocationReply {
    guard let requestTimeMax else { return await respond() }
    let origins = functions[request.function]?.options.cors ?? .any
    let race = ReplyRace()
    // The host owns the task until the function returns. It cannot wait for a function that ignores
    // cancellation, or the caller would never get an answer.
    let running = Task { race.finish(await respond()) }
    let timer = Task {
      // Cancelled when the function was faster.
      guard (try? await Task.sleep(for: requestTimeMax)) != nil else { return }
      race.finish(
        CallableReply.error(.deadlineExceeded, late(request), for: request.head, origins)
      )
    }
    defer {
      timer.cancel()
      running.cancel()
    }
    return await withTaskCancellationHandler {
      await race.reply()
    } onCancel: {
      running.cancel()
    }
  }

  private func late(_ request: InvocationRequest) -> String {
    "\(request.function) did not finish within \(requestTimeMax ?? .zero)."
  }

  private static let statusHeader = fieldName("x-google-status")
  private static let cloudTraceHeader = fieldName("x-cloud-trace-context")

  private func unknown(_ name: String) -> String {
    "There is no function \"\(name)\". There are: "
      + functions.keys.sorted().joined(separator: ", ") + "."
  }
}

/// The invocation that the current task belongs to.
package struct RunningInvocation: Sendable {
  package var id: String
  /// The request's place in a trace; nil when it names none.
  package var trace: TraceContext?

  /// An invocation with its id.
  package init(id: String, trace: TraceContext? = nil) {
    self.id = id
    self.trace = trace
  }

  /// The invocation; nil outside invocations, and in tasks that a function detached from its own.
  @TaskLocal package static var current: RunningInvocation?
}

extension InvocationReply {
  fileprivate static func text(_ text: String, type: String) -> InvocationReply {
    let body = ByteBuffer(string: text)
    var head = HTTPResponse(status: .ok)
    head.headerFields[.contentType] = type
    head.headerFields[.contentLength] = String(body.readableBytes)
    return InvocationReply(head: head, body: .whole(body))
  }
}
