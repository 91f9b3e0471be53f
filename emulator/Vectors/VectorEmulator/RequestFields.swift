import JSONText
import VectorIndex

/// The members of a JSON object in a request, read by type.
///
/// A null member counts as absent. Reading a member of another type throws `MalformedRequestError`.
struct RequestFields {
  let members: [String: JSONValue]
  /// The object's path, used in error messages; empty at the top level.
  private let path: String

  /// Reads the members of an object; throws `MalformedRequestError` for other values.
  init(_ json: JSONValue, _ path: String = "") throws {
    guard case .object(let members) = json else {
      throw MalformedRequestError(message: "\(path.isEmpty ? "the body" : path) is not an object")
    }
    self.members = members
    self.path = path
  }

  /// Indicates whether a member is present and not null.
  func has(_ name: String) -> Bool { self[name] != nil }

  /// Returns a member of any type; nil if it is absent or null.
  subscript(name: String) -> JSONValue? {
    if case .null? = members[name] { return nil }
    return members[name]
  }

  /// Returns the first of the names whose member is present.
  func first(of names: [String]) -> String? { names.first(where: has) }

  func string(_ name: String) throws -> String? {
    try read(name, "a string") { if case .string(let text) = $0 { text } else { nil } }
  }

  func boolean(_ name: String) throws -> Bool? {
    try read(name, "a boolean") { if case .boolean(let flag) = $0 { flag } else { nil } }
  }

  func integer(_ name: String) throws -> Int? {
    try read(name, "an integer") {
      if case .number(let number) = $0 { Int(exactly: number) } else { nil }
    }
  }

  /// Reads a list of numbers; a number too large for a float becomes infinite.
  func floats(_ name: String) throws -> [Float]? {
    try read(name, "a list of numbers", \.floats)
  }

  func strings(_ name: String) throws -> [String]? {
    try read(name, "a list of strings", \.strings)
  }

  func object(_ name: String) throws -> RequestFields? {
    try self[name].map { try RequestFields($0, qualified(name)) }
  }

  func objects(_ name: String) throws -> [RequestFields]? {
    guard let json = self[name] else { return nil }
    guard case .array(let elements) = json else { throw mismatch(name, json, "a list of objects") }
    return try elements.enumerated().map { index, element in
      try RequestFields(element, "\(qualified(name))[\(index)]")
    }
  }

  /// Reads an object whose values are all strings.
  func texts(_ name: String) throws -> [String: String]? {
    guard let fields = try object(name) else { return nil }
    var texts: [String: String] = [:]
    for key in fields.members.keys { texts[key] = try fields.string(key) }
    return texts
  }

  /// Reads an object of metadata values.
  func metadata(_ name: String) throws -> [String: MetadataValue]? {
    try object(name)?.members.mapValues { json in
      guard let value = MetadataValue(json) else {
        throw MalformedRequestError(
          message: "Metadata value must be a string, number, boolean or list of strings, got "
            + "\(json.kind)"
        )
      }
      return value
    }
  }

  /// Returns a value; throws `MalformedRequestError` if it is nil.
  func required<Value>(_ name: String, _ value: Value?) throws -> Value {
    guard let value else { throw MalformedRequestError.missing(qualified(name)) }
    return value
  }

  private func qualified(_ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

  private func read<Value>(
    _ name: String,
    _ expected: String,
    _ convert: (JSONValue) -> Value?
  ) throws -> Value? {
    guard let json = self[name] else { return nil }
    guard let value = convert(json) else { throw mismatch(name, json, expected) }
    return value
  }

  private func mismatch(_ name: String, _ json: JSONValue, _ expected: String)
    -> MalformedRequestError
  {
    MalformedRequestError(
      message: "\(qualified(name)): invalid type: \(json.kind), expected \(expected)"
    )
  }
}

extension [String: MetadataValue] {
  /// The metadata as JSON for a response.
  var json: JSONValue { .object(mapValues(\.json)) }
}
