public import FunctionsRuntime
import Invocation
import RuntimeSupport

extension FunctionsSuite {
  /// Calls a callable as a client does, and decodes its result.
  ///
  /// ```swift
  /// let greeting = try await suite.call(functions.greeting, GreetingQuery(), as: "tina")
  /// ```
  ///
  /// The request goes through the callable protocol, token included: `as: "tina"` signs a user in,
  /// and without it nobody is signed in. Throws the `CallableError` that a client would get.
  @discardableResult
  public func call<Function: CloudFunction, Payload: Encodable & Sendable>(
    _ function: Function,
    _ data: Payload,
    as token: TestToken = .anonymous
  ) async throws -> Function.Output
  where Function.Input == CallableRequest<Payload>, Function.Output: Decodable {
    try await send(data, to: function, token)
  }

  /// Calls a callable that returns nothing; otherwise like the form with a result.
  ///
  /// Throws as that form does.
  public func call<Function: CloudFunction, Payload: Encodable & Sendable>(
    _ function: Function,
    _ data: Payload,
    as token: TestToken = .anonymous
  ) async throws where Function.Input == CallableRequest<Payload>, Function.Output == Void {
    let _: FirestoreValue = try await send(data, to: function, token)
  }

  /// Calls a callable with data of a type other than its own, as a client of another version does.
  ///
  /// The result comes as the JSON it is. Throws the `CallableError` that a client would get.
  @discardableResult
  public func call(
    _ function: some CloudFunction,
    json data: some Encodable,
    as token: TestToken = .anonymous
  ) async throws -> FirestoreValue {
    try await send(data, to: function, token)
  }

  private func send<Reply: Decodable>(
    _ data: some Encodable,
    to function: some CloudFunction,
    _ token: TestToken
  ) async throws -> Reply {
    let definition = try core.definition(of: function)
    guard definition.trigger == .callable else {
      throw core.wrongKind(function.name, "clients call")
    }
    let dates = definition.options.dates ?? .secondsSince2001
    let request = try CallableClient.request(
      for: function.name,
      data,
      dates: dates,
      authorization: token.authorization(project: core.world.project)
    )
    let reply: InvocationReply
    do {
      reply = try await core.invoker.invoke(request)
    } catch let error as InvocationError {
      throw CallableError(error.statusCode, error.statusMessage)
    }
    return try await CallableClient.result(of: reply, dates: dates)
  }
}
