// `ValueDecoder` and `ValueEncoder` handle these types directly. The conformances below serve other
// coders, such as `JSONEncoder`, so that models with these types work with any coder.

extension Timestamp: Codable {
  /// Reads RFC 3339 text.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let timestamp = Timestamp(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(
        in: container,
        debugDescription: "is not RFC 3339 text"
      )
    }
    self = timestamp
  }

  /// Writes RFC 3339 text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}

extension DocumentName: Codable {
  /// Reads a full resource name.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let name = DocumentName(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(
        in: container,
        debugDescription: "is not the full resource name of a document"
      )
    }
    self = name
  }

  /// Writes the full resource name.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}

extension FirestoreValue: Codable {
  /// Decodes the values that JSON can express: null, booleans, numbers, strings, arrays and maps.
  ///
  /// Throws for values that are nested more than 128 levels deep.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard decoder.codingPath.count <= Self.jsonDepthMax else {
      throw DecodingError.dataCorruptedError(
        in: container,
        debugDescription: "is nested more than \(Self.jsonDepthMax) levels deep"
      )
    }
    if container.decodeNil() {
      self = .null
      return
    }
    // Each `try?` only tests for a type; the last attempt reports the error.
    if let boolean = try? container.decode(Bool.self) {
      self = .boolean(boolean)
    } else if let integer = try? container.decode(Int64.self) {
      self = .integer(integer)
    } else if let double = try? container.decode(Double.self) {
      self = .double(double)
    } else if let string = try? container.decode(String.self) {
      self = .string(string)
    } else if let array = try? container.decode([FirestoreValue].self) {
      self = .array(array)
    } else {
      self = .map(try container.decode(MapValue.self))
    }
  }

  /// The maximum nesting, as in the JSON of callables.
  ///
  /// A test for a type that fails costs `JSONDecoder` the square of the depth.
  private static let jsonDepthMax = 128

  /// Encodes the value as the nearest one that JSON can express.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .boolean(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .double(let value): try container.encode(value)
    case .timestamp(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .bytes(let value): try container.encode(value)
    case .reference(let value): try container.encode(value)
    case .geoPoint(let value): try container.encode(value)
    case .array(let value): try container.encode(value)
    case .vector(let value): try container.encode(value)
    case .map(let value): try container.encode(value)
    }
  }
}
