/// Tokens that calls of a model took.
public struct TokenUsage: Sendable, Hashable {
  /// Tokens of what the model was given.
  public var promptTokens: Int
  /// Tokens that the model wrote; none for embeddings.
  public var completionTokens: Int
  /// Whether a server did not state its count, so that this one rests on the length of texts.
  public var isEstimated: Bool

  /// A count; nothing unless given.
  public init(promptTokens: Int = 0, completionTokens: Int = 0, isEstimated: Bool = false) {
    self.promptTokens = promptTokens
    self.completionTokens = completionTokens
    self.isEstimated = isEstimated
  }

  /// Both counts.
  public var totalTokens: Int { promptTokens + completionTokens }

  /// Counts of two calls; estimated if one of them is.
  public static func + (left: TokenUsage, right: TokenUsage) -> TokenUsage {
    TokenUsage(
      promptTokens: left.promptTokens + right.promptTokens,
      completionTokens: left.completionTokens + right.completionTokens,
      isEstimated: left.isEstimated || right.isEstimated
    )
  }

  /// Adds the counts of a further call.
  public static func += (left: inout TokenUsage, right: TokenUsage) { left = left + right }
}

extension TokenUsage {
  /// Usage as servers state it; some state none, or only a part.
  struct Stated: Decodable {
    var prompt_tokens: Int?
    var completion_tokens: Int?
  }

  /// What the server stated, or else an estimate from the length of what went to and fro.
  init(_ stated: Stated?, promptBytes: Int, completionBytes: Int = 0) {
    let isWhole =
      stated?.prompt_tokens != nil
      && (completionBytes == 0 || stated?.completion_tokens != nil)
    self.init(
      promptTokens: stated?.prompt_tokens ?? Self.estimate(promptBytes),
      completionTokens: stated?.completion_tokens ?? Self.estimate(completionBytes),
      isEstimated: !isWhole
    )
  }

  /// English has about four bytes a token; other languages have fewer.
  static func estimate(_ bytes: Int) -> Int { (bytes + 3) / 4 }
}
