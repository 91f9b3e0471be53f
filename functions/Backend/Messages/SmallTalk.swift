/// Detection of texts without facts about people, which no chat model needs to read.
enum SmallTalk {
  /// Returns true for one word, numbers, signs, courtesies, or a greeting with a name.
  ///
  /// A courtesy together with any other word has content: "Thanks, asthma" may answer a question.
  /// The only exception is a name after a greeting, recognized by its capital letter.
  static func matches(_ text: String) -> Bool {
    // Only the beginning of a long text is examined, because a long text has content.
    let words = text.prefix(1000).split { !$0.isLetter && !$0.isNumber && $0 != "'" }
      .filter { $0.contains(where: \.isLetter) }
    let lowercased = words.map { $0.lowercased() }
    let content = lowercased.indices.filter { !isCourtesy(lowercased[$0]) }
    guard let first = content.first else { return true }
    guard content.count == 1, !isSeveralWords(words[first]) else { return false }
    if words.count == 1 { return true }
    guard first > 0, words[first].first?.isUppercase == true else { return false }
    // A comma or period may begin something else, as in "Danke, Asthma".
    let gap = text[words[first - 1].endIndex..<words[first].startIndex]
    return gap.allSatisfy(\.isWhitespace) && isGreeting(lowercased[..<first])
  }

  private static func isCourtesy(_ word: String) -> Bool {
    courtesies.contains(word) || besideCourtesies.contains(word) || greetings.contains(word)
  }

  /// Returns true if the words end with a greeting that a name can follow.
  ///
  /// "Good morning" is such a greeting. "Morning" alone is not, because it also begins "Morning
  /// Pilates".
  private static func isGreeting(_ words: ArraySlice<String>) -> Bool {
    guard let last = words.last else { return false }
    if greetings.contains(last) { return true }
    let before = words.dropLast().last
    return before == "good" && timesOfDay.contains(last) || before == "thank" && last == "you"
  }

  /// The number of characters from which a text without spaces counts as several words.
  private static let unspacedMin = 4

  private static func isSeveralWords(_ word: Substring) -> Bool {
    word.unicodeScalars.filter(isUnspaced).count >= unspacedMin
  }

  /// Returns true if a character belongs to a script that writes words without spaces.
  private static func isUnspaced(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    // Thai, Lao · Myanmar · Khmer · kana · Chinese characters of the three ranges in use.
    case 0x0E00...0x0EFF, 0x1000...0x109F, 0x1780...0x17FF, 0x3040...0x30FF, 0x3400...0x4DBF,
      0x4E00...0x9FFF, 0x20000...0x2FFFF:
      true
    default: false
    }
  }

  /// Courtesies that can be followed by a name.
  private static let greetings: Set<String> = [
    "bye", "cheers", "danke", "goodbye", "goodnight", "gracias", "hallo", "hello", "hey", "hi",
    "hola", "merci", "thanks", "thx", "welcome",
  ]

  private static let timesOfDay: Set<String> = ["afternoon", "evening", "morning", "night"]

  private static let courtesies: Set<String> = [
    "alright", "cool", "evening", "great", "haha", "lol", "morgen", "morning", "night", "ok",
    "okay", "perfect", "see", "sure", "thank", "yeah", "yep", "yes", "你好", "谢谢", "こんにちは",
    "ありがとう", "สวัสดี",
  ]

  /// Words that have no content next to a courtesy, but may have some elsewhere.
  private static let besideCourtesies: Set<String> = [
    "a", "afternoon", "again", "and", "dear", "good", "later", "lot", "much", "my", "nice", "so",
    "soon", "the", "there", "to", "tomorrow", "too", "u", "very", "you",
  ]
}
