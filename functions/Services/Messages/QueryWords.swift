/// The words of a query, by which messages are found without a model.
struct QueryWords: Sendable {
  private let words: [(word: String, weight: Double)]

  /// The weight of a word that says little, such as "the".
  private static let frequentWeight = 0.2
  /// The share of a word that only begins like one of the query's.
  private static let stemScore = 0.6
  /// The share of a word that only contains one of the query's, as in scripts without spaces.
  private static let partScore = 0.8
  /// The beginning that the forms of a word have in common.
  private static let stemLength = 4

  /// The words of a query; without any, as in an emoji, the query is its own only word.
  init(_ query: String) {
    let words = Self.words(query)
    self.words = (words.isEmpty ? [query.lowercased()] : Set(words).sorted()).map { word in
      (word, LexicalEmbedding.frequentWords.contains(word) ? Self.frequentWeight : 1)
    }
  }

  /// The share of the query's words that a text has, from 0 to 1.
  func score(of text: String) -> Double {
    let text = MetadataLimits.text(text).lowercased()
    let found = Set(Self.words(text))
    let stems = Set(found.map { $0.prefix(Self.stemLength) })
    func share(_ word: String) -> Double {
      if found.contains(word) { return 1 }
      // "He" is in "the", but a sign of another script may well be a word.
      let isShort = word.utf8.count < 3
      if !isShort, text.contains(word) { return Self.partScore }
      let stem = word.prefix(Self.stemLength)
      return stem.count == Self.stemLength && stems.contains(stem) ? Self.stemScore : 0
    }
    let total = words.reduce(0) { $0 + $1.weight }
    return words.reduce(0) { $0 + $1.weight * share($1.word) } / total
  }

  /// The words of a text, each once.
  static func all(in text: String) -> Set<String> { Set(words(text)) }

  private static func words(_ text: String) -> [String] {
    text.lowercased().split { !$0.isLetter && !$0.isNumber }.map { String($0) }
  }
}
