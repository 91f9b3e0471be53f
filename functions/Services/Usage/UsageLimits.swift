/// What calls of models may use, and how often a user may search.
public struct UsageLimits: Sendable, Hashable {
  /// The tokens that one user's calls may use in a day (UTC), of all models together.
  public var userTokensPerDay: Int
  /// What all calls together may cost in a day (UTC), in US dollars; 0 stops every call.
  ///
  /// Calls of a model whose price is not known count as tokens only, and so only 0 stops them.
  public var dollarsPerDay: Double
  /// The searches that one user may make in any minute.
  public var searchesPerMinute: Int

  /// Limits; the defaults suit a small app.
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
  /// Throws `misconfigured` for anything but a number from 0, or from 1 for searches.
  init(environment: [String: String]) throws {
    self.init()
    userTokensPerDay =
      try PsstSettings.whole(environment, "PSST_USER_TOKENS_PER_DAY", 0...1_000_000_000_000)
      ?? userTokensPerDay
    dollarsPerDay =
      try PsstSettings.number(environment, "PSST_DOLLARS_PER_DAY", 0...1_000_000) ?? dollarsPerDay
    // The times of a minute's searches are kept in one document.
    searchesPerMinute =
      try PsstSettings.whole(environment, "PSST_SEARCHES_PER_MINUTE", 1...1000)
      ?? searchesPerMinute
  }
}
