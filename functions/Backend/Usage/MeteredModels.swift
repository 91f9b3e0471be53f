/// A provider of embeddings whose calls all go through the ledger.
///
/// `OpenAIEmbedding` itself is not an `EmbeddingProvider`, so that no call can bypass the ledger.
struct MeteredEmbedding: EmbeddingProvider {
  let provider: OpenAIEmbedding
  let ledger: UsageLedger

  var model: EmbeddingModel { provider.model }

  func embeddings(of texts: [String], for payer: Payer) async throws -> Embeddings {
    guard !texts.isEmpty else { return Embeddings(vectors: [], usage: TokenUsage()) }
    try provider.check()
    let priced = PricedModel(
      name: model.name,
      price: model.dollarsPerMillionTokens.map { ModelPrice(input: $0) }
    )
    return try await ledger.count(priced, for: payer, atMost: provider.usageMax(of: texts)) {
      usage in
      let vectors = try await provider.embeddings(of: texts, usage: &usage)
      return Embeddings(vectors: vectors, usage: usage)
    }
  }
}

/// A chat model whose calls all go through the ledger.
///
/// `OpenAIChat` itself is not a `ChatModel`, so that no call can bypass the ledger.
struct MeteredChat: ChatModel {
  let provider: OpenAIChat
  let price: ModelPrice?
  let ledger: UsageLedger

  var name: String { provider.name }

  func check(for payer: Payer) throws {
    try provider.peek()
    try ledger.check(payer)
  }

  func answer<Output: Decodable & Sendable>(
    _ messages: [ChatMessage],
    as schema: JSONSchema,
    _ type: Output.Type,
    for payer: Payer
  ) async throws -> ChatAnswer<Output> {
    let priced = PricedModel(name: name, price: price)
    let most = try provider.usageMax(of: messages, as: schema)
    return try await provider.answer(messages, as: schema, type) { request in
      try provider.check()
      return try await ledger.count(priced, for: payer, atMost: most, request)
    }
  }

  /// Requests a turn of the model, whose call does not wait for the listener.
  ///
  /// The call takes as long as the provider needs. Then its slot is free for others and the ledger
  /// has its usage, even if no one is listening.
  func reply(
    to turns: [ChatTurn],
    tools: [ToolDescription],
    for payer: Payer,
    onText: @escaping @Sendable (String) async throws -> Void
  ) async throws -> ChatReply {
    let spoken = TextDeltas()
    async let reply = reply(to: turns, tools, payer, spoken)
    try await spoken.handOver(to: onText)
    try Task.checkCancellation()
    return try await reply
  }

  private func reply(
    to turns: [ChatTurn],
    _ tools: [ToolDescription],
    _ payer: Payer,
    _ spoken: TextDeltas
  ) async throws -> ChatReply {
    defer { spoken.end() }
    try provider.check()
    let priced = PricedModel(name: name, price: price)
    let most = try provider.usageMax(of: turns, tools)
    return try await ledger.count(priced, for: payer, atMost: most) { usage in
      do {
        let reply = try await provider.reply(to: turns, tools) { spoken.add($0) }
        usage += reply.usage
        return reply
      } catch let error as ServiceError {
        usage += error.usage
        throw error
      } catch let error as CancellationError {
        usage += provider.usage(of: turns, saidBytes: spoken.bytes)
        throw error
      }
    }
  }
}
