import Crypto

/// A hash of contents that is stable across processes.
enum ContentHash {
  /// Returns the hash of a list of strings as 32 hexadecimal digits.
  ///
  /// Different lists have different hashes.
  static func of(_ texts: [String]) -> String {
    var hash = SHA256()
    for text in texts {
      // The lengths distinguish ["a", "bc"] from ["ab", "c"].
      hash.update(data: Array("\(text.utf8.count) ".utf8))
      hash.update(data: Array(text.utf8))
    }
    return hash.finalize().prefix(16).map { byte in
      (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }.joined()
  }
}
