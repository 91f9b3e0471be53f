/// The words of a fact, used to compare facts.
struct FactWords: Sendable {
  private let words: Set<String>

  /// The lowest similarity at which two facts of a category count as the same.
  static let sameFrom = 0.8

  /// Creates the words of a text, ignoring case, punctuation and repetition.
  init(_ text: String) {
    let plain = text.lowercased().filter { $0 != "'" && $0 != "’" }
    words = Set(plain.split { !$0.isLetter && !$0.isNumber }.map { String($0) })
  }

  /// True if there are no words, as in a text that has only signs.
  var isEmpty: Bool { words.isEmpty }

  /// Returns the Jaccard similarity: the share of all words that both facts have, at most 1.
  func similarity(to other: FactWords) -> Double {
    let either = words.union(other.words).count
    return either == 0 ? 1 : Double(words.intersection(other.words).count) / Double(either)
  }
}
