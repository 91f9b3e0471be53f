import DocumentModel
import JSONText

/// Values of Swift types as nodes: dates are milliseconds since 1970, as the server's time is.
extension DatabaseNode {
  /// Reads a value of a type; throws `ValueCodingError`.
  ///
  /// A list is read from an object whose keys are indices, as Firebase's clients do.
  package func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
    try ValueDecoder(dialect: .database).decode(type, from: fields)
  }

  private var fields: FirestoreValue {
    switch content {
    case .empty: .null
    case .leaf(.boolean(let flag)): .boolean(flag)
    case .leaf(.number(let number)): .double(number)
    case .leaf(.string(let text)): .string(text)
    case .children(let children):
      .map(MapValue(children.lazy.map { ($0.key.text, $0.node.fields) }))
    }
  }
}

extension JSONValue {
  /// Creates the JSON that is written to the Realtime Database for a value.
  ///
  /// Throws `ValueCodingError`.
  package init(writing value: some Encodable) throws {
    self.init(try ValueEncoder(dialect: .database).encode(value))
  }

  private init(_ value: FirestoreValue) {
    switch value {
    case .boolean(let flag): self = .boolean(flag)
    case .integer(let integer): self = .number(Double(integer))
    case .double(let double): self = .number(double)
    case .string(let text): self = .string(text)
    case .array(let elements): self = .array(elements.map { JSONValue($0) })
    case .vector(let doubles): self = .array(doubles.map { .number($0) })
    case .map(let fields):
      self = .object(
        Dictionary(fields.map { ($0.key, JSONValue($0.value)) }) { _, last in last }
      )
    // The encoder of this dialect writes no other values.
    case .null, .timestamp, .bytes, .reference, .geoPoint: self = .null
    }
  }
}
