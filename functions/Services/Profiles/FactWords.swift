/// The words of a fact, by which facts are told apart.
struct FactWords: Sendable {
  private let words: Set<String>

  /// The similarity from which two facts of a category are the same.
  static let sameFrom = 0.8

  /// The words of a text: case, punctuation and repetition do not count.
  init(_ text: String) {
    let plain = text.lowercased().filter { $0 != "'" && $0 != "’" }
    words = Set(plain.split { !$0.isLetter && !$0.isNumber }.map { String($0) })
  }

  /// Whether there are no words, as in a text of signs alone.
  var isEmpty: Bool { words.isEmpty }

  /// The share of all words that both facts have (Jaccard); 1 is the most.
  func similarity(to other: FactWords) -> Double {
    let either = words.union(other.words).count
    return either == 0 ? 1 : Double(words.intersection(other.words).count) / Double(either)
  }
}
