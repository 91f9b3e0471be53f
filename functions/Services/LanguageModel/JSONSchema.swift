/// The required form of a model's answer, in the strict dialect of structured outputs.
///
/// Every property is required and no other is allowed; the root is an object.
public struct JSONSchema: Sendable, Hashable {
  /// The form's name: at most 64 letters, digits, `_` and `-`.
  public var name: String
  /// The properties of the root.
  public var properties: [String: JSONType]

  /// A form by its name and its properties.
  public init(name: String, _ properties: [String: JSONType]) {
    self.name = name
    self.properties = properties
  }
}

/// The form of one value in an answer.
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

  /// Any text.
  public static let string = JSONType(.plain("string"))
  /// A whole number.
  public static let integer = JSONType(.plain("integer"))
  /// A number.
  public static let number = JSONType(.plain("number"))
  /// True or false.
  public static let boolean = JSONType(.plain("boolean"))

  /// One of some texts.
  public static func string(enum choices: [String]) -> JSONType { JSONType(.choice(choices)) }

  /// Any number of values of one form.
  public static func array(of element: JSONType) -> JSONType { JSONType(.array(element)) }

  /// An object with exactly these properties.
  public static func object(_ properties: [String: JSONType]) -> JSONType {
    JSONType(.object(properties))
  }

  /// The same form, or null.
  public var orNull: JSONType {
    var form = self
    form.mayBeNull = true
    return form
  }

  /// The same form with a description that tells the model what belongs there.
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

  /// Writes the form as JSON Schema.
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
