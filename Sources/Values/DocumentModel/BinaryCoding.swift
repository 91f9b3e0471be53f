/// An error for stored bytes that do not decode.
///
/// The data folder is corrupt or was written by a newer version of Hearth.
package struct CorruptDataError: Error, CustomStringConvertible {
  package var description: String

  package init(_ description: String) {
    self.description = description
  }
}

/// An encoder for the compact binary form of values, documents and records in storage.
///
/// The form uses little-endian varints, length-prefixed text and one tag byte per value. It is
/// private to Hearth: clients see protobuf or JSON.
package struct BinaryEncoder: Sendable {
  package private(set) var bytes: [UInt8] = []

  package init() {}

  /// Appends one byte.
  package mutating func append(byte: UInt8) { bytes.append(byte) }

  /// Appends an unsigned integer as a varint of 1 to 10 bytes.
  package mutating func append(_ number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      bytes.append(UInt8(rest & 0x7F) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  /// Appends a signed integer as a zigzag varint; small magnitudes take few bytes.
  package mutating func append(signed number: Int64) {
    append(UInt64(bitPattern: (number << 1) ^ (number >> 63)))
  }

  /// Appends the number of bytes and then the bytes.
  package mutating func append(data: some Collection<UInt8>) {
    append(UInt64(data.count))
    bytes.append(contentsOf: data)
  }

  /// Appends text with a prefix that holds its length in UTF-8 bytes.
  package mutating func append(_ text: String) {
    append(data: text.utf8)
  }

  /// Appends the 8 bytes of a double; every NaN is written with the same bits.
  package mutating func append(_ double: Double) {
    withUnsafeBytes(of: double.withOneNaN.bitPattern.littleEndian) { bytes.append(contentsOf: $0) }
  }

  /// Appends a document's full name.
  package mutating func append(_ name: DocumentName) {
    append(name.database.project)
    append(name.database.database)
    append(UInt64(name.path.segments.count))
    for segment in name.path.segments { append(segment) }
  }

  package mutating func append(_ value: FirestoreValue) {
    switch value {
    case .null: bytes.append(0)
    case .boolean(let flag): bytes.append(flag ? 2 : 1)
    case .integer(let number):
      bytes.append(3)
      append(signed: number)
    case .double(let number):
      bytes.append(4)
      append(number)
    case .timestamp(let time):
      bytes.append(5)
      append(signed: time.microseconds)
    case .string(let text):
      bytes.append(6)
      append(text)
    case .bytes(let data):
      bytes.append(7)
      append(data: data)
    case .reference(let name):
      bytes.append(8)
      append(name)
    case .geoPoint(let point):
      bytes.append(9)
      append(point.latitude)
      append(point.longitude)
    case .array(let elements):
      bytes.append(10)
      append(UInt64(elements.count))
      for element in elements { append(element) }
    case .vector(let elements):
      bytes.append(11)
      append(UInt64(elements.count))
      for element in elements { append(element) }
    case .map(let fields):
      bytes.append(12)
      append(fields)
    }
  }

  /// Appends a map's entries.
  package mutating func append(_ fields: MapValue) {
    append(UInt64(fields.count))
    for (key, value) in fields {
      append(key)
      append(value)
    }
  }

  /// Appends a format version, then the document's name, times and fields.
  package mutating func append(_ document: FirestoreDocument) {
    append(byte: 1)
    append(document.name)
    append(signed: document.createTime.microseconds)
    append(signed: document.updateTime.microseconds)
    append(document.fields)
  }
}

/// A decoder for the bytes that `BinaryEncoder` wrote.
///
/// Every read is bounds-checked and throws `CorruptDataError`.
package struct BinaryDecoder: Sendable {
  private let bytes: [UInt8]
  private var index = 0
  private var depth = 0

  /// The maximum nesting depth of a stored value.
  ///
  /// It keeps corrupt bytes from exhausting the stack. Writes refuse more than 20 levels.
  private static let depthMax = 100

  /// Creates a decoder for the bytes of one whole stored value.
  package init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  package var isAtEnd: Bool { index == bytes.count }

  /// Reads one byte.
  package mutating func byte() throws(CorruptDataError) -> UInt8 {
    guard index < bytes.count else { throw CorruptDataError("stored value ends early") }
    defer { index += 1 }
    return bytes[index]
  }

  /// Reads an unsigned integer from a varint.
  package mutating func number() throws(CorruptDataError) -> UInt64 {
    var result: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      let next = try byte()
      guard shift < 63 || (shift == 63 && next <= 1) else {
        throw CorruptDataError("number of more than 64 bits")
      }
      result |= UInt64(next & 0x7F) << shift
      if next < 0x80 { return result }
      shift += 7
    }
  }

  /// Reads a signed integer from a zigzag varint.
  package mutating func signed() throws(CorruptDataError) -> Int64 {
    let raw = try number()
    return Int64(bitPattern: raw >> 1) ^ -Int64(bitPattern: raw & 1)
  }

  /// Reads a count, which must not exceed the number of bytes left.
  ///
  /// The bound keeps corrupt bytes from reserving a large amount of memory.
  package mutating func count() throws(CorruptDataError) -> Int {
    let raw = try number()
    guard raw <= UInt64(bytes.count - index) else { throw CorruptDataError("count beyond the end") }
    return Int(raw)
  }

  /// Reads length-prefixed bytes.
  package mutating func data() throws(CorruptDataError) -> [UInt8] {
    let length = try count()
    defer { index += length }
    return Array(bytes[index..<index + length])
  }

  /// Reads length-prefixed text and checks that it is UTF-8.
  package mutating func text() throws(CorruptDataError) -> String {
    let length = try count()
    let slice = bytes[index..<index + length]
    index += length
    guard let text = String(validating: slice, as: UTF8.self) else {
      throw CorruptDataError("text that is not UTF-8")
    }
    return text
  }

  package mutating func double() throws(CorruptDataError) -> Double {
    guard bytes.count - index >= 8 else { throw CorruptDataError("stored value ends early") }
    defer { index += 8 }
    return bytes.withUnsafeBytes { Self.double($0, at: index) }
  }

  /// Reads a vector: a count and that many doubles.
  private mutating func vector() throws(CorruptDataError) -> [Double] {
    let count = try count()
    guard count <= (bytes.count - index) / 8 else {
      throw CorruptDataError("stored value ends early")
    }
    defer { index += count * 8 }
    return bytes.withUnsafeBytes { bytes in
      [Double](unsafeUninitializedCapacity: count) { elements, initialized in
        for place in 0..<count {
          elements.initializeElement(at: place, to: Self.double(bytes, at: index + place * 8))
        }
        initialized = count
      }
    }
  }

  private static func double(_ bytes: UnsafeRawBufferPointer, at index: Int) -> Double {
    let bits = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
    return Double(bitPattern: UInt64(littleEndian: bits))
  }

  /// Reads a document's full name.
  package mutating func documentName() throws(CorruptDataError) -> DocumentName {
    let database = DatabaseName(project: try text(), database: try text())
    var segments: [String] = []
    for _ in 0..<(try count()) { segments.append(try text()) }
    return DocumentName(database: database, path: ResourcePath(segments))
  }

  package mutating func value() throws(CorruptDataError) -> FirestoreValue {
    depth += 1
    defer { depth -= 1 }
    guard depth <= Self.depthMax else { throw CorruptDataError("values nested too deep") }
    switch try byte() {
    case 0: return .null
    case 1: return .boolean(false)
    case 2: return .boolean(true)
    case 3: return .integer(try signed())
    case 4: return .double(try double())
    case 5: return .timestamp(Timestamp(microseconds: try signed()))
    case 6: return .string(try text())
    case 7: return .bytes(try data())
    case 8: return .reference(try documentName())
    case 9: return .geoPoint(GeoPoint(latitude: try double(), longitude: try double()))
    case 10:
      var elements: [FirestoreValue] = []
      for _ in 0..<(try count()) { elements.append(try value()) }
      return .array(elements)
    case 11: return .vector(try vector())
    case 12: return .map(try fields())
    case let tag: throw CorruptDataError("unknown value tag \(tag)")
    }
  }

  package mutating func fields() throws(CorruptDataError) -> MapValue {
    var fields = MapValue()
    for _ in 0..<(try count()) { fields.append(try text(), try value()) }
    return fields
  }

  package mutating func document() throws(CorruptDataError) -> FirestoreDocument {
    var document = try documentWithoutFields()
    document.fields = try fields()
    return document
  }

  /// Reads a document's name and times and stops before its fields.
  package mutating func documentWithoutFields() throws(CorruptDataError) -> FirestoreDocument {
    let version = try byte()
    guard version == 1 else { throw CorruptDataError("unknown document version \(version)") }
    let name = try documentName()
    let created = Timestamp(microseconds: try signed())
    let updated = Timestamp(microseconds: try signed())
    return FirestoreDocument(
      name: name,
      fields: [:],
      createTime: created,
      updateTime: updated
    )
  }

  /// Reads a document's name, times and selected fields, and skips the other fields.
  ///
  /// At every selected path the document has the same value that `document()` returns.
  package mutating func document(
    only selection: FieldSelection
  ) throws(CorruptDataError) -> FirestoreDocument {
    var document = try documentWithoutFields()
    document.fields = try fields(only: selection)
    return document
  }

  /// Reads the selected members of a map.
  ///
  /// The rest of the map may stay unread after the last selected member.
  private mutating func fields(
    only selection: FieldSelection
  ) throws(CorruptDataError) -> MapValue {
    var fields = MapValue()
    var left = selection.members.count
    for _ in 0..<(try count()) {
      guard left > 0 else { return fields }
      let name = try skippedData()
      // Older stored maps are not sorted by name, so each name is looked up separately.
      let place = bytes.withUnsafeBufferPointer { selection.place(of: $0, in: name) }
      guard let place else {
        try skipValue()
        continue
      }
      guard let text = String(validating: bytes[name], as: UTF8.self) else {
        throw CorruptDataError("text that is not UTF-8")
      }
      try appendMember(text, selection.members[place].inner, to: &fields)
      left -= 1
    }
    return fields
  }

  private mutating func appendMember(
    _ name: String,
    _ inner: FieldSelection?,
    to fields: inout MapValue
  ) throws(CorruptDataError) {
    guard let inner else { return fields.append(name, try value()) }
    let start = index
    if try byte() == Self.mapTag { fields.append(name, .map(try self.fields(only: inner))) }
    // Reading the selected members may have stopped before the map's end.
    index = start
    try skipValue()
  }

  private static let mapTag: UInt8 = 12

  /// Skips length-prefixed bytes and returns their range.
  private mutating func skippedData() throws(CorruptDataError) -> Range<Int> {
    let length = try count()
    defer { index += length }
    return index..<index + length
  }

  private mutating func skip(_ length: Int) throws(CorruptDataError) {
    guard length <= bytes.count - index else { throw CorruptDataError("stored value ends early") }
    index += length
  }

  /// Skips a value without decoding it.
  private mutating func skipValue() throws(CorruptDataError) {
    depth += 1
    defer { depth -= 1 }
    guard depth <= Self.depthMax else { throw CorruptDataError("values nested too deep") }
    switch try byte() {
    case 0, 1, 2: return
    case 3, 5: _ = try number()
    case 4: try skip(8)
    case 6, 7: _ = try skippedData()
    case 8:
      _ = try skippedData()
      _ = try skippedData()
      for _ in 0..<(try count()) { _ = try skippedData() }
    case 9: try skip(16)
    case 10: for _ in 0..<(try count()) { try skipValue() }
    case 11:
      let count = try count()
      guard count <= (bytes.count - index) / 8 else {
        throw CorruptDataError("stored value ends early")
      }
      index += count * 8
    case Self.mapTag:
      for _ in 0..<(try count()) {
        _ = try skippedData()
        try skipValue()
      }
    case let tag: throw CorruptDataError("unknown value tag \(tag)")
    }
  }
}
