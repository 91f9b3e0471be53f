/// The numbers of tokens that calls of a model used.
public struct TokenUsage: Sendable, Hashable {
  /// The number of tokens that the model read.
  public var promptTokens: Int
  /// The number of tokens that the model wrote; zero for embeddings.
  public var completionTokens: Int
  /// True if a count is estimated from the length of texts, because a server sent none.
  public var isEstimated: Bool

  /// Creates a usage; the counts are zero by default.
  public init(promptTokens: Int = 0, completionTokens: Int = 0, isEstimated: Bool = false) {
    self.promptTokens = promptTokens
    self.completionTokens = completionTokens
    self.isEstimated = isEstimated
  }

  /// The sum of both counts.
  public var totalTokens: Int { promptTokens + completionTokens }

  /// Adds two usages; the sum is estimated if one of them is.
  public static func + (left: TokenUsage, right: TokenUsage) -> TokenUsage {
    TokenUsage(
      promptTokens: left.promptTokens + right.promptTokens,
      completionTokens: left.completionTokens + right.completionTokens,
      isEstimated: left.isEstimated || right.isEstimated
    )
  }

  /// Subtracts the usage of a call that is part of the sum.
  static func -= (left: inout TokenUsage, right: TokenUsage) {
    left.promptTokens -= right.promptTokens
    left.completionTokens -= right.completionTokens
  }

  /// Adds the usage of another call.
  public static func += (left: inout TokenUsage, right: TokenUsage) { left = left + right }
}

extension TokenUsage {
  /// The usage as reported by servers; some report none, or only a part.
  struct Stated: Decodable {
    var prompt_tokens: Int?
    var completion_tokens: Int?
  }

  /// Creates a usage from the reported counts, or estimates it from the sizes of the texts.
  ///
  /// It is never more than the call can use, whatever a server reports, because a wrong count would
  /// reduce the others' share of the day. A text also never counts as free.
  init(_ stated: Stated?, promptBytes: Int, completionBytes: Int = 0, atMost most: TokenUsage) {
    let prompt = Self.believable(stated?.prompt_tokens, bytes: promptBytes)
    let completion = Self.believable(stated?.completion_tokens, bytes: completionBytes)
    self.init(
      promptTokens: min(prompt ?? Self.estimate(promptBytes), most.promptTokens),
      completionTokens: min(
        completion ?? Self.estimate(completionBytes),
        most.completionTokens
      ),
      isEstimated: prompt == nil || completion == nil
    )
  }

  /// Adds the usage of a response, even if the response is invalid.
  ///
  /// An invalid response may not come from a model at all. In that case only a reported count is
  /// added.
  mutating func add<Output>(
    _ counted: TokenUsage,
    of answer: () throws -> Output
  ) rethrows -> Output {
    if !counted.isEstimated { self += counted }
    let output = try answer()
    if counted.isEstimated { self += counted }
    return output
  }

  /// Returns a reported count; zero if there is no text; nil if the count cannot be right.
  private static func believable(_ stated: Int?, bytes: Int) -> Int? {
    if let stated, stated > 0 { return stated }
    return bytes == 0 ? 0 : nil
  }

  /// Estimates the tokens of a text at four bytes per token.
  ///
  /// This is about right for English; other languages have fewer bytes per token.
  static func estimate(_ bytes: Int) -> Int { (bytes + 3) / 4 }
}
