/// An encoder of storage keys whose bytewise order is the order of the encoded values.
///
/// Each part is prefix-free, so parts can be concatenated, and a part can be inverted for a
/// descending order. Values that compare as equal (`3` and `3.0`) have the same encoding.
package struct KeyEncoder: Sendable {
  /// The key so far.
  package private(set) var bytes: [UInt8] = []
  /// True if a string or byte string was cut at `truncationBytes`.
  ///
  /// The reader must then compare the stored value itself.
  package private(set) var truncated = false

  /// The number of bytes of a string or byte string that are indexed, as in production.
  package static let truncationBytes = 1500

  package init() {}

  /// Creates a key that starts with already encoded bytes.
  package init(prefix: [UInt8]) {
    bytes = prefix
  }

  /// Appends bytes unchanged; the caller keeps the key prefix-free.
  package mutating func append(raw: some Sequence<UInt8>) {
    bytes.append(contentsOf: raw)
  }

  /// Appends a number in big-endian order.
  package mutating func append(_ number: UInt64) {
    withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
  }

  /// Appends text in full, without truncation.
  package mutating func append(text: String) {
    append(escaped: text.utf8)
  }

  /// Appends the segments of a path without the end mark.
  ///
  /// The keys of everything below the path share this prefix.
  package mutating func append(openPath path: ResourcePath) {
    for segment in path.segments { append(id: segment) }
  }

  /// Appends a path and an end mark that sorts before every further segment.
  package mutating func append(path: ResourcePath) {
    append(openPath: path)
    bytes.append(Tag.end)
  }

  /// Appends one collection or document id.
  package mutating func append(id: String) {
    if let number = ValueOrder.numericID(id) {
      bytes.append(Tag.numericID)
      append(UInt64(bitPattern: number) ^ (1 << 63))
    } else {
      bytes.append(Tag.textID)
      append(escaped: id.utf8)
    }
  }

  /// Appends a value; `descending` inverts its bytes.
  package mutating func append(_ value: FirestoreValue, descending: Bool = false) {
    let start = bytes.count
    encode(value)
    guard descending else { return }
    for index in start..<bytes.count { bytes[index] = ~bytes[index] }
  }

  /// Returns the first byte of every value of a type class, as a bound for ranges within the class.
  package static func tag(of typeClass: ValueOrder.TypeClass) -> UInt8 {
    Tag.firstValue + UInt8(typeClass.rawValue) * 4
  }

  private enum Tag {
    static let end: UInt8 = 0x00
    static let numericID: UInt8 = 0x02
    static let textID: UInt8 = 0x03
    static let mapKey: UInt8 = 0x04
    static let firstValue: UInt8 = 0x10
  }

  private mutating func encode(_ value: FirestoreValue) {
    bytes.append(Self.tag(of: ValueOrder.typeClass(value)))
    switch value {
    case .null: break
    case .boolean(let flag): bytes.append(flag ? 1 : 0)
    case .integer(let number): encode(integer: number)
    case .double(let number): encode(double: number, remainder: 0)
    case .timestamp(let time): append(UInt64(bitPattern: time.microseconds) ^ (1 << 63))
    case .string(let text): encode(truncating: text.utf8)
    case .bytes(let data): encode(truncating: data)
    case .reference(let name):
      append(text: name.database.project)
      append(text: name.database.database)
      append(path: name.path)
    case .geoPoint(let point):
      append(Self.orderedBits(point.latitude))
      append(Self.orderedBits(point.longitude))
    case .array(let elements):
      for element in elements { encode(element) }
      bytes.append(Tag.end)
    case .vector(let elements):
      append(UInt64(elements.count))
      for element in elements { append(Self.orderedBits(element)) }
    case .map(let fields):
      for (key, value) in fields {
        bytes.append(Tag.mapKey)
        append(text: key)
        encode(value)
      }
      bytes.append(Tag.end)
    }
  }

  /// Encodes an integer as the greatest double at or below it and the distance to that double.
  ///
  /// The distance is zero for integers that a double can represent.
  private mutating func encode(integer: Int64) {
    var double = Double(integer)
    if double >= 0x1p63 || Int64(double) > integer { double = double.nextDown }
    encode(double: double, remainder: UInt16(integer - Int64(double)))
  }

  private mutating func encode(double: Double, remainder: UInt16) {
    append(Self.orderedBits(double))
    bytes.append(UInt8(remainder >> 8))
    bytes.append(UInt8(remainder & 0xFF))
  }

  /// Returns the bits of a double as an unsigned number of the same order: NaN is 0, then −∞ to ∞.
  private static func orderedBits(_ double: Double) -> UInt64 {
    if double.isNaN { return 0 }
    let bits = double == 0 ? 0 : double.bitPattern
    return bits >> 63 == 1 ? ~bits : bits | (1 << 63)
  }

  private mutating func encode(truncating data: some Collection<UInt8>) {
    if data.count > Self.truncationBytes { truncated = true }
    append(escaped: data.prefix(Self.truncationBytes))
  }

  /// Appends bytes with each zero byte escaped as `00 FF`, then the end mark `00 01`.
  ///
  /// The end mark sorts below every continuation.
  private mutating func append(escaped data: some Sequence<UInt8>) {
    for byte in data {
      bytes.append(byte)
      if byte == 0 { bytes.append(0xFF) }
    }
    bytes.append(0x00)
    bytes.append(0x01)
  }
}
