import JSONText

/// The text of rules, and the same text as JSON without comments.
struct RulesText: Sendable {
  let bytes: [UInt8]
  /// The text with comments as spaces, so that places are the same.
  ///
  /// Line breaks and tabs in strings are spaces, too: production allows them there.
  let json: [UInt8]
  private let lineStarts: [Int]

  init(_ text: String) throws(DatabaseRulesError) {
    let bytes = Array(text.utf8)
    self.bytes = bytes
    lineStarts =
      [0] + bytes.indices.filter { bytes[$0] == UInt8(ascii: "\n") }.map { $0 + 1 }
    var (json, offset) = (bytes, 0)
    var unclosed: Int?
    while offset < json.count {
      let end: Int
      switch (json[offset], offset + 1 < json.count ? json[offset + 1] : 0) {
      case (UInt8(ascii: "\""), _): end = Self.endOfString(&json, from: offset)
      case (UInt8(ascii: "/"), UInt8(ascii: "/")):
        end = json[offset...].firstIndex(of: UInt8(ascii: "\n")) ?? json.count
        Self.blank(&json, offset..<end)
      case (UInt8(ascii: "/"), UInt8(ascii: "*")):
        var last = offset + 3
        while last < json.count,
          json[last] != UInt8(ascii: "/") || json[last - 1] != UInt8(ascii: "*")
        {
          last += 1
        }
        if last >= json.count { unclosed = offset }
        end = min(last + 1, json.count)
        Self.blank(&json, offset..<end)
      default: end = offset + 1
      }
      offset = end
    }
    self.json = json
    if let unclosed { throw error(at: unclosed, "Unterminated comment.") }
  }

  /// Returns the offset behind a string, whose control characters become spaces.
  private static func endOfString(_ json: inout [UInt8], from start: Int) -> Int {
    var offset = start + 1
    while offset < json.count, json[offset] != UInt8(ascii: "\"") {
      if json[offset] < 0x20 { json[offset] = UInt8(ascii: " ") }
      offset += json[offset] == UInt8(ascii: "\\") ? 2 : 1
    }
    return offset + 1
  }

  private static func blank(_ json: inout [UInt8], _ range: Range<Int>) {
    for offset in range where json[offset] != UInt8(ascii: "\n") {
      json[offset] = UInt8(ascii: " ")
    }
  }

  /// The JSON without any space outside of strings.
  var compactJSON: String {
    var compact: [UInt8] = []
    var offset = 0
    while offset < json.count {
      var end = offset + 1
      if json[offset] == UInt8(ascii: "\"") {
        while json[end] != UInt8(ascii: "\"") { end += json[end] == UInt8(ascii: "\\") ? 2 : 1 }
        end += 1
      }
      if json[offset] > 0x20 { compact += json[offset..<end] }
      offset = end
    }
    return String(decoding: compact, as: UTF8.self)
  }

  /// Returns the line and the column, in Unicode scalars, of an offset; both are counted from 1.
  func place(_ offset: Int) -> (line: Int, column: Int) {
    var (low, high) = (0, lineStarts.count)
    while high - low > 1 {
      let middle = (low + high) / 2
      if lineStarts[middle] <= offset { low = middle } else { high = middle }
    }
    let line = bytes[lineStarts[low]..<min(offset, bytes.count)]
    return (low + 1, line.count { $0 & 0xC0 != 0x80 } + 1)
  }

  func error(at offset: Int, _ message: String) -> DatabaseRulesError {
    let place = place(offset)
    return DatabaseRulesError(line: place.line, column: place.column, message: message)
  }
}
