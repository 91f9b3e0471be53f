package import HTTPMessages
package import HTTPTypes
import Identifiers
package import Identity
package import Invocation
import InvocationContext
package import Logging
import Manifests
package import NIOCore

/// A host that runs an app's functions within this process.
///
/// The worker's HTTP server and in-process tests both run functions through this type.
package struct FunctionHost: FunctionInvoker {
  private let functions: [String: FunctionDefinition]
  private let target: FunctionDefinition?
  private let preparations: [Preparation]
  private let manifest: FunctionManifest
  private let credentials: CredentialReader
  private let queueing: TaskQueueing?
  private let clock: FunctionClock.TestClock?
  private let debugFeatures: DebugFeatures
  private let requestTimeMax: Duration?
  private let makeLogger: @Sendable (_ function: String) -> Logger

  /// Creates a host after checking the app.
  ///
  /// With a `target` the host serves only that function, at every path. The target must fit its
  /// `signature`. A request that runs longer than `requestTimeMax` is cancelled and gets a 504
  /// response. With nil the host enforces no time limit. `tasks` receives the tasks that functions
  /// enqueue. Without it the environment of the process decides where they go. `clock` is the time
  /// that the functions have in a test.
  ///
  /// Throws `InvalidFunctionsError` for an invalid app, for a target that the app does not contain,
  /// and for a target that does not fit the signature.
  package init(
    app: FunctionsApp,
    target: String? = nil,
    signature: FunctionSignature? = nil,
    requestTimeMax: Duration? = nil,
    credentials: CredentialReader,
    tasks: (any TaskEnqueuer)? = nil,
    clock: FunctionClock.TestClock? = nil,
    debugFeatures: DebugFeatures = DebugFeatures(),
    makeLogger: @escaping @Sendable (_ function: String) -> Logger = { Logger(label: $0) }
  ) throws(InvalidFunctionsError) {
    self.manifest = try app.manifest()
    self.functions = Dictionary(app.functions.map { ($0.name, $0) }) { first, _ in first }
    self.credentials = credentials
    let options = functions.mapValues(\.options)
    self.queueing = tasks.map { TaskQueueing(enqueuer: $0, options: options) }
    self.clock = clock
    self.debugFeatures = debugFeatures
    self.makeLogger = makeLogger
    self.target = target.flatMap { [functions] in functions[$0] }
    if let target, self.target == nil {
      throw InvalidFunctionsError(problems: [
        "FUNCTION_TARGET is \"\(target)\", but no function has that name. There are: "
          + functions.keys.sorted().joined(separator: ", ") + "."
      ])
    }
    self.preparations = (self.target.map { [$0] } ?? app.functions).flatMap(\.preparations)
    self.requestTimeMax = requestTimeMax
    if let signature, let target = self.target, !signature.fits(target.trigger) {
      throw InvalidFunctionsError(problems: [
        "FUNCTION_SIGNATURE_TYPE is \"\(signature.rawValue)\", but the function "
          + "\"\(target.name)\" is of another kind; set "
          + "\(FunctionSignature.proper(for: target.trigger).rawValue)."
      ])
    }
  }

  /// Runs the preparations of the served functions once each, in the order of the functions.
  ///
  /// Stops at the first preparation that throws, and rethrows its error.
  package func prepare() async throws {
    var done: Set<ObjectIdentifier> = []
    for preparation in preparations
    where done.insert(ObjectIdentifier(preparation)).inserted {
      try await preparation.body()
    }
  }

  /// Runs the function that the request names.
  ///
  /// Throws only if there is no such function.
  package func invoke(_ request: InvocationRequest) async throws -> Response {
    guard let function = functions[request.function] else {
      throw InvocationError(.notFound, unknown(request.function))
    }
    return await run(function, request)
  }

  /// Returns true if the function of a request receives the body while it arrives.
  package func streamsBody(of head: HTTPRequest) -> Bool {
    target(of: head).function?.trigger == .http
  }

  /// Responds to an HTTP request whose body has arrived completely.
  package func respond(to head: HTTPRequest, body: ByteBuffer) async -> Response {
    await respond(to: head, body: .whole(body))
  }

  /// Responds to an HTTP request.
  ///
  /// `/__/health` reports health and `/__/functions.yaml` returns the manifest, unless the host
  /// serves a single target. Every other path runs the function that it names. The function sees
  /// only the part of the path below its name. The invocation id comes from the request header, or
  /// is generated if the header is missing.
  package func respond(
    to head: HTTPRequest,
    body: RequestBody
  ) async -> Response {
    if credentials.mode == .emulator {
      FunctionClock.follow(leadHeader: head.headerFields[InvocationRequest.clockLeadHeader])
    }
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

  /// Returns the function that a request addresses and the path that the function sees.
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

  /// Returns the response to a request whose body exceeds the limit of its function.
  package func refuseTooLarge(_ head: HTTPRequest) -> Response {
    refuseTooLarge(head, of: target(of: head).function)
  }

  private func refuseTooLarge(
    _ head: HTTPRequest,
    of function: FunctionDefinition?
  ) -> Response {
    CallableReply.error(
      .invalidArgument,
      "Request payload size exceeds the limit: \(Self.bytesMax(of: function)) bytes.",
      httpStatus: 413,
      for: head,
      function?.options.cors ?? .any
    )
  }

  private static func bytesMax(of function: FunctionDefinition?) -> Int {
    function?.trigger == .http ? FunctionLimits.uploadBytesMax : FunctionLimits.bodyBytesMax
  }

  private func run(
    _ function: FunctionDefinition,
    _ request: InvocationRequest
  ) async -> Response {
    guard request.wholeBody.readableBytes <= Self.bytesMax(of: function) else {
      return refuseTooLarge(request.head, of: function)
    }
    // Browsers and crawlers request these paths from any server. The contract of the Functions
    // Framework keeps such requests away from functions.
    let isEvent = FunctionSignature.proper(for: function.trigger) == .cloudevent
    if !isEvent, target != nil, Self.unserved.contains(Self.path(of: request.head)) {
      return Response(head: HTTPResponse(status: .notFound), body: .whole(ByteBuffer()))
    }
    let scope = FunctionScope(
      options: function.options,
      credentials: credentials,
      debugFeatures: debugFeatures,
      logger: makeLogger(function.name)
    )
    let deadline = requestTimeMax.map { ContinuousClock.now + $0 }
    let timeMax = function.options.timeout ?? .seconds(FunctionLimits.secondsDefault)
    let end = ContinuousClock.now + min(requestTimeMax ?? timeMax, timeMax)
    let failure = FailureRecorder()
    var reply = await within(request, failure, scope.logger, until: end) {
      await bounded(request) { await function.respond(request, scope) }
    }
    if credentials.mode == .emulator, let reason = failure.reason { reason.set(on: &reply.head) }
    if case .produced(let produce) = reply.body {
      let timed = deadline.map { deadline in
        TimedBody(
          deadline: deadline,
          lastEvent: function.trigger == .callable
            ? ServerSentEvents.frame(GoogleErrorBody.callable(.deadlineExceeded, late(request)))
            : nil
        )
      }
      reply.body = .produced { write in
        try await within(request, failure, scope.logger, until: end) {
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

  /// Runs the body of an invocation so that its log lines and writes can be attributed to it.
  private func within<Result>(
    _ request: InvocationRequest,
    _ failure: FailureRecorder,
    _ logger: Logger,
    until end: ContinuousClock.Instant,
    _ body: () async throws -> Result
  ) async rethrows -> Result {
    let fields = request.head.headerFields
    let invocation = RunningInvocation(
      id: request.id,
      trace: TraceContext(
        traceParent: fields[.traceParent],
        cloudTraceContext: fields[Self.cloudTraceHeader]
      ),
      failure: failure
    )
    return try await RunningInvocation.$current.withValue(invocation) {
      try await EventCause.with(
        header: fields[InvocationRequest.causeHeader],
        traceParent: fields[.traceParent]
      ) {
        try await InvocationDeadline.$current.withValue(end) {
          try await TaskQueueing.$current.withValue(queueing) {
            try await FunctionClock.$test.withValue(clock) {
              try await withLogger(logger) { _ in try await body() }
            }
          }
        }
      }
    }
  }

  private static let unserved: Set<Substring> = ["/robots.txt", "/favicon.ico"]

  /// Returns the function's reply, or a 504 response if the function exceeds the time limit.
  private func bounded(
    _ request: InvocationRequest,
    _ respond: @escaping @Sendable () async -> Response
  ) async -> Response {
    guard let requestTimeMax else { return await respond() }
    let origins = functions[request.function]?.options.cors ?? .any
    let race = ReplyRace()
    // The host owns this task until the function returns. It cannot wait for a function that
    // ignores cancellation, because then the caller would never get a response.
    let running = Task { race.finish(await respond()) }
    let timer = Task {
      // The timer is cancelled if the function finishes first.
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
  /// The request's position in a trace; nil if the request names no trace.
  package var trace: TraceContext?
  /// The recorder of the error that the handler throws.
  package var failure: FailureRecorder

  package init(
    id: String,
    trace: TraceContext? = nil,
    failure: FailureRecorder = FailureRecorder()
  ) {
    self.id = id
    self.trace = trace
    self.failure = failure
  }

  /// The invocation of the current task.
  ///
  /// Nil outside invocations, and in detached tasks that a function starts.
  @TaskLocal package static var current: RunningInvocation?
}

extension Response {
  fileprivate static func text(_ text: String, type: String) -> Response {
    let body = ByteBuffer(string: text)
    var head = HTTPResponse(status: .ok)
    head.headerFields[.contentType] = type
    head.headerFields[.contentLength] = String(body.readableBytes)
    return Response(head: head, body: .whole(body))
  }
}
