public import FunctionsRuntime
import PsstModels
import PsstServices

extension MessageFunctions {
  /// Finds messages by their meaning, in the chats whose member the caller is now.
  ///
  /// While the provider is down, over its quota or misconfigured, the words of the query are
  /// searched in the caller's recent messages, and the answer says `degraded`. Beyond so many
  /// searches a minute the answer is `resource-exhausted`, with `retryAfterSeconds` in its details.
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

  /// The reply with what was found, which is also in the log.
  func reply(with found: MessageSearch.Found, _ logger: Logger) -> SemanticSearchReply {
    if let failure = found.failure {
      // The client only learns that the words were searched; the reason goes to the log, loudly
      // once an outage.
      let level: Logger.Level = failure.needsCorrection ? .error : .warning
      logger.log(
        level: failure.isNews ? level : .info,
        "Search degraded to words",
        metadata: ["reason": "\(failure)"]
      )
    }
    logger.info(
      "Search answered",
      metadata: found.model.metadata.merging([
        "results": "\(found.hits.count)", "score.top": "\(found.hits.first?.score ?? 0)",
      ]) { $1 }
    )
    return SemanticSearchReply(found)
  }
}

/// The query of `semanticSearch`.
public struct SemanticSearchQuery: Codable, Sendable, Hashable {
  /// What to look for.
  public var query: String
  /// The most messages to return; 10 unless given, at most 50.
  public var limit: Int?
  /// One chat to search; all chats of the caller unless given.
  public var chatId: String?
  /// The lowest score to return; the model's own threshold unless given.
  public var minScore: Double?

  static let limitDefault = 10
  static let limits = 1...50
  /// The longest query: a longer text costs tokens and means less.
  static let queryCharactersMax = 1000
  /// The longest query in bytes: one character can be as long as a book.
  private static let queryBytesMax = 8000

  /// A query.
  public init(query: String, limit: Int? = nil, chatId: String? = nil, minScore: Double? = nil) {
    self.query = query
    self.limit = limit
    self.chatId = chatId
    self.minScore = minScore
  }

  /// The query, if it makes sense; otherwise throws `invalid-argument` with what to change.
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

/// The answer of `semanticSearch`.
public struct SemanticSearchReply: Codable, Sendable, Hashable {
  /// The messages, best first.
  public var results: [Result]
  /// Who ran the model; `lexical` when none is configured, `words` when it could not be asked.
  public var provider: String
  /// The model's name.
  public var model: String
  /// Whether the results rest on shared words and not on meaning.
  public var degraded: Bool

  /// One message found.
  public struct Result: Codable, Sendable, Hashable {
    /// The message's id.
    public var messageId: String
    /// The chat that holds the message.
    public var chatId: String
    /// Who wrote it.
    public var senderId: String
    /// The sender's name as it is now; empty if unknown.
    public var senderName: String
    /// The message as it is now.
    public var text: String
    /// Milliseconds since 1970.
    public var timestamp: Int64
    /// How close the message is to the query; 1 at most.
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
