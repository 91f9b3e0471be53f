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
    func rate(_ name: String) throws -> Double? {
      let number = try EmbeddingSettings.number(environment, name)
      if let number, number <= 0 {
        throw ServiceError(.misconfigured, "\(name) is \(number), but a rate is above zero")
      }
      return number
    }
    self.init()
    requestsPerMinute = try rate("PSST_EMBEDDING_REQUESTS_PER_MINUTE") ?? requestsPerMinute
    tokensPerMinute = try rate("PSST_EMBEDDING_TOKENS_PER_MINUTE") ?? tokensPerMinute
  }
}
