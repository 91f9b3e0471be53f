extension JSONType {
  /// Derives the type of the objects that a Swift type decodes, from its `init(from:)`.
  ///
  /// Properties may be strings, numbers, Booleans, arrays, objects and
  /// ``JSONChoice``s. Optional properties may be null. `descriptions` maps the names of properties
  /// to descriptions for the model. Throws `DecodingError` if the Swift type decodes anything else.
  public init(of type: any Decodable.Type, descriptions: [String: String] = [:]) throws {
    let probe = ShapeProbe()
    _ = try type.init(from: probe)
    guard let properties = probe.form.properties else {
      throw probe.unsupported("\(type) does not decode an object")
    }
    self = .object(
      properties.reduce(into: [:]) { described, property in
        described[property.key] =
          descriptions[property.key].map(property.value.described) ?? property.value
      }
    )
  }
}

/// A string type with a few values, described to a model as an enumeration.
public protocol JSONChoice: Codable, CaseIterable, RawRepresentable, Sendable
where RawValue == String {}

/// A decoder that returns placeholder values and records the requested types.
private final class ShapeProbe: Decoder {
  /// The types that have been requested so far.
  enum Form {
    case nothing
    case value(JSONType)
    case object([String: JSONType])

    var properties: [String: JSONType]? { if case .object(let all) = self { all } else { nil } }
  }

  let codingPath: [any CodingKey]
  let userInfo: [CodingUserInfoKey: Any] = [:]
  var form = Form.nothing
  /// The names of the properties that may be null.
  var nullable: Set<String> = []

  init(codingPath: [any CodingKey] = []) {
    self.codingPath = codingPath
  }

  var type: JSONType? {
    switch form {
    case .nothing: nil
    case .value(let type): type
    case .object(let properties): .object(properties)
    }
  }

  func unsupported(_ reason: String) -> DecodingError {
    .dataCorrupted(.init(codingPath: codingPath, debugDescription: reason))
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
    if form.properties == nil { form = .object([:]) }
    return KeyedDecodingContainer(PropertyProbe<Key>(probe: self))
  }

  func unkeyedContainer() -> any UnkeyedDecodingContainer { ElementProbe(probe: self) }

  func singleValueContainer() -> any SingleValueDecodingContainer { ValueProbe(probe: self) }

  /// Returns a value of a Swift type, and the JSON type derived from it.
  func value<T: Decodable>(_ type: T.Type) throws -> (T, JSONType) {
    if let choice = type as? any JSONChoice.Type, let value = first(of: choice) as? T {
      return (value, .string(enum: texts(of: choice)))
    }
    let probe = ShapeProbe(codingPath: codingPath)
    let value = try type.init(from: probe)
    guard let form = probe.type else { throw unsupported("\(type) decodes nothing") }
    return (value, form)
  }

  private func first<Choice: JSONChoice>(of type: Choice.Type) -> Choice? { type.allCases.first }

  private func texts<Choice: JSONChoice>(of type: Choice.Type) -> [String] {
    type.allCases.map(\.rawValue)
  }
}

private struct PropertyProbe<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let probe: ShapeProbe
  var codingPath: [any CodingKey] { probe.codingPath }
  let allKeys: [Key] = []

  func contains(_ key: Key) -> Bool { true }

  func decodeNil(forKey key: Key) -> Bool {
    // Only a type that accepts null calls this, as the decoding of an optional does.
    probe.nullable.insert(key.stringValue)
    return false
  }

  func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
    let (value, form) = try probe.value(type)
    set(key, form)
    return value
  }

  private func set(_ key: Key, _ form: JSONType) {
    var properties = probe.form.properties ?? [:]
    properties[key.stringValue] = probe.nullable.contains(key.stringValue) ? form.orNull : form
    probe.form = .object(properties)
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type,
    forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> {
    throw probe.unsupported("a nested container is not a type of its own")
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    throw probe.unsupported("a nested container is not a type of its own")
  }

  func superDecoder() throws -> any Decoder { throw probe.unsupported("classes have no form") }

  func superDecoder(forKey key: Key) throws -> any Decoder {
    throw probe.unsupported("classes have no form")
  }
}

/// An array with one element, from which the element type is derived.
private struct ElementProbe: UnkeyedDecodingContainer {
  let probe: ShapeProbe
  var codingPath: [any CodingKey] { probe.codingPath }
  let count: Int? = 1
  var currentIndex = 0
  var isAtEnd: Bool { currentIndex > 0 }

  mutating func decodeNil() -> Bool { false }

  mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
    let (value, form) = try probe.value(type)
    probe.form = .value(.array(of: form))
    currentIndex += 1
    return value
  }

  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type
  ) throws -> KeyedDecodingContainer<Nested> {
    throw probe.unsupported("a nested container is not a type of its own")
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    throw probe.unsupported("a nested container is not a type of its own")
  }

  mutating func superDecoder() throws -> any Decoder {
    throw probe.unsupported("classes have no form")
  }
}

private struct ValueProbe: SingleValueDecodingContainer {
  let probe: ShapeProbe
  var codingPath: [any CodingKey] { probe.codingPath }

  func decodeNil() -> Bool { false }

  func decode(_ type: Bool.Type) -> Bool { noting(.boolean, false) }
  func decode(_ type: String.Type) -> String { noting(.string, "") }
  func decode(_ type: Double.Type) -> Double { noting(.number, 0) }
  func decode(_ type: Float.Type) -> Float { noting(.number, 0) }
  func decode(_ type: Int.Type) -> Int { noting(.integer, 0) }
  func decode(_ type: Int8.Type) -> Int8 { noting(.integer, 0) }
  func decode(_ type: Int16.Type) -> Int16 { noting(.integer, 0) }
  func decode(_ type: Int32.Type) -> Int32 { noting(.integer, 0) }
  func decode(_ type: Int64.Type) -> Int64 { noting(.integer, 0) }
  func decode(_ type: UInt.Type) -> UInt { noting(.integer, 0) }
  func decode(_ type: UInt8.Type) -> UInt8 { noting(.integer, 0) }
  func decode(_ type: UInt16.Type) -> UInt16 { noting(.integer, 0) }
  func decode(_ type: UInt32.Type) -> UInt32 { noting(.integer, 0) }
  func decode(_ type: UInt64.Type) -> UInt64 { noting(.integer, 0) }

  func decode<T: Decodable>(_ type: T.Type) throws -> T {
    let (value, form) = try probe.value(type)
    return noting(form, value)
  }

  private func noting<T>(_ form: JSONType, _ value: T) -> T {
    probe.form = .value(form)
    return value
  }
}
