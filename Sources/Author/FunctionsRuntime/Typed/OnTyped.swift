import HTTPTypes
import Invocation
import JSONText
import NIOCore
import RuntimeSupport

/// An HTTP function of plain JSON: the body is the payload, the reply the result.
///
/// ```swift
/// var total: OnTyped<Cart, Total> {
///   .init("total") { request in
///     Total(cents: request.data.items.map(\.cents).reduce(0, +))
///   }
/// }
/// ```
///
/// This is the `typed` kind of the Functions Framework, for callers other than Firebase clients. A
/// body that does not decode is answered with 400 and the path at fault. When the handler throws,
/// the answer is 500 without the error's text; a `CallableError` has its own status and text. Dates
/// are RFC 3339 unless the option `dates` says otherwise.
public struct OnTyped<
  Payload: Decodable & Sendable,
  Reply: Encodable & SendableMetatype
>: CloudFunction {
  private let name: String
  private let options: FunctionOptions
  private let handler: @Sendable (TypedRequest<Payload>) async throws -> Reply

  /// A function whose callers get what the handler returns.
  public init(
    _ name: String,
    options: TypedOptions = TypedOptions(),
    handler: @escaping @Sendable (TypedRequest<Payload>) async throws -> Reply
  ) {
    self.name = name
    self.options = options.values
    self.handler = handler
  }

  /// What a `FunctionsApp` needs to know in order to host the function.
  public var definition: FunctionDefinition {
    FunctionDefinition(name: name, trigger: .typed, options: options) { request, scope in
      await reply(to: request, scope)
    }
  }

  /// Runs the handler; throws what it throws.
  public func run(_ request: TypedRequest<Payload>) async throws -> Reply {
    try await handler(request)
  }

  private func reply(
    to request: InvocationRequest,
    _ scope: FunctionScope
  ) async -> InvocationReply {
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
      scope.logger.error("The function failed", metadata: ["error": "\(error)"])
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

/// One request to a function of plain JSON.
public struct TypedRequest<Payload: Sendable>: Sendable {
  /// The decoded body.
  public var data: Payload
  /// The id that follows this invocation through the logs of client, server and worker.
  public var invocationID: String
  /// A logger whose lines carry the invocation's id.
  public var logger: Logger

  /// A request as a test makes one.
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
