/// A decoder of `Decodable` Swift values from a document's fields.
///
/// - `Timestamp`, `GeoPoint`, `DocumentName` and `FirestoreValue` are read directly. `Date` is read
///   from a timestamp, `Data` from bytes, `URL` from a string, and `[Double]` also from a vector.
/// - Numbers are exact: an integer is read from a double only if the double is whole and fits. A
///   `Double` is read from an integer or a double, and so is a `Decimal`, with the digits that the
///   double is written with.
/// - Fields without a matching property are ignored. A null or missing field is nil for an optional
///   property and an error for any other.
public struct ValueDecoder: Sendable {
  private var options = ValueCodingOptions()

  /// Creates a decoder of Firestore's own types.
  public init() {}

  /// Creates a decoder for another representation of values.
  package init(dialect: ValueDialect) {
    self.options.dialect = dialect
  }

  /// Decodes all fields of a document.
  ///
  /// Throws `ValueCodingError`, which names the path of the field at fault.
  public func decode<T: Decodable>(
    _ type: T.Type = T.self,
    from fields: MapValue
  ) throws -> T {
    try decode(type, from: .map(fields))
  }

  /// Decodes one value.
  ///
  /// Throws `ValueCodingError`, which names the path of the field at fault.
  public func decode<T: Decodable>(_ type: T.Type = T.self, from value: FirestoreValue) throws -> T
  {
    do {
      return try ValueReader(value: value, codingPath: [], options: options).read(type)
    } catch let error as DecodingError {
      throw ValueCodingError(error)
    }
  }
}

/// A value and its path, passed to a type's `init(from:)`.
struct ValueReader: Decoder {
  let value: FirestoreValue
  let codingPath: [any CodingKey]
  let options: ValueCodingOptions

  var userInfo: [CodingUserInfoKey: Any] { [:] }

  // Documents are at most 20 levels deep, and the parser bounds the JSON of callables. Anything
  // deeper comes from a type whose `init(from:)` recurses endlessly.
  private static let depthMax = 200

  func read<T: Decodable>(_ type: T.Type) throws -> T {
    guard codingPath.count <= Self.depthMax else {
      throw error("is nested more than \(Self.depthMax) levels deep")
    }
    guard let representable = type as? any ValueRepresentable.Type else {
      return try T(from: self)
    }
    guard let result = representable.read(value, options.dialect) as? T else {
      let found =
        value == .null ? "is null, not" : "is \(value.kindDescription), not"
      throw error("\(found) \(representable.expectation(options.dialect))")
    }
    return result
  }

  func nested(_ value: FirestoreValue, _ key: any CodingKey) -> ValueReader {
    ValueReader(value: value, codingPath: codingPath + [key], options: options)
  }

  func error(_ reason: String) -> ValueCodingError { ValueCodingError(at: codingPath, reason) }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    KeyedDecodingContainer(try ValueKeyedReader<Key>(self))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try ValueUnkeyedReader(self)
  }

  func singleValueContainer() -> any SingleValueDecodingContainer { self }
}

extension ValueReader: SingleValueDecodingContainer {
  func decodeNil() -> Bool { value == .null }
  func decode<T: Decodable>(_ type: T.Type) throws -> T { try read(type) }
}

private struct ValueKeyedReader<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let reader: ValueReader
  let fields: MapValue

  init(_ reader: ValueReader) throws {
    switch reader.value {
    case .map(let fields): self.fields = fields
    case .array(let elements) where reader.options.dialect == .database:
      let present = elements.enumerated().filter { $0.element != .null }
      fields = MapValue(present.map { (String($0.offset), $0.element) })
    default: throw reader.error("is \(reader.value.kindDescription), not a map")
    }
    self.reader = reader
  }

  var codingPath: [any CodingKey] { reader.codingPath }
  var allKeys: [Key] { fields.keys.compactMap(Key.init(stringValue:)) }

  func contains(_ key: Key) -> Bool { fields[key.stringValue] != nil }
  func decodeNil(forKey key: Key) throws -> Bool { try nested(key).decodeNil() }

  func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
    try nested(key).read(type)
  }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type,
    forKey key: Key
  ) throws -> KeyedDecodingContainer<NestedKey> {
    try nested(key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try nested(key).unkeyedContainer()
  }

  func superDecoder() throws -> any Decoder { try nested(ValueCodingKey.super) }
  func superDecoder(forKey key: Key) throws -> any Decoder { try nested(key) }

  private func nested(_ key: any CodingKey) throws -> ValueReader {
    guard let value = fields[key.stringValue] else {
      throw ValueCodingError(at: codingPath + [key], "is missing")
    }
    return reader.nested(value, key)
  }
}

private struct ValueUnkeyedReader: UnkeyedDecodingContainer {
  let reader: ValueReader
  let elements: [FirestoreValue]
  var currentIndex = 0

  init(_ reader: ValueReader) throws {
    switch reader.value {
    case .array(let elements): self.elements = elements
    case .vector(let doubles): self.elements = doubles.map(FirestoreValue.double)
    case .map(let fields) where reader.options.dialect == .database:
      guard let elements = Self.elements(of: fields) else { fallthrough }
      self.elements = elements
    default: throw reader.error("is \(reader.value.kindDescription), not an array")
    }
    self.reader = reader
  }

  /// Returns the list that readers make of a map; nil for a map that is none.
  private static func elements(of fields: MapValue) -> [FirestoreValue]? {
    var byIndex: [Int: FirestoreValue] = [:]
    for (key, value) in fields {
      guard let index = Int(key), index >= 0, String(index) == key else { return nil }
      byIndex[index] = value
    }
    let count = (byIndex.keys.max() ?? -1) + 1
    guard count <= 2 * byIndex.count else { return nil }
    return (0..<count).map { byIndex[$0] ?? .null }
  }

  var codingPath: [any CodingKey] { reader.codingPath }
  var count: Int? { elements.count }
  var isAtEnd: Bool { currentIndex >= elements.count }

  mutating func decodeNil() throws -> Bool {
    guard try peek().decodeNil() else { return false }
    currentIndex += 1
    return true
  }

  mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
    let result = try peek().read(type)
    currentIndex += 1
    return result
  }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type
  ) throws -> KeyedDecodingContainer<NestedKey> {
    let result = try peek().container(keyedBy: type)
    currentIndex += 1
    return result
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    let result = try peek().unkeyedContainer()
    currentIndex += 1
    return result
  }

  mutating func superDecoder() throws -> any Decoder {
    let result = try peek()
    currentIndex += 1
    return result
  }

  private func peek() throws -> ValueReader {
    guard !isAtEnd else {
      throw ValueCodingError(at: codingPath, "has only \(elements.count) elements")
    }
    return reader.nested(elements[currentIndex], ValueCodingKey(index: currentIndex))
  }
}
