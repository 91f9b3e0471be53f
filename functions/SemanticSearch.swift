public import FunctionsRuntime
import PsstModels
import PsstServices

extension MessageFunctions {
  /// Finds messages by their meaning, in the chats of which the caller is a member now.
  ///
  /// While the provider is down, over its quota or misconfigured, the words of the query are
  /// searched in the caller's recent messages, and the result is marked
  /// `degraded`. A caller who exceeds the limit of searches per minute gets `resource-exhausted`,
  /// with `retryAfterSeconds` in its details.
  public var semanticSearch: OnCall<SemanticSearchQuery, SemanticSearchReply> {
    .init("semanticSearch", callers: .users, options: .init(secrets: Self.secrets)) { request in
      let uid = try request.requireUser()
      let query = try request.data.checked()
      try await countCall(of: uid)
      let found = try await services.search.search(
        query.query,
        as: uid,
        limit: query.limit ?? SemanticSearchQuery.limitDefault,
        chatID: query.chatId,
        minScore: query.minScore
      )
      return reply(with: found, request.logger)
    }
  }

  /// Logs a search and converts what it found to a reply.
  func reply(with found: MessageSearch.Found, _ logger: Logger) -> SemanticSearchReply {
    if let failure = found.failure {
      // The client only learns that the words were searched. The reason is logged, at a high level
      // only once per outage.
      let level: Logger.Level = failure.needsCorrection ? .error : .warning
      logger.log(
        level: failure.isNews ? level : .info,
        "Search degraded to words",
        metadata: ["reason": "\(failure)"]
      )
    }
    logger.info(
      "Search completed",
      metadata: found.model.metadata.merging([
        "results": "\(found.hits.count)", "score.top": "\(found.hits.first?.score ?? 0)",
      ]) { $1 }
    )
    return SemanticSearchReply(found)
  }
}

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

  static let limitDefault = 10
  static let limits = 1...50
  /// The longest query in characters.
  ///
  /// A longer text costs more tokens and gives worse results.
  static let queryCharactersMax = 1000
  /// The longest query in bytes.
  ///
  /// A single character can have any number of bytes.
  private static let queryBytesMax = 8000

  /// Creates a query over all chats of the caller, unless it is limited to one.
  public init(query: String, limit: Int? = nil, chatId: String? = nil, minScore: Double? = nil) {
    self.query = query
    self.limit = limit
    self.chatId = chatId
    self.minScore = minScore
  }

  /// Returns the query without surrounding white space, if it is valid.
  ///
  /// Otherwise throws `invalid-argument` with the reason.
  func checked() throws -> SemanticSearchQuery {
    var checked = self
    checked.query = query.trimmingBlanks
    guard !checked.query.isEmpty else {
      throw CallableError(.invalidArgument, "query must not be blank.")
    }
    guard query.utf8.count <= Self.queryBytesMax, query.count <= Self.queryCharactersMax else {
      throw CallableError(
        .invalidArgument,
        "query has more than \(Self.queryCharactersMax) characters."
      )
    }
    if let limit, !Self.limits.contains(limit) {
      throw CallableError(.invalidArgument, "limit must be from 1 to 50.")
    }
    if let chatId, !chatId.isDocumentID {
      throw CallableError(.invalidArgument, "chatId must be the id of a chat.")
    }
    if let minScore, !(-1...1).contains(minScore) {
      throw CallableError(.invalidArgument, "minScore must be from -1 to 1.")
    }
    return checked
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

    init(_ hit: MessageSearch.Hit) {
      messageId = hit.messageID
      chatId = hit.chatID
      senderId = hit.senderID
      senderName = hit.senderName
      text = hit.text
      timestamp = hit.timestamp
      score = hit.score
    }
  }

  init(_ found: MessageSearch.Found) {
    results = found.hits.map(Result.init)
    provider = found.model.provider
    model = found.model.name
    degraded = found.model.isDegraded
  }
}

extension String {
  fileprivate var trimmingBlanks: String {
    var text = self[...].drop(while: \.isWhitespace)
    while text.last?.isWhitespace == true { text.removeLast() }
    return String(text)
  }
}
