/// A callable that may send chunks before its result.
///
/// A test gives it a stream of its own, or none:
///
/// ```swift
/// let chunks = ChunkCollector<String>()
/// let reply = try await functions.chat(request, stream: chunks.stream)
/// #expect(chunks.all == ["Hel", "lo"])
/// ```
public protocol StreamingCloudFunction<Input, Chunk, Output>: CloudFunction {
  /// What the handler sends on the way.
  associatedtype Chunk: Encodable & Sendable

  /// Runs the handler with a stream, without sockets, tokens or encoding.
  func callAsFunction(_ input: Input, stream: CallableStream<Chunk>) async throws -> Output
}

/// Declares a callable function that may send chunks before its result.
///
/// A client that streams gets each chunk as it is sent, then the result or the error; any other gets
/// the result only. Callers, payload and reply are as with the plain `onCall`.
///
/// ```swift
/// onCall("chat", Prompt.self, streaming: String.self) { request, stream in
///   for try await word in model.answer(request.data.text) { try await stream.send(word) }
///   return Answer(…)
/// }
/// ```
public func onCall<
  Payload: Decodable & Sendable,
  Chunk: Encodable & Sendable,
  Reply: Encodable & SendableMetatype
>(
  _ name: String,
  _ payload: Payload.Type,
  streaming chunk: Chunk.Type,
  callers: CallableCallers = .anyone,
  options: FunctionOptions = FunctionOptions(),
  handler:
    @escaping @Sendable (CallableRequest<Payload>, CallableStream<Chunk>) async throws -> Reply
) -> some StreamingCloudFunction<CallableRequest<Payload>, Chunk, Reply> {
  StreamingCallable(
    name: name,
    callers: callers,
    options: options,
    handler: handler,
    encode: { try $1.encode($0) }
  )
}

// Disfavoured, because a closure that is one `switch` or `if` expression would fit both.
/// Declares a callable function that sends chunks and has no result: clients get `null`.
@_disfavoredOverload
public func onCall<Payload: Decodable & Sendable, Chunk: Encodable & Sendable>(
  _ name: String,
  _ payload: Payload.Type,
  streaming chunk: Chunk.Type,
  callers: CallableCallers = .anyone,
  options: FunctionOptions = FunctionOptions(),
  handler:
    @escaping @Sendable (CallableRequest<Payload>, CallableStream<Chunk>) async throws -> Void
) -> some StreamingCloudFunction<CallableRequest<Payload>, Chunk, Void> {
  StreamingCallable(
    name: name,
    callers: callers,
    options: options,
    handler: handler,
    encode: { _, _ in .null }
  )
}

/// Where a streaming callable sends its chunks.
public struct CallableStream<Chunk: Sendable>: Sendable {
  private let receive: @Sendable (Chunk) async throws -> Bool

  /// A stream whose chunks go to a closure, which says whether somebody reads them.
  public init(_ receive: @escaping @Sendable (Chunk) async throws -> Bool) {
    self.receive = receive
  }

  /// Sends a chunk; false, and nothing sent, when the client does not stream.
  ///
  /// Waits while the client is slow. Throws `CancellationError` once the client has gone or the call
  /// is over, and the encoder's error for a chunk that is not JSON. Numbers are written bare, whatever
  /// their size: only the result has the wrapped form.
  @discardableResult
  public func send(_ chunk: Chunk) async throws -> Bool {
    try await receive(chunk)
  }
}

struct StreamingCallable<
  Payload: Decodable & Sendable,
  Chunk: Encodable & Sendable,
  Reply
>: StreamingCloudFunction {
  let name: String
  let callers: CallableCallers
  let options: FunctionOptions
  let handler: @Sendable (CallableRequest<Payload>, CallableStream<Chunk>) async throws -> Reply
  let encode: @Sendable (Reply, ValueEncoder) throws -> Value

  var definition: FunctionDefinition {
    CallableFunction(
      name: name,
      callers: callers,
      options: options,
      handler: { request, stream in
        try await handler(request, CallableStream { try await stream?.send($0) ?? false })
      },
      encode: encode
    ).definition
  }

  func callAsFunction(_ input: CallableRequest<Payload>) async throws -> Reply {
    try await callAsFunction(input, stream: CallableStream { _ in false })
  }

  func callAsFunction(
    _ input: CallableRequest<Payload>,
    stream: CallableStream<Chunk>
  ) async throws -> Reply {
    try callers.check(input.auth)
    return try await handler(input, stream)
  }
}
