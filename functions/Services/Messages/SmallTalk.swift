/// Texts that say nothing about anybody, so that no chat model need read them.
enum SmallTalk {
  /// The fewest characters of content in a script that writes words without spaces.
  private static let unspacedMin = 4

  /// Whether a text is only a single word, numbers, signs or a greeting of somebody.
  static func matches(_ text: String) -> Bool {
    // A long text is not looked through: it has content.
    let words = text.prefix(1000).lowercased().split { !$0.isLetter && !$0.isNumber && $0 != "'" }
      .map { String($0) }.filter { $0.contains(where: \.isLetter) }
    let content = words.filter { !courtesies.contains($0) && !besideCourtesies.contains($0) }
    if content.contains(where: { $0.unicodeScalars.filter(isUnspaced).count >= unspacedMin }) {
      return false
    }
    // "Good morning Tina", but not "no sleep".
    return words.count <= 1 || content.count <= 1 && words.contains(where: courtesies.contains)
  }

  /// Whether a character belongs to a script that writes words without spaces.
  private static func isUnspaced(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    // Thai, Lao · Myanmar · Khmer · kana · Chinese characters of the three ranges in use.
    case 0x0E00...0x0EFF, 0x1000...0x109F, 0x1780...0x17FF, 0x3040...0x30FF, 0x3400...0x4DBF,
      0x4E00...0x9FFF, 0x20000...0x2FFFF:
      true
    default: false
    }
  }

  private static let courtesies: Set<String> = [
    "alright", "bye", "cheers", "cool", "danke", "evening", "goodbye", "goodnight", "gracias",
    "great", "haha", "hallo", "hello", "hey", "hi", "hola", "lol", "merci", "morgen", "morning",
    "night", "ok", "okay", "perfect", "see", "sure", "thank", "thanks", "thx", "welcome", "yeah",
    "yep",
    "yes", "你好", "谢谢", "こんにちは", "ありがとう", "สวัสดี",
  ]

  /// Words that add nothing to a courtesy, but may elsewhere.
  private static let besideCourtesies: Set<String> = [
    "a", "afternoon", "again", "and", "dear", "good", "later", "lot", "much", "my", "nice", "so",
    "soon", "the", "there", "to", "tomorrow", "too", "u", "very", "you",
  ]
}
