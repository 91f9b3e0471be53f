/// The words of a query, used to find messages without a model.
struct QueryWords: Sendable {
  private let words: [(word: String, weight: Double)]

  /// The weight of a frequent word, such as "the".
  private static let frequentWeight = 0.2
  /// The score of a query word if a word of the text only has the same first letters.
  private static let stemScore = 0.6
  /// The score of a query word that is only part of a longer word, as without spaces.
  private static let partScore = 0.8
  /// The number of first letters that the forms of a word have in common.
  private static let stemLength = 4

  /// Creates the words of a query.
  ///
  /// A query without words, such as an emoji, counts as a single word.
  init(_ query: String) {
    let words = Self.words(query)
    self.words = (words.isEmpty ? [query.lowercased()] : Set(words).sorted()).map { word in
      (word, LexicalEmbedding.frequentWords.contains(word) ? Self.frequentWeight : 1)
    }
  }

  /// Returns the weighted share of the query's words in a text, from 0 to 1.
  func score(of text: String) -> Double {
    let text = MetadataLimits.text(text).lowercased()
    let found = Set(Self.words(text))
    let stems = Set(found.map { $0.prefix(Self.stemLength) })
    func share(_ word: String) -> Double {
      if found.contains(word) { return 1 }
      // "He" is contained in "the", but a single sign of another script may well be a word.
      let isShort = word.utf8.count < 3
      if !isShort, text.contains(word) { return Self.partScore }
      let stem = word.prefix(Self.stemLength)
      return stem.count == Self.stemLength && stems.contains(stem) ? Self.stemScore : 0
    }
    let total = words.reduce(0) { $0 + $1.weight }
    return words.reduce(0) { $0 + $1.weight * share($1.word) } / total
  }

  /// Returns the set of words in a text.
  static func all(in text: String) -> Set<String> { Set(words(text)) }

  private static func words(_ text: String) -> [String] {
    text.lowercased().split { !$0.isLetter && !$0.isNumber }.map { String($0) }
  }
}
