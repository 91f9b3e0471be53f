/// Builds storage keys whose bytewise order is the order of the values put in.
///
/// Each part is prefix-free, so parts can follow one another and a part can be inverted for a
/// descending order. Equal values (`3` and `3.0`) encode alike.
package struct KeyEncoder: Sendable {
  /// The key so far.
  package private(set) var bytes: [UInt8] = []
  /// Whether a string or byte string was cut at `truncationBytes`.
  ///
  /// The reader must then compare the stored value itself.
  package private(set) var truncated = false

  /// Strings and bytes inside values are indexed by their first bytes only, as in production.
  package static let truncationBytes = 1500

  /// An empty key.
  package init() {}

  /// A key that starts with bytes made earlier.
  package init(prefix: [UInt8]) {
    bytes = prefix
  }

  /// Appends bytes as they are; the caller keeps the key prefix-free.
  package mutating func append(raw: some Sequence<UInt8>) {
    bytes.append(contentsOf: raw)
  }

  /// Appends a big-endian number.
  package mutating func append(_ number: UInt64) {
    withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
  }

  /// Appends text, whole.
  package mutating func append(text: String) {
    append(escaped: text.utf8)
  }

  /// Appends the segments of a path without its end.
  ///
  /// The keys of everything below the path share this prefix.
  package mutating func append(openPath path: ResourcePath) {
    for segment in path.segments { append(id: segment) }
  }

  /// Appends a path and its end, which sorts before every further segment.
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

  /// Appends a value; with `descending` its bytes are inverted.
  package mutating func append(_ value: FirestoreValue, descending: Bool = false) {
    let start = bytes.count
    encode(value)
    guard descending else { return }
    for index in start..<bytes.count { bytes[index] = ~bytes[index] }
  }

  /// The first byte of every value of a class, for ranges that stay inside it.
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

  /// A number is the double at or below it and, for integers that are not doubles, the distance.
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

  /// The bits of a double as an unsigned number of the same order: NaN 0, then −∞ to ∞.
  private static func orderedBits(_ double: Double) -> UInt64 {
    if double.isNaN { return 0 }
    let bits = double == 0 ? 0 : double.bitPattern
    return bits >> 63 == 1 ? ~bits : bits | (1 << 63)
  }

  private mutating func encode(truncating data: some Collection<UInt8>) {
    if data.count > Self.truncationBytes { truncated = true }
    append(escaped: data.prefix(Self.truncationBytes))
  }

  /// Zero bytes become `00 FF`; the end is `00 01`, below every continuation.
  private mutating func append(escaped data: some Sequence<UInt8>) {
    for byte in data {
      bytes.append(byte)
      if byte == 0 { bytes.append(0xFF) }
    }
    bytes.append(0x00)
    bytes.append(0x01)
  }
}
