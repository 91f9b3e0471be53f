/// An HTTP function: it gets requests as they are and answers as it likes.
///
/// ```swift
/// var upload: OnRequest {
///   .init("upload") { request in
///     var size = 0
///     for try await bytes in request.body { size += bytes.count }
///     return .text("\(size) bytes\n")
///   }
/// }
/// ```
///
/// It serves all methods and all paths below its name. Bodies are streamed both ways: a request's
/// up to 32 MiB, a response's without bound within the function's timeout. When the client goes
/// away the handler's task is cancelled. With the option `cors`, preflights are answered before the
/// handler. An `HTTPFunctionError` that the handler throws is sent with its status and text; any
/// other error is logged, and the client gets 500.
public struct OnRequest: CloudFunction {
  private let name: String
  private let options: FunctionOptions
  private let handler: @Sendable (HTTPFunctionRequest) async throws -> HTTPFunctionResponse

  /// A function that answers requests.
  public init(
    _ name: String,
    options: RequestOptions = RequestOptions(),
    handler: @escaping @Sendable (HTTPFunctionRequest) async throws -> HTTPFunctionResponse
  ) {
    self.name = name
    self.options = options.values
    self.handler = handler
  }

  /// What a `FunctionsApp` needs to know in order to host the function.
  public var definition: FunctionDefinition {
    FunctionDefinition(name: name, trigger: .http, options: options) { request, scope in
      await HTTPFunctionExchange(scope: scope).reply(to: request, handler)
    }
  }

  /// Runs the handler; throws what it throws.
  public func run(_ request: HTTPFunctionRequest) async throws -> HTTPFunctionResponse {
    try await handler(request)
  }
}
