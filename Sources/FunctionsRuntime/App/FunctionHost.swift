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
  private let manifest: FunctionManifest
  private let credentials: CredentialReader
  private let makeLogger: @Sendable (_ function: String) -> Logger

  /// Bodies of callables and events; Cloud Functions' own limit.
  package static let bodyBytesMax = 10 * 1024 * 1024

  /// A host of a checked app; with a `target` it serves that function only, at every path.
  ///
  /// Throws `InvalidFunctions`, also when the app has no function of the target's name.
  package init(
    app: FunctionsApp,
    target: String? = nil,
    credentials: CredentialReader,
    makeLogger: @escaping @Sendable (_ function: String) -> Logger = { Logger(label: $0) }
  ) throws(InvalidFunctions) {
    self.manifest = try app.manifest()
    self.functions = Dictionary(app.functions.map { ($0.name, $0) }) { first, _ in first }
    self.credentials = credentials
    self.makeLogger = makeLogger
    self.target = target.flatMap { [functions] in functions[$0] }
    if let target, self.target == nil {
      throw InvalidFunctions(problems: [
        "FUNCTION_TARGET is \"\(target)\", but no function has that name. There are: "
          + functions.keys.sorted().joined(separator: ", ") + "."
      ])
    }
  }

  /// Runs the function that the request names; throws only when there is none.
  package func invoke(_ request: InvocationRequest) async throws -> InvocationReply {
    guard let function = functions[request.function] else {
      throw InvocationError(.notFound, unknown(request.function))
    }
    return await run(function, request)
  }

  /// Answers an HTTP request: health, the manifest, or the function that the path names.
  ///
  /// The invocation's id comes with the request, else it is made up.
  package func respond(to head: HTTPRequest, body: ByteBuffer) async -> InvocationReply {
    let path = (head.path ?? "/").prefix { $0 != "?" }
    switch path {
    case "/__/health": return .text("ok\n", type: "text/plain; charset=utf-8")
    case "/__/functions.yaml": return .text(manifest.json, type: "text/yaml; charset=utf-8")
    default: break
    }
    let name = target?.name ?? String(path.dropFirst().prefix { $0 != "/" })
    guard let function = functions[name] else {
      return CallableReply.error(.notFound, unknown(name), for: head)
    }
    let request = InvocationRequest(
      id: head.headerFields[InvocationRequest.idHeader] ?? RandomID.make(),
      function: name,
      head: head,
      body: body
    )
    return await run(function, request)
  }

  /// The answer to a request whose body is longer than `bodyBytesMax`.
  package func refuseTooLarge(_ head: HTTPRequest) -> InvocationReply {
    CallableReply.error(
      .invalidArgument,
      "Request payload size exceeds the limit: \(Self.bodyBytesMax) bytes.",
      httpStatus: 413,
      for: head
    )
  }

  private func run(
    _ function: FunctionDefinition,
    _ request: InvocationRequest
  ) async -> InvocationReply {
    guard request.body.readableBytes <= Self.bodyBytesMax else {
      return refuseTooLarge(request.head)
    }
    return await RunningInvocation.$current.withValue(RunningInvocation(id: request.id)) {
      let scope = FunctionScope(
        options: function.options,
        credentials: credentials,
        logger: makeLogger(function.name)
      )
      return await function.respond(request, scope)
    }
  }

  private func unknown(_ name: String) -> String {
    "There is no function \"\(name)\". There are: "
      + functions.keys.sorted().joined(separator: ", ") + "."
  }
}

/// The invocation that the current task belongs to.
package struct RunningInvocation: Sendable {
  package var id: String

  /// Nil outside invocations, and in tasks that a function detached from its own.
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
