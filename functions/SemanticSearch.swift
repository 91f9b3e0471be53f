public import FunctionsRuntime
import PsstModels
import PsstBackend
public import PsstServices

extension AppFunctions {
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
      try await countCall(.searches, of: uid)
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

extension SemanticSearchQuery {
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

extension String {
  fileprivate var trimmingBlanks: String {
    var text = self[...].drop(while: \.isWhitespace)
    while text.last?.isWhitespace == true { text.removeLast() }
    return String(text)
  }
}
