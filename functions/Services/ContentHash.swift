#if canImport(CryptoKit)
  import CryptoKit
#else
  import Cryptography
#endif

/// A hash of contents that is stable across processes.
public enum ContentHash {
  /// Returns the hash of a list of strings as 32 hexadecimal digits.
  ///
  /// Different lists have different hashes.
  public static func of(_ texts: [String]) -> String {
    var content: [UInt8] = []
    for text in texts {
      // The lengths distinguish ["a", "bc"] from ["ab", "c"].
      content += "\(text.utf8.count) ".utf8
      content += text.utf8
    }
    return SHA256.hash(data: content).prefix(16).map { byte in
      (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }.joined()
  }
}
