public import PsstServices

extension SemanticSearchReply {
  /// Creates the result of a search.
  public init(_ found: MessageSearch.Found) {
    self.init(
      results: found.hits.map(Result.init),
      provider: found.model.provider,
      model: found.model.name,
      degraded: found.model.isDegraded
    )
  }
}

extension SemanticSearchReply.Result {
  /// Creates the result's form of a hit.
  public init(_ hit: MessageSearch.Hit) {
    self.init(
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
