public import FunctionsRuntime
import HTTPMessages
import Invocation
import StatusCodes

extension FunctionsSuite {
  /// Calls a callable as a client does and decodes its result.
  ///
  /// ```swift
  /// let greeting = try await suite.call(functions.greeting, GreetingQuery(), as: "tina")
  /// ```
  ///
  /// The request passes through the whole callable protocol, including the token. `as: "tina"`
  /// signs a user in; without `as` the caller is not signed in. Throws the `CallableError` that a
  /// client would receive; its description also has the handler's own error, which clients never
  /// see.
  @discardableResult
  public func call<Function: CloudFunction, Payload: Encodable & Sendable>(
    _ function: Function,
    _ data: Payload,
    as token: TestToken = .anonymous
  ) async throws -> Function.Output
  where Function.Input == CallableRequest<Payload>, Function.Output: Decodable {
    try await send(data, to: function, token)
  }

  /// Calls a callable that returns no value, as a client does.
  ///
  /// Throws the `CallableError` that a client would receive.
  public func call<Function: CloudFunction, Payload: Encodable & Sendable>(
    _ function: Function,
    _ data: Payload,
    as token: TestToken = .anonymous
  ) async throws where Function.Input == CallableRequest<Payload>, Function.Output == Void {
    let _: FirestoreValue = try await send(data, to: function, token)
  }

  /// Calls a callable with data of any type, like a client of another version.
  ///
  /// Returns the result as plain JSON. Throws the `CallableError` that a client would receive.
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
      authorization: token.authorization(project: core.environment.project)
    )
    let reply: Response
    do {
      reply = try await core.invoker.invoke(request)
    } catch let error as InvocationError {
      throw CallableError(error.statusCode, error.statusMessage)
    }
    do {
      return try await CallableClient.result(of: reply, dates: dates)
    } catch var error as CallableError {
      if error.code == .internal { error.cause = core.recorder.error(loggedBy: request.id) }
      throw error
    }
  }
}
