/// An encoder of `Encodable` Swift values as a document's fields.
///
/// It is the counterpart of `ValueDecoder`: `Date` becomes a timestamp, `Data` bytes, `URL` a
/// string, `Decimal` a double, and every integer type an integer. A nil property becomes no field.
/// Use `FirestoreValue` for types that Swift lacks, such as a vector.
public struct ValueEncoder: Sendable {
  private var options = ValueCodingOptions()

  /// Creates an encoder to Firestore's own types.
  public init() {}

  /// Creates an encoder to another representation of values.
  package init(dialect: ValueDialect) {
    self.options.dialect = dialect
  }

  /// Encodes a value as the fields of a document.
  ///
  /// Throws `ValueCodingError`, also if the value is not a container of named fields.
  public func encodeFields(_ value: some Encodable) throws -> MapValue {
    guard case .map(let fields) = try encode(value) else {
      throw ValueCodingError(path: "", reason: "a document needs named fields")
    }
    return fields
  }

  /// Encodes one value.
  ///
  /// Throws `ValueCodingError` with the path of the invalid property.
  public func encode(_ value: some Encodable) throws -> FirestoreValue {
    do {
      let writer = ValueWriter(codingPath: [], options: options)
      try writer.write(value)
      return writer.slot.value
    } catch let error as EncodingError {
      throw ValueCodingError(error)
    }
  }
}

/// A slot for a value that is being encoded.
///
/// Containers fill it while their type encodes itself.
private final class ValueSlot {
  enum Content {
    case single(FirestoreValue)
    case array([ValueSlot])
    case map([(key: String, slot: ValueSlot)])
  }

  var content: Content?

  /// The encoded value; an empty map if the type encoded nothing.
  var value: FirestoreValue {
    switch content {
    case nil: .map([:])
    case .single(let value): value
    case .array(let slots): .array(slots.map(\.value))
    case .map(let slots): .map(MapValue(slots.map { ($0.key, $0.slot.value) }))
    }
  }
}

private struct ValueWriter: Encoder {
  let slot = ValueSlot()
  let codingPath: [any CodingKey]
  let options: ValueCodingOptions

  var userInfo: [CodingUserInfoKey: Any] { [:] }

  // Documents are at most 20 levels deep. Anything deeper comes from a type whose `encode(to:)`
  // recurses endlessly.
  private static let depthMax = 200

  func write<T: Encodable>(_ value: T) throws {
    guard codingPath.count <= Self.depthMax else {
      throw ValueCodingError(at: codingPath, "is nested more than \(Self.depthMax) levels deep")
    }
    guard let representable = value as? any ValueRepresentable else {
      return try value.encode(to: self)
    }
    guard let written = representable.written(options.dialect) else {
      throw ValueCodingError(at: codingPath, "is out of the range that can be stored")
    }
    slot.content = .single(written)
  }

  func nested(_ key: any CodingKey) -> ValueWriter {
    ValueWriter(codingPath: codingPath + [key], options: options)
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    // A second container of the same kind adds to the first, because a class and its superclass
    // each ask for a container.
    if case .map = slot.content {} else { slot.content = .map([]) }
    return KeyedEncodingContainer(ValueKeyedWriter<Key>(writer: self))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    if case .array = slot.content {} else { slot.content = .array([]) }
    return ValueUnkeyedWriter(writer: self)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension ValueWriter: SingleValueEncodingContainer {
  func encodeNil() { slot.content = .single(.null) }
  func encode<T: Encodable>(_ value: T) throws { try write(value) }
}

private struct ValueKeyedWriter<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let writer: ValueWriter

  var codingPath: [any CodingKey] { writer.codingPath }

  func encodeNil(forKey key: Key) { nested(key).encodeNil() }
  func encode<T: Encodable>(_ value: T, forKey key: Key) throws { try nested(key).write(value) }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type,
    forKey key: Key
  ) -> KeyedEncodingContainer<NestedKey> {
    nested(key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    nested(key).unkeyedContainer()
  }

  func superEncoder() -> any Encoder { nested(ValueCodingKey.super) }
  func superEncoder(forKey key: Key) -> any Encoder { nested(key) }

  private func nested(_ key: any CodingKey) -> ValueWriter {
    let nested = writer.nested(key)
    guard case .map(var slots) = writer.slot.content else { return nested }
    writer.slot.content = nil
    slots.append((key.stringValue, nested.slot))
    writer.slot.content = .map(slots)
    return nested
  }
}

private struct ValueUnkeyedWriter: UnkeyedEncodingContainer {
  let writer: ValueWriter

  var codingPath: [any CodingKey] { writer.codingPath }

  var count: Int {
    if case .array(let slots) = writer.slot.content { slots.count } else { 0 }
  }

  func encodeNil() { nested().encodeNil() }
  func encode<T: Encodable>(_ value: T) throws { try nested().write(value) }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type
  ) -> KeyedEncodingContainer<NestedKey> {
    nested().container(keyedBy: type)
  }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { nested().unkeyedContainer() }
  func superEncoder() -> any Encoder { nested() }

  private func nested() -> ValueWriter {
    let nested = writer.nested(ValueCodingKey(index: count))
    guard case .array(var slots) = writer.slot.content else { return nested }
    writer.slot.content = nil
    slots.append(nested.slot)
    writer.slot.content = .array(slots)
    return nested
  }
}
