public import FirestoreClient

/// A document that apps write and that may therefore contain anything.
///
/// Decoding throws only if a required field is missing or invalid. Any other invalid field counts
/// as missing and is listed in `unreadable`.
public protocol StoredDocument: Codable, Sendable {
  /// The errors of the fields and elements that could not be read.
  var unreadable: [ValueCodingError] { get }
}

/// A decoder of fields that collects the errors of optional ones.
struct TolerantFields<Key: CodingKey> {
  let container: KeyedDecodingContainer<Key>
  private(set) var unreadable: [ValueCodingError] = []

  init(_ decoder: any Decoder) throws {
    container = try decoder.container(keyedBy: Key.self)
  }

  /// Returns a field's value; nil if it is missing or cannot be read.
  mutating func optional<Value: Decodable>(_ key: Key) throws -> Value? {
    guard let field = try container.decodeIfPresent(Lenient<Value>.self, forKey: key) else {
      return nil
    }
    return value(of: field)
  }

  /// Returns the readable elements of a list.
  ///
  /// Throws if the field is missing or not a list.
  mutating func elements<Value: Decodable>(_ key: Key) throws -> [Value] {
    try container.decode([Lenient<Value>].self, forKey: key).compactMap { value(of: $0) }
  }

  /// Returns the readable elements of a list; none if the field is missing or not a list.
  mutating func optionalElements<Value: Decodable>(_ key: Key) throws -> [Value] {
    let elements: [Lenient<Value>] = try optional(key) ?? []
    return elements.compactMap { value(of: $0) }
  }

  /// Adds an error that the caller found.
  mutating func report(_ error: ValueCodingError?) {
    if let error { unreadable.append(error) }
  }

  private mutating func value<Value>(of field: Lenient<Value>) -> Value? {
    if let error = field.error { unreadable.append(error) }
    return field.value
  }
}

/// A user's id in a document; decoding throws if it is not valid.
struct StoredUID: Decodable {
  var text: String

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    text = try container.decode(String.self)
    guard text.isUserID else {
      throw DecodingError.dataCorruptedError(
        in: container,
        debugDescription: "is not the id of a user"
      )
    }
  }
}
