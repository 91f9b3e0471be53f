import HTTPMessages
import HTTPTypes
import Invocation
import JSONText
import NIOCore

/// An HTTP function with plain JSON: the request body is the payload, the response body the result.
///
/// ```swift
/// var total: OnTyped<Cart, Total> {
///   .init("total") { request in
///     Total(cents: request.data.items.map(\.cents).reduce(0, +))
///   }
/// }
/// ```
///
/// This is the `typed` kind of function of the Functions Framework, for callers other than Firebase
/// clients. A body that does not decode gets status 400 with the path of the invalid value. If the
/// handler throws a `CallableError`, the response has the error's status and text. Any other error
/// gets status 500 without the error's text. Dates are in RFC 3339 format unless the option `dates`
/// sets another format.
public struct OnTyped<
  Payload: Decodable & Sendable,
  Reply: Encodable & SendableMetatype
>: CloudFunction {
  private let name: String
  private let options: FunctionOptions
  private let handler: @Sendable (TypedRequest<Payload>) async throws -> Reply

  /// Creates a function whose callers receive the value that the handler returns.
  public init(
    _ name: String,
    options: TypedOptions = TypedOptions(),
    handler: @escaping @Sendable (TypedRequest<Payload>) async throws -> Reply
  ) {
    self.name = name
    self.options = options.values
    self.handler = handler
  }

  /// The description of the function that a `FunctionsApp` uses to host it.
  public var definition: FunctionDefinition {
    FunctionDefinition(name: name, trigger: .typed, options: options) { request, scope in
      await reply(to: request, scope)
    }
  }

  /// Runs the handler and rethrows its error.
  @discardableResult
  public func run(_ request: TypedRequest<Payload>) async throws -> Reply {
    try await handler(request)
  }

  private func reply(
    to request: InvocationRequest,
    _ scope: FunctionScope
  ) async -> Response {
    let dialect = ValueDialect.json(dates: scope.options.dates ?? .rfc3339)
    do {
      let payload = try payload(of: request, dialect)
      let reply = try await handler(
        TypedRequest(data: payload, invocationID: request.id, logger: scope.logger)
      )
      let json = try JSONWriter.write(try ValueEncoder(dialect: dialect).encode(reply))
      return CallableReply.json(json, status: .ok, for: request.head)
    } catch let error as CallableError {
      return CallableReply.error(error.code, error.message, for: request.head)
    } catch is CancellationError where Task.isCancelled {
      return CallableReply.error(.cancelled, "The request was cancelled.", for: request.head)
    } catch {
      await scope.handlerThrew(error)
      return CallableReply.error(.internal, "INTERNAL", for: request.head)
    }
  }

  private func payload(
    of request: InvocationRequest,
    _ dialect: ValueDialect
  ) throws -> Payload {
    do {
      let value = try JSONReader.read(request.wholeBody.readableBytesView)
      return try ValueDecoder(dialect: dialect).decode(Payload.self, from: value)
    } catch let error as JSONSyntaxError {
      throw CallableError(
        .invalidArgument,
        "The body is not JSON: \(error.reason) at byte \(error.offset)."
      )
    } catch let error as ValueCodingError {
      throw CallableError(.invalidArgument, "The request is refused: \(error).")
    }
  }
}

/// One request to a typed function.
public struct TypedRequest<Payload: Sendable>: Sendable {
  /// The decoded body of the request.
  public var data: Payload
  /// The id that identifies this invocation in the logs of the client, the server and the worker.
  public var invocationID: String
  /// A logger that adds the id of the invocation to each line.
  public var logger: Logger

  /// Creates a request for a test.
  public init(
    data: Payload,
    invocationID: String = "test",
    logger: Logger = Logger(label: "typed")
  ) {
    self.data = data
    self.invocationID = invocationID
    self.logger = logger
  }
}
