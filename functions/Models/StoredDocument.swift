public import FirestoreClient

/// A document that apps write, and in which anything may therefore stand.
///
/// Decoding throws only where a field is at fault that the document means nothing without. Any
/// other field at fault counts as missing and is named in `unreadable`.
public protocol StoredDocument: Codable, Sendable {
  /// The fields and elements that could not be read, and why.
  var unreadable: [ValueCodingError] { get }
}

/// The fields of a document while it is decoded, with what is wrong with those it can do without.
struct TolerantFields<Key: CodingKey> {
  let container: KeyedDecodingContainer<Key>
  private(set) var unreadable: [ValueCodingError] = []

  init(_ decoder: any Decoder) throws {
    container = try decoder.container(keyedBy: Key.self)
  }

  /// A field's value; nil when it is missing or cannot be read.
  mutating func optional<Value: Decodable>(_ key: Key) throws -> Value? {
    guard let field = try container.decodeIfPresent(Lenient<Value>.self, forKey: key) else {
      return nil
    }
    return value(of: field)
  }

  /// The elements of a list that can be read; throws when the field is missing or is no list.
  mutating func elements<Value: Decodable>(_ key: Key) throws -> [Value] {
    try container.decode([Lenient<Value>].self, forKey: key).compactMap { value(of: $0) }
  }

  /// The elements of a list that can be read; none when the field is missing or is no list.
  mutating func optionalElements<Value: Decodable>(_ key: Key) throws -> [Value] {
    let elements: [Lenient<Value>] = try optional(key) ?? []
    return elements.compactMap { value(of: $0) }
  }

  /// Counts what the caller itself found at fault.
  mutating func report(_ error: ValueCodingError?) {
    if let error { unreadable.append(error) }
  }

  private mutating func value<Value>(of field: Lenient<Value>) -> Value? {
    if let error = field.error { unreadable.append(error) }
    return field.value
  }
}

/// A user's id as documents hold it: text that can be the id of a user.
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
