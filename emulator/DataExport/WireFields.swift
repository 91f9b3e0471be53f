import StatusCodes

/// A reader of the fields of one message in protobuf's binary form, for untrusted bytes.
///
/// It reads groups as well, which the messages of Datastore's exports have and SwiftProtobuf does
/// not support.
struct WireFields {
  /// The value of a field.
  enum Value {
    case number(UInt64)
    case double(Double)
    case bytes(ArraySlice<UInt8>)
    /// The content of a group.
    case group(ArraySlice<UInt8>)
  }

  private let message: ArraySlice<UInt8>
  /// The part of the message that is not read yet.
  private var bytes: ArraySlice<UInt8>
  /// The maximum nesting of groups; a document's values have none inside one another.
  private static let depthMax = 8

  init(_ bytes: ArraySlice<UInt8>) {
    message = bytes
    self.bytes = bytes
  }

  /// Returns the next field; nil at the end.
  ///
  /// Throws `INVALID_ARGUMENT` for malformed bytes.
  mutating func next() throws(StatusError) -> (number: Int, value: Value)? {
    guard !bytes.isEmpty else { return nil }
    let key = try varint()
    let number = Int(truncatingIfNeeded: key >> 3)
    switch key & 7 {
    case 0: return (number, .number(try varint()))
    case 1:
      let raw = try take(8)
      let bits = raw.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      return (number, .double(Double(bitPattern: bits)))
    case 2: return (number, .bytes(try take(Self.length(try varint()))))
    case 3: return (number, .group(try group(number, depth: 1)))
    case 5: return (number, .bytes(try take(4)))
    default: throw Self.malformed
    }
  }

  /// Returns the content of a group up to its end, which is removed, too.
  private mutating func group(_ number: Int, depth: Int) throws(StatusError) -> ArraySlice<UInt8> {
    guard depth <= Self.depthMax else { throw Self.malformed }
    let start = bytes.startIndex
    while true {
      let end = bytes.startIndex
      let key = try varint()
      switch key & 7 {
      case 0: _ = try varint()
      case 1: _ = try take(8)
      case 2: _ = try take(Self.length(try varint()))
      case 3: _ = try group(Int(truncatingIfNeeded: key >> 3), depth: depth + 1)
      case 4:
        guard Int(truncatingIfNeeded: key >> 3) == number else { throw Self.malformed }
        return message[start..<end]
      case 5: _ = try take(4)
      default: throw Self.malformed
      }
    }
  }

  private mutating func varint() throws(StatusError) -> UInt64 {
    var result: UInt64 = 0
    var shift: UInt64 = 0
    while let byte = bytes.popFirst() {
      guard shift < 64 else { throw Self.malformed }
      result |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return result }
      shift += 7
    }
    throw Self.malformed
  }

  private mutating func take(_ count: Int) throws(StatusError) -> ArraySlice<UInt8> {
    guard count <= bytes.count else { throw Self.malformed }
    defer { bytes = bytes.dropFirst(count) }
    return bytes.prefix(count)
  }

  private static func length(_ number: UInt64) throws(StatusError) -> Int {
    guard number <= UInt64(LevelDBLog.recordBytesMax) else { throw malformed }
    return Int(number)
  }

  private static let malformed = StatusError.invalidArgument("malformed protobuf")
}
