import HTTPTypes
import Invocation
import NIOCore
import RuntimeSupport

/// Declares an HTTP function of plain JSON: the body is the payload, the reply the result.
///
/// The `typed` kind of the Functions Framework, for callers that are no Firebase clients. A body that
/// does not decode is answered with 400 and the path at fault, a handler that throws with 500 and
/// without its text; a `CallableError` has its own status and text. Dates are RFC 3339 unless the
/// option `dates` says otherwise.
public func onTyped<Payload: Decodable & Sendable, Reply: Encodable & SendableMetatype>(
  _ name: String,
  _ payload: Payload.Type,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (TypedRequest<Payload>) async throws -> Reply
) -> some CloudFunction<TypedRequest<Payload>, Reply> {
  TypedFunction(name: name, options: options, handler: handler)
}

/// One request to a function of plain JSON.
public struct TypedRequest<Payload: Sendable>: Sendable {
  /// The body.
  public var data: Payload
  /// Follows this invocation through the logs of client, server and worker.
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

struct TypedFunction<
  Payload: Decodable & Sendable,
  Reply: Encodable & SendableMetatype
>: CloudFunction {
  let name: String
  let options: FunctionOptions
  let handler: @Sendable (TypedRequest<Payload>) async throws -> Reply

  var definition: FunctionDefinition {
    FunctionDefinition(name: name, trigger: .typed, options: options) { request, scope in
      await reply(to: request, scope)
    }
  }

  func callAsFunction(_ input: TypedRequest<Payload>) async throws -> Reply {
    try await handler(input)
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
