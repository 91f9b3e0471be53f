/// Puts the messages of a client together, which may come in several frames.
///
/// A short number announces that many pieces. `0` is sent only to keep the connection alive.
struct MessageAssembly {
  /// The maximum number of pieces of a message; more make Firebase's clients give up, too.
  static let piecesMax = 9999
  /// The maximum size of a message, which is that of a write by a client.
  static let bytesMax = 16 << 20
  /// The maximum length of a frame that is taken for a number.
  private static let numberLengthMax = 6
  /// The part of a message beyond the limit that is kept to find out which request it is.
  private static let beginningBytes = 4096

  private var piecesLeft = 0
  private var isTooLong = false
  private(set) var bytes: [UInt8] = []

  /// The effect of a frame.
  enum Outcome: Equatable {
    case incomplete
    case message([UInt8])
    /// A message that exceeds the limit, and its beginning.
    case tooLong(beginning: [UInt8])
    /// A number of pieces that no client sends.
    case malformed
  }

  /// Takes the text of the next frame.
  mutating func add(_ frame: some RandomAccessCollection<UInt8>) -> Outcome {
    if piecesLeft == 0 {
      if let count = Self.number(frame) {
        guard count <= Self.piecesMax else { return .malformed }
        piecesLeft = count
        return .incomplete
      }
      piecesLeft = 1
    }
    append(frame)
    piecesLeft -= 1
    guard piecesLeft == 0 else { return .incomplete }
    defer { (bytes, isTooLong) = ([], false) }
    return isTooLong ? .tooLong(beginning: bytes) : .message(bytes)
  }

  private mutating func append(_ frame: some RandomAccessCollection<UInt8>) {
    guard !isTooLong else { return }
    bytes += frame
    guard bytes.count > Self.bytesMax else { return }
    isTooLong = true
    bytes = Array(bytes.prefix(Self.beginningBytes))
  }

  private static func number(_ frame: some RandomAccessCollection<UInt8>) -> Int? {
    guard frame.count <= numberLengthMax,
      frame.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return Int(String(decoding: frame, as: UTF8.self))
  }
}

/// The division of the server's messages into frames.
enum MessagePieces {
  /// The maximum length of a piece in UTF-16 code units.
  static let lengthMax = 16_384

  /// Returns the ranges of a message's pieces, none of which divides a character.
  static func split(_ message: [UInt8]) -> [Range<Int>] {
    guard message.count > lengthMax else { return [message.indices] }
    var pieces: [Range<Int>] = []
    var start = 0
    var length = 0
    for (index, byte) in message.enumerated() where byte & 0xC0 != 0x80 {
      // Characters of four bytes have two code units.
      let units = byte >= 0xF0 ? 2 : 1
      if length + units > lengthMax {
        pieces.append(start..<index)
        (start, length) = (index, 0)
      }
      length += units
    }
    pieces.append(start..<message.count)
    return pieces
  }
}
