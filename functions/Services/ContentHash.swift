import Crypto

/// A hash by which equal contents are known, also to other processes.
enum ContentHash {
  /// The hash of a list of texts, 32 hexadecimal digits; another list has another one.
  static func of(_ texts: [String]) -> String {
    var hash = SHA256()
    for text in texts {
      // The lengths keep ["a", "bc"] apart from ["ab", "c"].
      hash.update(data: Array("\(text.utf8.count) ".utf8))
      hash.update(data: Array(text.utf8))
    }
    return hash.finalize().prefix(16).map { byte in
      (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }.joined()
  }
}
