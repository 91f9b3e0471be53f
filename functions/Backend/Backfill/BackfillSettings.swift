/// The rate at which messages without a vector are embedded.
public struct BackfillSettings: Sendable, Hashable {
  /// The maximum number of requests to a provider per minute.
  public var requestsPerMinute: Double
  /// The maximum number of tokens sent to a provider per minute.
  public var tokensPerMinute: Double

  /// Creates rates; the defaults are those of the provider's smallest account.
  public init(requestsPerMinute: Double = 3000, tokensPerMinute: Double = 1_000_000) {
    self.requestsPerMinute = requestsPerMinute
    self.tokensPerMinute = tokensPerMinute
  }

  /// Reads `PSST_EMBEDDING_REQUESTS_PER_MINUTE` and `PSST_EMBEDDING_TOKENS_PER_MINUTE`.
  init(environment: [String: String]) throws {
    // With a rate of zero the backfill would never end.
    let rates = 0.001...1_000_000_000
    self.init()
    requestsPerMinute =
      try PsstSettings.number(environment, "PSST_EMBEDDING_REQUESTS_PER_MINUTE", rates)
      ?? requestsPerMinute
    tokensPerMinute =
      try PsstSettings.number(environment, "PSST_EMBEDDING_TOKENS_PER_MINUTE", rates)
      ?? tokensPerMinute
  }
}
