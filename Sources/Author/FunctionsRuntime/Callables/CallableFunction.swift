import Invocation

/// The common implementation of callables with and without a stream.
struct CallableFunction<Payload: Decodable & Sendable, Reply>: Sendable {
  let name: String
  let callers: CallableCallers
  let options: CallableOptions
  let handler: @Sendable (CallableRequest<Payload>, ChunkStream?) async throws -> Reply
  let encode: @Sendable (Reply, ValueEncoder) throws -> FirestoreValue

  var definition: FunctionDefinition {
    FunctionDefinition(name: name, trigger: .callable, options: options.values) { request, scope in
      await CallableInvocation(scope: scope).reply(to: request) { call, coding, stream in
        try await callers.check(call.auth)
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

  private static func payload(of data: FirestoreValue, _ decoder: ValueDecoder) throws -> Payload {
    do {
      // This attempt only checks whether the payload accepts null. If it does not, an empty object
      // is decoded, whose error says what is missing.
      if data == .null, let payload = try? decoder.decode(Payload.self, from: data) {
        return payload
      }
      return try decoder.decode(Payload.self, from: data == .null ? .map([:]) : data)
    } catch let error as ValueCodingError {
      throw CallableError(.invalidArgument, "The request is refused: \(error.below("data")).")
    }
  }

  func run(_ request: CallableRequest<Payload>, _ stream: ChunkStream?) async throws -> Reply {
    try await callers.check(request.auth)
    return try await handler(request, stream)
  }
}

extension CallableFunction where Reply: Encodable & SendableMetatype {
  /// Creates a callable whose clients receive the value that the handler returns.
  init(
    _ name: String,
    _ callers: CallableCallers,
    _ options: CallableOptions,
    _ handler: @escaping @Sendable (CallableRequest<Payload>, ChunkStream?) async throws -> Reply
  ) {
    self.init(
      name: name,
      callers: callers,
      options: options,
      handler: handler,
      encode: { try $1.encode($0) }
    )
  }
}

extension CallableFunction where Reply == Void {
  /// Creates a callable whose clients receive `null`.
  init(
    _ name: String,
    _ callers: CallableCallers,
    _ options: CallableOptions,
    _ handler: @escaping @Sendable (CallableRequest<Payload>, ChunkStream?) async throws -> Void
  ) {
    self.init(
      name: name,
      callers: callers,
      options: options,
      handler: handler,
      encode: { _, _ in .null }
    )
  }
}
