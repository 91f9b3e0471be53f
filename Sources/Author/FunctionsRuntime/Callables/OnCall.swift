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
/// Callers who may not call it are refused first. Then the body's `data` is decoded, before the
/// handler runs; data that does not decode is answered with `INVALID_ARGUMENT` and the path at
/// fault. Keys without a property are ignored, and `null`, which clients send for a call without
/// data, counts as an object without keys if `Payload` does not accept null.
/// `OnCall<FirestoreValue, …>` takes any JSON. The handler's return value is encoded as the
/// `result`; `OnCall<…, Void>` answers `null`. When the client goes away the handler's task is
/// cancelled.
///
/// A `CallableError` that the handler throws reaches the client; any other error is logged, and the
/// client is told `INTERNAL`.
public struct OnCall<Payload: Decodable & Sendable, Reply>: CloudFunction {
  private let function: CallableFunction<Payload, Reply>

  /// What a `FunctionsApp` needs to know in order to host the function.
  public var definition: FunctionDefinition { function.definition }

  /// Runs the handler if the caller may call it.
  ///
  /// Throws what the handler throws, and the `CallableError` of a refused caller.
  public func run(_ request: CallableRequest<Payload>) async throws -> Reply {
    try await function.run(request, nil)
  }
}

extension OnCall where Reply: Encodable & SendableMetatype {
  /// A function whose clients get what the handler returns.
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
  // Disfavoured, because a closure that is one `switch` or `if` expression would fit both.
  /// A function whose clients get `null`.
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
