/// A parser that extracts WebChannel chunks from bytes as they arrive.
///
/// A chunk consists of its length in UTF-16 code units as decimal digits, a newline, and JSON of
/// that length.
struct WebChannelFrames {
  /// The error for bytes that are not a chunk, or for a chunk that is too long.
  struct MalformedError: Error {}

  private let bytesMax: Int
  private var buffer: [UInt8] = []
  /// The position of the first byte that has not been returned in a chunk.
  private var start = 0
  /// The units of the current chunk that are missing, and the start and the end of its text so far.
  private var chunk: (rest: Int, text: Int, end: Int)?

  /// Creates a parser that holds no more than `bytesMax` bytes of a chunk.
  init(bytesMax: Int) { self.bytesMax = bytesMax }

  /// Adds bytes that have arrived.
  mutating func append(_ bytes: [UInt8]) throws(MalformedError) {
    if start == buffer.count {
      buffer = bytes
      start = 0
    } else {
      guard buffer.count - start + bytes.count <= bytesMax else { throw MalformedError() }
      buffer += bytes
    }
  }

  /// Returns the next complete chunk; nil if more bytes are needed.
  mutating func next() throws(MalformedError) -> [UInt8]? {
    if chunk == nil { chunk = try readLength() }
    guard var chunk else { return nil }
    while chunk.rest > 0, chunk.end < buffer.count {
      let (bytes, units) = Self.size(ofCharacterBeginningWith: buffer[chunk.end])
      guard chunk.end + bytes <= buffer.count else { break }
      chunk.end += bytes
      chunk.rest -= units
    }
    guard chunk.rest >= 0 else { throw MalformedError() }
    guard chunk.rest == 0 else {
      self.chunk = (chunk.rest, chunk.text - start, chunk.end - start)
      dropTaken()
      return nil
    }
    self.chunk = nil
    start = chunk.end
    return Array(buffer[chunk.text..<chunk.end])
  }

  private mutating func readLength() throws(MalformedError) -> (rest: Int, text: Int, end: Int)? {
    guard let end = buffer[start...].firstIndex(of: UInt8(ascii: "\n")) else {
      guard buffer.count - start < 12 else { throw MalformedError() }
      dropTaken()
      return nil
    }
    guard let length = Int(String(decoding: buffer[start..<end], as: UTF8.self)),
      (1...bytesMax).contains(length)
    else { throw MalformedError() }
    return (length, end + 1, end + 1)
  }

  private mutating func dropTaken() {
    buffer.removeFirst(start)
    start = 0
  }

  private static func size(ofCharacterBeginningWith byte: UInt8) -> (bytes: Int, units: Int) {
    switch byte {
    case 0xF0...: (4, 2)
    case 0xE0...: (3, 1)
    case 0xC0...: (2, 1)
    default: (1, 1)
    }
  }
}
