/// The limits of model calls and searches.
public struct UsageLimits: Sendable, Hashable {
  /// The maximum number of tokens per user and day (UTC), for all models together.
  public var userTokensPerDay: Int
  /// The maximum cost of all calls per day (UTC), in US dollars; 0 stops all calls.
  ///
  /// Calls of a model without a known price only count as tokens, so no other value than 0 stops
  /// them.
  public var dollarsPerDay: Double
  /// The maximum number of calls of each kind, such as searches, per user and minute.
  public var searchesPerMinute: Int

  /// Creates limits; the defaults suit a small app.
  public init(
    userTokensPerDay: Int = 200_000,
    dollarsPerDay: Double = 10,
    searchesPerMinute: Int = 30
  ) {
    self.userTokensPerDay = userTokensPerDay
    self.dollarsPerDay = dollarsPerDay
    self.searchesPerMinute = searchesPerMinute
  }

  /// Reads `PSST_USER_TOKENS_PER_DAY`, `PSST_DOLLARS_PER_DAY` and `PSST_SEARCHES_PER_MINUTE`.
  ///
  /// Throws `misconfigured` for a value that is not a number in range: at least 0, or at least 1
  /// for searches.
  init(environment: [String: String]) throws {
    self.init()
    userTokensPerDay =
      try PsstSettings.whole(environment, "PSST_USER_TOKENS_PER_DAY", 0...1_000_000_000_000)
      ?? userTokensPerDay
    dollarsPerDay =
      try PsstSettings.number(environment, "PSST_DOLLARS_PER_DAY", 0...1_000_000) ?? dollarsPerDay
    // The times of the searches within a minute are stored in one document.
    searchesPerMinute =
      try PsstSettings.whole(environment, "PSST_SEARCHES_PER_MINUTE", 1...1000)
      ?? searchesPerMinute
  }
}
