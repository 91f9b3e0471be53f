public import PsstServices

extension ChatWithAIChunk {
  /// Creates the chunk of an event.
  public init(_ event: Assistant.Event) {
    switch event {
    case .text(let text): self.init(type: .text, text: text)
    case .toolBegins(let tool): self.init(type: .toolBegins, tool: tool)
    case .toolEnds(let tool): self.init(type: .toolEnds, tool: tool)
    }
  }
}

extension ChatWithAIReply {
  /// Creates the result for an answer.
  public init(_ answer: Assistant.Answer) {
    self.init(
      conversationId: answer.conversationID,
      reply: answer.text,
      sources: answer.sources.map(Source.init),
      actions: answer.actions.map { Action(id: $0.id, $0.record) },
      usage: Usage(answer.usage),
      model: answer.model,
      degraded: answer.limitation != nil,
      note: answer.limitation
    )
  }
}

extension ChatWithAIReply.Source {
  /// Creates the result's form of a source.
  init(_ source: Assistant.Source) {
    let hit = source.hit
    self.init(
      number: source.number,
      messageId: hit.messageID,
      chatId: hit.chatID,
      senderId: hit.senderID,
      senderName: hit.senderName,
      text: hit.text,
      timestamp: hit.timestamp,
      score: hit.score
    )
  }
}

extension ChatWithAIReply.Usage {
  /// Creates the result's usage from that of an answer.
  public init(_ usage: TokenUsage) {
    self.init(
      promptTokens: usage.promptTokens,
      completionTokens: usage.completionTokens,
      totalTokens: usage.totalTokens
    )
  }
}
