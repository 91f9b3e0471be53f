/// A callable function that can send chunks before its result.
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
/// A client that streams receives each chunk as it is sent, and then the result or the error. Any
/// other client receives only the result. The rules of `OnCall` apply to callers, payload and
/// reply. A test can pass a stream to `run(_:stream:)`, or leave it out:
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

  /// The description of the function that a `FunctionsApp` uses to host it.
  public var definition: FunctionDefinition { function.definition }

  /// Runs the handler without a reader of its chunks, if `callers` allows the caller.
  ///
  /// Throws the `CallableError` of a refused caller, and rethrows the error of the handler.
  @discardableResult
  public func run(_ request: CallableRequest<Payload>) async throws -> Reply {
    try await function.run(request, nil)
  }

  /// Runs the handler with a stream that receives its chunks, if `callers` allows the caller.
  ///
  /// Throws the `CallableError` of a refused caller, and rethrows the error of the handler.
  @discardableResult
  public func run(
    _ request: CallableRequest<Payload>,
    stream: CallableStream<Chunk>
  ) async throws -> Reply {
    try await callers.check(request.auth)
    return try await handler(request, stream)
  }
}

extension OnStreamingCall where Reply: Encodable & SendableMetatype {
  /// Creates a callable whose clients receive the chunks and then the handler's return value.
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
  // Disfavored, because a closure that is a single `switch` or `if` expression matches both
  // initializers.
  /// Creates a callable whose clients receive the chunks and then `null`.
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
