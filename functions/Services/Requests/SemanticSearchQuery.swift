/// The query of `semanticSearch`.
public struct SemanticSearchQuery: Codable, Sendable, Hashable {
  /// The text to search for.
  public var query: String
  /// The maximum number of messages to return; 10 if nil, at most 50.
  public var limit: Int?
  /// The id of the one chat to search; all chats of the caller if nil.
  public var chatId: String?
  /// The lowest score to return; the model's threshold if nil.
  public var minScore: Double?

  /// Creates a query over all chats of the caller, unless it is limited to one.
  public init(query: String, limit: Int? = nil, chatId: String? = nil, minScore: Double? = nil) {
    self.query = query
    self.limit = limit
    self.chatId = chatId
    self.minScore = minScore
  }
}

/// The result of `semanticSearch`.
public struct SemanticSearchReply: Codable, Sendable, Hashable {
  /// The messages found, best first.
  public var results: [Result]
  /// The provider of the model.
  ///
  /// `lexical` if none is configured, `words` if the configured provider could not be asked.
  public var provider: String
  /// The name of the model.
  public var model: String
  /// True if the results are based on shared words rather than on meaning.
  public var degraded: Bool

  /// A message that the search found.
  public struct Result: Codable, Sendable, Hashable {
    /// The message's id.
    public var messageId: String
    /// The id of the chat that holds the message.
    public var chatId: String
    /// The id of the user who wrote the message.
    public var senderId: String
    /// The sender's current name; empty if unknown.
    public var senderName: String
    /// The message's current text.
    public var text: String
    /// The time of the message in milliseconds since 1970.
    public var timestamp: Int64
    /// The similarity of the message to the query; at most 1.
    public var score: Double

    /// Creates a found message.
    public init(
      messageId: String,
      chatId: String,
      senderId: String,
      senderName: String,
      text: String,
      timestamp: Int64,
      score: Double
    ) {
      self.messageId = messageId
      self.chatId = chatId
      self.senderId = senderId
      self.senderName = senderName
      self.text = text
      self.timestamp = timestamp
      self.score = score
    }
  }

  /// Creates a result.
  public init(results: [Result], provider: String, model: String, degraded: Bool) {
    self.results = results
    self.provider = provider
    self.model = model
    self.degraded = degraded
  }
}
