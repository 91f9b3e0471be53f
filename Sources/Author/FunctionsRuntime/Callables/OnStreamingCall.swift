/// A callable function that may send chunks before its result.
///
/// ```swift
/// var chat: OnStreamingCall<Prompt, Answer, String> {
///   .init("chat") { request, stream in
///     for try await word in model.answer(request.data.text) { try await stream.send(word) }
///     return Answer(model: model.name)
///   }
/// }
/// ```
///
/// A client that streams gets each chunk as it is sent, then the result or the error; any other
/// client gets only the result. Callers, payload and reply are as with `OnCall`. A test passes a
/// stream of its own, or none:
///
/// ```swift
/// let chunks = ChunkCollector<String>()
/// let reply = try await functions.chat.run(request, stream: chunks.stream)
/// #expect(chunks.all == ["Hel", "lo"])
/// ```
public struct OnStreamingCall<
  Payload: Decodable & Sendable,
  Reply,
  Chunk: Encodable & Sendable
>: CloudFunction {
  private let function: CallableFunction<Payload, Reply>
  private let callers: CallableCallers
  private let handler:
    @Sendable (CallableRequest<Payload>, CallableStream<Chunk>) async throws -> Reply

  /// What a `FunctionsApp` needs to know in order to host the function.
  public var definition: FunctionDefinition { function.definition }

  /// Runs the handler, if the caller may call it, for a caller who does not read chunks.
  ///
  /// Throws what the handler throws, and the `CallableError` of a refused caller.
  public func run(_ request: CallableRequest<Payload>) async throws -> Reply {
    try await function.run(request, nil)
  }

  /// Runs the handler with a stream, if the caller may call it; throws as without one.
  public func run(
    _ request: CallableRequest<Payload>,
    stream: CallableStream<Chunk>
  ) async throws -> Reply {
    try await callers.check(request.auth)
    return try await handler(request, stream)
  }
}

extension OnStreamingCall where Reply: Encodable & SendableMetatype {
  /// A function whose clients get what the handler returns, after the chunks.
  public init(
    _ name: String,
    callers: CallableCallers = .anyone,
    options: CallableOptions = CallableOptions(),
    handler:
      @escaping @Sendable (CallableRequest<Payload>, CallableStream<Chunk>) async throws -> Reply
  ) {
    self.callers = callers
    self.handler = handler
    function = CallableFunction(name, callers, options) { request, stream in
      try await handler(request, CallableStream { try await stream?.send($0) ?? false })
    }
  }
}

extension OnStreamingCall where Reply == Void {
  // Disfavoured, because a closure that is one `switch` or `if` expression would fit both.
  /// A function whose clients get `null` after the chunks.
  @_disfavoredOverload
  public init(
    _ name: String,
    callers: CallableCallers = .anyone,
    options: CallableOptions = CallableOptions(),
    handler:
      @escaping @Sendable (CallableRequest<Payload>, CallableStream<Chunk>) async throws -> Reply
  ) {
    self.callers = callers
    self.handler = handler
    function = CallableFunction(name, callers, options) { request, stream in
      try await handler(request, CallableStream { try await stream?.send($0) ?? false })
    }
  }
}
