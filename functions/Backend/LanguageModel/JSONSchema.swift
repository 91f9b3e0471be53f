/// The required form of a model's answer, in the strict dialect of structured outputs.
///
/// Every property is required and no other is allowed; the root is an object.
public struct JSONSchema: Sendable, Hashable {
  /// The schema's name: at most 64 letters, digits, `_` and `-`.
  public var name: String
  /// The properties of the root.
  public var properties: [String: JSONType]

  /// Creates a schema with a name and the properties of its root.
  public init(name: String, _ properties: [String: JSONType]) {
    self.name = name
    self.properties = properties
  }
}

/// The type of one value in an answer.
public struct JSONType: Sendable, Hashable {
  private indirect enum Shape: Hashable {
    case plain(String)
    case choice([String])
    case array(JSONType)
    case object([String: JSONType])

    var type: String {
      switch self {
      case .plain(let type): type
      case .choice: "string"
      case .array: "array"
      case .object: "object"
      }
    }
  }

  private let shape: Shape
  private var text: String?
  private var mayBeNull = false

  private init(_ shape: Shape) {
    self.shape = shape
  }

  /// The type of a string.
  public static let string = JSONType(.plain("string"))
  /// The type of an integer.
  public static let integer = JSONType(.plain("integer"))
  /// The type of a number, with or without a fraction.
  public static let number = JSONType(.plain("number"))
  /// The type of a Boolean.
  public static let boolean = JSONType(.plain("boolean"))

  /// Returns the type of a string that is one of the given choices.
  public static func string(enum choices: [String]) -> JSONType { JSONType(.choice(choices)) }

  /// Returns the type of an array with elements of one type.
  public static func array(of element: JSONType) -> JSONType { JSONType(.array(element)) }

  /// Returns the type of an object with exactly the given properties.
  public static func object(_ properties: [String: JSONType]) -> JSONType {
    JSONType(.object(properties))
  }

  /// The type extended by null.
  public var orNull: JSONType {
    var form = self
    form.mayBeNull = true
    return form
  }

  /// Returns the type with a description for the model.
  public func described(_ text: String) -> JSONType {
    var described = self
    described.text = text
    return described
  }
}

extension JSONType: Encodable {
  private enum CodingKeys: String, CodingKey {
    case type, description, `enum`, items, properties, required, additionalProperties
  }

  /// Encodes the type as JSON Schema.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(text, forKey: .description)
    if mayBeNull {
      try container.encode([shape.type, "null"], forKey: .type)
    } else {
      try container.encode(shape.type, forKey: .type)
    }
    switch shape {
    case .plain: break
    case .choice(let choices):
      try container.encode(choices.map(Optional.some) + (mayBeNull ? [nil] : []), forKey: .enum)
    case .array(let element):
      try container.encode(element, forKey: .items)
    case .object(let properties):
      try container.encode(properties, forKey: .properties)
      try container.encode(properties.keys.sorted(), forKey: .required)
      try container.encode(false, forKey: .additionalProperties)
    }
  }
}
