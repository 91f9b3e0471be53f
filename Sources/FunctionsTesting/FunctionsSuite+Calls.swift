import FunctionsRuntime
import Invocation
import RuntimeSupport

extension FunctionsSuite {
  /// Calls a callable as a client does, and decodes its result.
  ///
  /// The request goes through the callable protocol, token included: `as: "tina"` signs a user in,
  /// and without it nobody is. Throws the `CallableError` that a client would get.
  public func call<Reply: Decodable>(
    _ function: String,
    _ data: some Encodable,
    as token: TestToken = .anonymous
  ) async throws -> Reply {
    let dates = dates(of: function)
    return try await CallableClient.result(
      of: try await send(function, data, token),
      dates: dates
    )
  }

  /// Calls a callable whose result does not matter; see the other.
  public func call(
    _ function: String,
    _ data: some Encodable,
    as token: TestToken = .anonymous
  ) async throws {
    let _: Value = try await call(function, data, as: token)
  }

  private func dates(of function: String) -> JSONDates {
    core.function(function)?.options.dates ?? .secondsSince2001
  }

  private func send(
    _ function: String,
    _ data: some Encodable,
    _ token: TestToken
  ) async throws -> InvocationReply {
    guard core.function(function)?.trigger == .callable else {
      throw CallableError(.notFound, "There is no callable named \(function) in this suite.")
    }
    let request = try CallableClient.request(
      for: function,
      data,
      dates: dates(of: function),
      authorization: token.authorization(project: core.world.project)
    )
    do {
      return try await core.invoker.invoke(request)
    } catch let error as InvocationError {
      throw CallableError(error.statusCode, error.statusMessage)
    }
  }
}
