import Invocation

/// Declares a callable function: what clients reach with `httpsCallable(name)`.
///
/// Callers who may not call it are refused first. Then the body's `data` is decoded, before the
/// handler runs; what does not decode is answered with `INVALID_ARGUMENT` and the path at fault. Keys
/// without a property are ignored, and `null`, which clients send for a call without data, counts as
/// an object without keys where `Payload` takes no null. Use `Value.self` to take any JSON. What the
/// handler returns is encoded as the `result`. When the client goes away the handler's task is
/// cancelled.
public func onCall<Payload: Decodable & Sendable, Reply: Encodable & SendableMetatype>(
  _ name: String,
  _ payload: Payload.Type,
  callers: CallableCallers = .anyone,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (CallableRequest<Payload>) async throws -> Reply
) -> some CloudFunction<CallableRequest<Payload>, Reply> {
  CallableFunction(
    name: name,
    callers: callers,
    options: options,
    handler: { request, _ in try await handler(request) },
    encode: { try $1.encode($0) }
  )
}

// Disfavoured, because a closure that is one `switch` or `if` expression would fit both.
/// Declares a callable function that returns nothing: clients get the result `null`.
@_disfavoredOverload
public func onCall<Payload: Decodable & Sendable>(
  _ name: String,
  _ payload: Payload.Type,
  callers: CallableCallers = .anyone,
  options: FunctionOptions = FunctionOptions(),
  handler: @escaping @Sendable (CallableRequest<Payload>) async throws -> Void
) -> some CloudFunction<CallableRequest<Payload>, Void> {
  CallableFunction(
    name: name,
    callers: callers,
    options: options,
    handler: { request, _ in try await handler(request) },
    encode: { _, _ in .null }
  )
}

struct CallableFunction<Payload: Decodable & Sendable, Reply>: CloudFunction {
  let name: String
  let callers: CallableCallers
  let options: FunctionOptions
  let handler: @Sendable (CallableRequest<Payload>, ChunkStream?) async throws -> Reply
  let encode: @Sendable (Reply, ValueEncoder) throws -> Value

  var definition: FunctionDefinition {
    FunctionDefinition(name: name, trigger: .callable, options: options) { request, scope in
      await CallableExchange(scope: scope).reply(to: request) { call, coding, stream in
        try callers.check(call.auth)
        let payload = try Self.payload(of: call.data, coding.decoder)
        let reply = try await handler(
          CallableRequest(
            data: payload,
            auth: call.auth,
            app: call.app,
            instanceIDToken: call.instanceIDToken,
            wantsStream: stream != nil,
            invocationID: request.id,
            logger: scope.logger
          ),
          stream
        )
        return try encode(reply, coding.encoder)
      }
    }
  }

  private static func payload(of data: Value, _ decoder: ValueDecoder) throws -> Payload {
    do {
      // Only asks whether the payload takes null; the object's own error says what is missing.
      if data == .null, let payload = try? decoder.decode(Payload.self, from: data) {
        return payload
      }
      return try decoder.decode(Payload.self, from: data == .null ? .map([:]) : data)
    } catch let error as ValueCodingError {
      throw CallableError(.invalidArgument, "The request is refused: \(error.below("data")).")
    }
  }

  func callAsFunction(_ input: CallableRequest<Payload>) async throws -> Reply {
    try callers.check(input.auth)
    return try await handler(input, nil)
  }
}
