/// A function that handles plain HTTP requests.
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
/// The function receives requests with all methods, for all paths below its name. Request bodies of
/// up to 32 MiB are streamed to it. Response bodies can be streamed too, without a size limit, as
/// long as the function's timeout allows. When the client disconnects, the task of the handler is
/// cancelled.
///
/// With the option `cors`, preflight requests are answered without running the handler. An
/// `HTTPFunctionError` that the handler throws is sent with its status and text. Any other error is
/// logged, and the client receives status 500.
public struct OnRequest: CloudFunction {
  private let name: String
  private let options: FunctionOptions
  private let handler: @Sendable (HTTPFunctionRequest) async throws -> HTTPFunctionResponse

  /// Creates a function that responds to HTTP requests.
  public init(
    _ name: String,
    options: RequestOptions = RequestOptions(),
    handler: @escaping @Sendable (HTTPFunctionRequest) async throws -> HTTPFunctionResponse
  ) {
    self.name = name
    self.options = options.values
    self.handler = handler
  }

  /// The description of the function that a `FunctionsApp` uses to host it.
  public var definition: FunctionDefinition {
    FunctionDefinition(name: name, trigger: .http, options: options) { request, scope in
      await HTTPFunctionInvocation(scope: scope).reply(to: request, handler)
    }
  }

  /// Runs the handler and rethrows its error.
  @discardableResult
  public func run(_ request: HTTPFunctionRequest) async throws -> HTTPFunctionResponse {
    try await handler(request)
  }
}
