/// A stand-in for an embedding model, for which texts are close if they share words.
///
/// It hashes features of words. It is named `lexical` and marked as degraded, because it finds
/// "sore knee" in "my knee is sore" but not in "my leg hurts".
public struct LexicalEmbedding: EmbeddingProvider {
  /// The dimension, large enough that words of a message rarely collide.
  private static let dimension = 1024

  /// The properties of the stand-in, in place of those of a model.
  public let model = EmbeddingModel(
    provider: "lexical",
    name: "hashed-words-1",
    dimension: LexicalEmbedding.dimension,
    relevanceThreshold: 0.2,
    isDegraded: true,
    dollarsPerMillionTokens: 0
  )

  /// Creates the stand-in, which has no configuration.
  public init() {}

  /// Returns one vector of unit length for each text; it uses no tokens and charges no one.
  public func embeddings(of texts: [String], for payer: Payer) -> Embeddings {
    Embeddings(vectors: texts.map(vector), usage: TokenUsage())
  }

  private func vector(_ text: String) -> [Float] {
    var vector = [Float](repeating: 0, count: Self.dimension)
    let words = text.lowercased().split { !$0.isLetter && !$0.isNumber }
    for word in words {
      let weight: Float = Self.frequentWords.contains(String(word)) ? 0.2 : 1
      add(String(word), weight, to: &vector)
      // A word's first letters bring its forms together: "squat", "squats", "squatting".
      if word.count > 3 { add("\(word.prefix(4))*", weight * 0.8, to: &vector) }
    }
    // A text without words, for example an emoji, counts as a single word.
    if words.isEmpty { add(text, 1, to: &vector) }
    var length: Float = 0
    for number in vector { length += number * number }
    guard length > 0 else {
      // All words cancelled each other out. Any fixed direction will do.
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

  /// Frequent words, which say little about the subject of a message.
  static let frequentWords: Set<String> = [
    "a", "am", "an", "and", "are", "as", "at", "be", "but", "by", "can", "do", "for", "from", "had",
    "has", "have", "he", "her", "his", "i", "if", "in", "is", "it", "its", "just", "me", "my", "no",
    "not", "of", "on", "or", "our", "she", "so", "that", "the", "their", "them", "then", "there",
    "they", "this", "to", "up", "was", "we", "were", "what", "when", "will", "with", "you", "your",
  ]
}
