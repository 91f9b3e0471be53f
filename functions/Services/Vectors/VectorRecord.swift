/// A vector with what is known about the thing it stands for.
public struct VectorRecord: Codable, Sendable, Hashable {
  /// The record's id.
  public var id: String
  /// The vector, with as many numbers as the index has dimensions.
  public var values: [Float]
  /// The metadata by which queries filter and which answers return.
  public var metadata: [String: MetadataValue]

  /// A record.
  public init(id: String, values: [Float], metadata: [String: MetadataValue] = [:]) {
    self.id = id
    self.values = values
    self.metadata = metadata
  }

  /// Reads a record; one without metadata has none.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    id = try container.decode(String.self, forKey: .id)
    values = try container.decodeIfPresent([Float].self, forKey: .values) ?? []
    metadata =
      try container.decodeIfPresent([String: MetadataValue].self, forKey: .metadata) ?? [:]
  }
}

/// The kinds of value that a vector index keeps.
public enum MetadataValue: Codable, Sendable, Hashable {
  case string(String)
  case number(Double)
  case boolean(Bool)
  case strings([String])

  /// Reads JSON.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    // Each `try?` only asks whether the value is of that kind; the last one reports.
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

  /// Writes JSON.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .string(let text): try container.encode(text)
    case .number(let number): try container.encode(number)
    case .boolean(let flag): try container.encode(flag)
    case .strings(let texts): try container.encode(texts)
    }
  }

  /// The text, if the value is one.
  public var string: String? {
    if case .string(let text) = self { text } else { nil }
  }

  /// The list of texts, if the value is one.
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
  /// The field is a number below this one.
  case less(String, Double)
  /// All of the conditions.
  indirect case and([VectorFilter])
  /// One of the conditions or more.
  indirect case or([VectorFilter])

  /// Writes the filter's JSON.
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
  /// How close the record is; 1 is the same direction.
  public var score: Double
  /// The record's metadata.
  public var metadata: [String: MetadataValue]?
}
