/// The words of a fact, by which facts are told apart.
struct FactWords: Sendable {
  private let words: Set<String>

  /// From this on two facts of a category are one.
  static let sameFrom = 0.8

  /// The words of a text: case, punctuation and repetition do not count.
  init(_ text: String) {
    let plain = text.lowercased().filter { $0 != "'" && $0 != "’" }
    words = Set(plain.split { !$0.isLetter && !$0.isNumber }.map { String($0) })
  }

  /// Whether there are none, as in a text of nothing but signs.
  var isEmpty: Bool { words.isEmpty }

  /// Words that both have, of all that either has (Jaccard); 1 is the most.
  func similarity(to other: FactWords) -> Double {
    let either = words.union(other.words).count
    return either == 0 ? 1 : Double(words.intersection(other.words).count) / Double(either)
  }
}
