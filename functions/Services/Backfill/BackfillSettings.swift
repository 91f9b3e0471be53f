/// How fast messages without a vector are embedded.
public struct BackfillSettings: Sendable, Hashable {
  /// Requests to a provider in a minute.
  public var requestsPerMinute: Double
  /// Tokens to a provider in a minute.
  public var tokensPerMinute: Double

  /// Rates; the defaults are those that the provider's smallest account allows.
  public init(requestsPerMinute: Double = 3000, tokensPerMinute: Double = 1_000_000) {
    self.requestsPerMinute = requestsPerMinute
    self.tokensPerMinute = tokensPerMinute
  }

  /// Reads `PSST_EMBEDDING_REQUESTS_PER_MINUTE` and `PSST_EMBEDDING_TOKENS_PER_MINUTE`.
  init(environment: [String: String]) throws {
    // A rate of nothing would never end.
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
