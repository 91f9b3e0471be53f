/// A search for a text in others, in time linear in both (Knuth, Morris and Pratt).
struct TextSearch {
  private let pattern: [UInt8]
  /// The length of the longest border of each beginning of the pattern.
  private var borders: [Int] = [0]

  init(_ text: String) {
    pattern = Array(text.utf8)
    var length = 0
    for byte in pattern.dropFirst() {
      while length > 0, pattern[length] != byte { length = borders[length - 1] }
      if pattern[length] == byte { length += 1 }
      borders.append(length)
    }
  }

  /// Returns the offset of the first match in UTF-8; nil if there is none.
  func firstMatch(in text: String) -> Int? {
    var first: Int?
    matches(in: text.utf8) { offset in
      first = offset
      return false
    }
    return first
  }

  /// Replaces all matches; nil if the result is longer than `bytesMax`.
  ///
  /// An empty pattern matches nowhere.
  func replacing(in text: String, with replacement: String, bytesMax: Int) -> String? {
    guard !pattern.isEmpty else { return text }
    let bytes = Array(text.utf8)
    var (result, end) = ([UInt8](), 0)
    matches(in: bytes) { offset in
      result += bytes[end..<offset]
      result += replacement.utf8
      end = offset + pattern.count
      return result.count <= bytesMax
    }
    guard result.count + bytes.count - end <= bytesMax else { return nil }
    return String(decoding: result + bytes[end...], as: UTF8.self)
  }

  /// Calls `body` with the offsets of the matches, none of which overlap, until it returns false.
  private func matches(in text: some Sequence<UInt8>, _ body: (Int) -> Bool) {
    guard !pattern.isEmpty else {
      _ = body(0)
      return
    }
    var length = 0
    for (offset, byte) in text.enumerated() {
      while length > 0, pattern[length] != byte { length = borders[length - 1] }
      if pattern[length] == byte { length += 1 }
      guard length == pattern.count else { continue }
      guard body(offset + 1 - length) else { return }
      length = 0
    }
  }
}
