/// A callable function, which clients reach with `httpsCallable(name)`.
///
/// ```swift
/// var greeting: OnCall<GreetingQuery, Greeting> {
///   .init("greeting", callers: .users) { request in
///     Greeting(text: "Hello, \(request.data.name)!")
///   }
/// }
/// ```
///
/// Each call passes these steps:
///
/// 1. Callers that `callers` does not allow are refused.
/// 2. The `data` of the body is decoded. Data that does not decode gets `INVALID_ARGUMENT` with the
///    path of the invalid value. Keys that `Payload` does not have are ignored. Clients send `null`
///    for a call without data. It is decoded as an empty object if `Payload` does not accept null.
/// 3. The handler runs. When the client disconnects, the task of the handler is cancelled.
/// 4. The value that the handler returns is encoded as the `result`.
///
/// `OnCall<FirestoreValue, …>` accepts any JSON, and `OnCall<…, Void>` returns `null`.
///
/// A `CallableError` that the handler throws reaches the client. Any other error is logged, and the
/// client receives `INTERNAL`.
public struct OnCall<Payload: Decodable & Sendable, Reply>: CloudFunction {
  private let function: CallableFunction<Payload, Reply>

  /// The description of the function that a `FunctionsApp` uses to host it.
  public var definition: FunctionDefinition { function.definition }

  /// Runs the handler if `callers` allows the caller.
  ///
  /// Throws the `CallableError` of a refused caller, and rethrows the error of the handler.
  @discardableResult
  public func run(_ request: CallableRequest<Payload>) async throws -> Reply {
    try await function.run(request, nil)
  }
}

extension OnCall where Reply: Encodable & SendableMetatype {
  /// Creates a callable whose clients receive the value that the handler returns.
  public init(
    _ name: String,
    callers: CallableCallers = .anyone,
    options: CallableOptions = CallableOptions(),
    handler: @escaping @Sendable (CallableRequest<Payload>) async throws -> Reply
  ) {
    function = CallableFunction(name, callers, options) { request, _ in try await handler(request) }
  }
}

extension OnCall where Reply == Void {
  // Disfavored, because a closure that is a single `switch` or `if` expression matches both
  // initializers.
  /// Creates a callable whose clients receive `null`.
  @_disfavoredOverload
  public init(
    _ name: String,
    callers: CallableCallers = .anyone,
    options: CallableOptions = CallableOptions(),
    handler: @escaping @Sendable (CallableRequest<Payload>) async throws -> Void
  ) {
    function = CallableFunction(name, callers, options) { request, _ in try await handler(request) }
  }
}
