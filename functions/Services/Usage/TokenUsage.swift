/// The tokens that a model's calls used.
public struct TokenUsage: Sendable, Hashable {
  /// Tokens of the model's input.
  public var promptTokens: Int
  /// Tokens that the model wrote; none for embeddings.
  public var completionTokens: Int
  /// Whether the count is estimated from the length of texts, because a server stated none.
  public var isEstimated: Bool

  /// A count; zero unless given.
  public init(promptTokens: Int = 0, completionTokens: Int = 0, isEstimated: Bool = false) {
    self.promptTokens = promptTokens
    self.completionTokens = completionTokens
    self.isEstimated = isEstimated
  }

  /// The sum of both counts.
  public var totalTokens: Int { promptTokens + completionTokens }

  /// The sum of two calls' counts; estimated if one of them is.
  public static func + (left: TokenUsage, right: TokenUsage) -> TokenUsage {
    TokenUsage(
      promptTokens: left.promptTokens + right.promptTokens,
      completionTokens: left.completionTokens + right.completionTokens,
      isEstimated: left.isEstimated || right.isEstimated
    )
  }

  /// Takes away the counts of a call that is part of the sum.
  static func -= (left: inout TokenUsage, right: TokenUsage) {
    left.promptTokens -= right.promptTokens
    left.completionTokens -= right.completionTokens
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

  /// The stated usage, or an estimate from the length of input and output.
  ///
  /// It is never more than the call can use, whatever a server states: a wrong count would take
  /// away what others have left of the day. Nor is a text free.
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

  /// Adds what an answer cost, whether it can be used or not.
  ///
  /// What cannot be used need not come from a model at all, so then only a stated count is believed.
  mutating func add<Output>(
    _ counted: TokenUsage,
    of answer: () throws -> Output
  ) rethrows -> Output {
    if !counted.isEstimated { self += counted }
    let output = try answer()
    if counted.isEstimated { self += counted }
    return output
  }

  /// A stated number, or none where there is no text; nil for a number that cannot be right.
  private static func believable(_ stated: Int?, bytes: Int) -> Int? {
    if let stated, stated > 0 { return stated }
    return bytes == 0 ? 0 : nil
  }

  /// English has about four bytes a token; other languages have fewer.
  static func estimate(_ bytes: Int) -> Int { (bytes + 3) / 4 }
}
