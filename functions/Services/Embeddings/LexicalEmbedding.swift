/// Stands in when no model is configured: texts are close when they share words.
///
/// It hashes word features, and calls itself `lexical` and degraded, because it finds "sore knee"
/// in "my knee is sore" and not in "my leg hurts".
public struct LexicalEmbedding: EmbeddingProvider {
  /// The dimension, wide enough that words of a message seldom collide.
  private static let dimension = 1024

  /// The stand-in for a model.
  public let model = EmbeddingModel(
    provider: "lexical",
    name: "hashed-words-1",
    dimension: LexicalEmbedding.dimension,
    relevanceThreshold: 0.2,
    isDegraded: true,
    dollarsPerMillionTokens: 0
  )

  /// The only configuration.
  public init() {}

  /// One vector of unit length for each text, using no tokens, so that nobody pays.
  public func embeddings(of texts: [String], for payer: Payer) -> Embeddings {
    Embeddings(vectors: texts.map(vector), usage: TokenUsage())
  }

  private func vector(_ text: String) -> [Float] {
    var vector = [Float](repeating: 0, count: Self.dimension)
    let words = text.lowercased().split { !$0.isLetter && !$0.isNumber }
    for word in words {
      let weight: Float = Self.frequentWords.contains(String(word)) ? 0.2 : 1
      add(String(word), weight, to: &vector)
      // A word's beginning brings its forms together: "squat", "squats", "squatting".
      if word.count > 3 { add("\(word.prefix(4))*", weight * 0.8, to: &vector) }
    }
    // A text of signs alone, say an emoji, is its own only word.
    if words.isEmpty { add(text, 1, to: &vector) }
    var length: Float = 0
    for number in vector { length += number * number }
    guard length > 0 else {
      // All words cancelled each other out; any fixed direction is better than none.
      vector[0] = 1
      return vector
    }
    let scale = 1 / length.squareRoot()
    return vector.map { $0 * scale }
  }

  private func add(_ feature: String, _ weight: Float, to vector: inout [Float]) {
    var hash = StableHash.of(feature.utf8)
    // The low bits repeat for similar words; folding mixes in the high ones.
    hash ^= hash >> 32
    vector[Int(hash % UInt64(Self.dimension))] += hash & (1 << 31) == 0 ? weight : -weight
  }

  /// Words that say little about what a message is about.
  static let frequentWords: Set<String> = [
    "a", "am", "an", "and", "are", "as", "at", "be", "but", "by", "can", "do", "for", "from", "had",
    "has", "have", "he", "her", "his", "i", "if", "in", "is", "it", "its", "just", "me", "my", "no",
    "not", "of", "on", "or", "our", "she", "so", "that", "the", "their", "them", "then", "there",
    "they", "this", "to", "up", "was", "we", "were", "what", "when", "will", "with", "you", "your",
  ]
}
