/// A vector with an id and metadata about its source.
public struct VectorRecord: Codable, Sendable, Hashable {
  /// The record's id.
  public var id: String
  /// The vector, with as many numbers as the index has dimensions.
  public var values: [Float]
  /// The metadata, by which queries filter and which results contain.
  public var metadata: [String: MetadataValue]

  /// Creates a record, by default without metadata.
  public init(id: String, values: [Float], metadata: [String: MetadataValue] = [:]) {
    self.id = id
    self.values = values
    self.metadata = metadata
  }

  /// Decodes a record; missing metadata is empty.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    id = try container.decode(String.self, forKey: .id)
    values = try container.decodeIfPresent([Float].self, forKey: .values) ?? []
    metadata =
      try container.decodeIfPresent([String: MetadataValue].self, forKey: .metadata) ?? [:]
  }
}

/// A metadata value of a type that a vector index supports.
public enum MetadataValue: Codable, Sendable, Hashable {
  case string(String)
  case number(Double)
  case boolean(Bool)
  case strings([String])

  /// Decodes a value from JSON.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    // Each `try?` only tests for a type. The last attempt throws.
    if let text = try? container.decode(String.self) {
      self = .string(text)
    } else if let flag = try? container.decode(Bool.self) {
      self = .boolean(flag)
    } else if let number = try? container.decode(Double.self) {
      self = .number(number)
    } else {
      self = .strings(try container.decode([String].self))
    }
  }

  /// Encodes the value as JSON.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .string(let text): try container.encode(text)
    case .number(let number): try container.encode(number)
    case .boolean(let flag): try container.encode(flag)
    case .strings(let texts): try container.encode(texts)
    }
  }

  /// The string, if the value is one.
  public var string: String? {
    if case .string(let text) = self { text } else { nil }
  }

  /// The list of strings, if the value is one.
  public var strings: [String]? {
    if case .strings(let texts) = self { texts } else { nil }
  }
}

/// A condition on a record's metadata.
public enum VectorFilter: Encodable, Sendable, Hashable {
  /// The field equals the value or, if it is a list, contains it.
  case equal(String, MetadataValue)
  /// The field equals one of the values or, if it is a list, contains one of them.
  case isIn(String, [MetadataValue])
  /// The field is a number less than the given one.
  case less(String, Double)
  /// All of the conditions are true.
  indirect case and([VectorFilter])
  /// At least one of the conditions is true.
  indirect case or([VectorFilter])

  /// Encodes the filter as JSON.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .equal(let field, let value): try container.encode([field: ["$eq": value]])
    case .isIn(let field, let values): try container.encode([field: ["$in": values]])
    case .less(let field, let number): try container.encode([field: ["$lt": number]])
    case .and(let filters): try container.encode(["$and": filters])
    case .or(let filters): try container.encode(["$or": filters])
    }
  }
}

/// A record that a query found.
public struct VectorMatch: Decodable, Sendable, Hashable {
  /// The record's id.
  public var id: String
  /// The similarity of the record; 1 means the same direction.
  public var score: Double
  /// The record's metadata.
  public var metadata: [String: MetadataValue]?
}
