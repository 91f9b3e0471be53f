/// The price of a model's tokens in US dollars.
public struct ModelPrice: Sendable, Hashable {
  /// The price of a million tokens that the model reads.
  public var dollarsPerMillionInputTokens: Double
  /// The price of a million tokens that the model writes, including reasoning tokens.
  public var dollarsPerMillionOutputTokens: Double

  /// Creates a price; embedding models write no tokens, so their output price is 0.
  public init(input: Double, output: Double = 0) {
    dollarsPerMillionInputTokens = input
    dollarsPerMillionOutputTokens = output
  }

  /// Returns the cost of a call in US dollars.
  func dollars(_ usage: TokenUsage) -> Double {
    (Double(usage.promptTokens) * dollarsPerMillionInputTokens
      + Double(usage.completionTokens) * dollarsPerMillionOutputTokens) / 1_000_000
  }

  /// The list prices of chat models; settings override them.
  static let knownChatModels: [String: ModelPrice] = [
    "gpt-4o": ModelPrice(input: 2.5, output: 10),
    "gpt-4o-mini": ModelPrice(input: 0.15, output: 0.6),
    "gpt-4.1": ModelPrice(input: 2, output: 8),
    "gpt-4.1-mini": ModelPrice(input: 0.4, output: 1.6),
    "gpt-4.1-nano": ModelPrice(input: 0.1, output: 0.4),
    "gpt-5": ModelPrice(input: 1.25, output: 10),
    "gpt-5-mini": ModelPrice(input: 0.25, output: 2),
    "gpt-5-nano": ModelPrice(input: 0.05, output: 0.4),
  ]
}
