/// A JSON object that is written member by member, in order.
///
/// For objects that contain JSON of others, such as claims, which must stay as it was written.
package struct JSONObjectText: Sendable, Hashable {
  // By the bytes of their names, because different bytes can be equal texts.
  private var names: [[UInt8]] = []
  private var values: [[UInt8]: [UInt8]] = [:]

  package init() {}

  /// Creates an object from the members of a JSON text; nil if the text is not an object.
  package init?(parsing text: String) { self.init(parsing: Array(text.utf8)) }

  /// Creates an object from the members of a JSON text; nil if the text is not an object.
  package init?(parsing text: [UInt8]) {
    guard let members = try? jsonMembersInOrder(of: text) else { return nil }
    for (name, value) in members { set(name, json: value) }
  }

  package var isEmpty: Bool { names.isEmpty }

  /// The names of the members, in order.
  package var memberNames: [String] { names.map { String(decoding: $0, as: UTF8.self) } }

  /// Returns the JSON text of a member; nil if there is none.
  package subscript(name: String) -> [UInt8]? { values[Array(name.utf8)] }

  /// Returns a member that is a string; nil for any other.
  package func text(_ name: String) -> String? {
    self[name].flatMap { try? String(decodingJSON: $0) }
  }

  /// Returns a member that is a number, rounded toward zero; nil for any other.
  package func number(_ name: String) -> Int64? {
    self[name].flatMap { try? Double(decodingJSON: $0) }
      .flatMap { Int64(exactly: $0.rounded(.towardZero)) }
  }

  /// Returns a member that is a flag; nil for any other.
  package func flag(_ name: String) -> Bool? {
    self[name].flatMap { try? Bool(decodingJSON: $0) }
  }

  /// Returns a member that is an object; nil for any other.
  package func object(_ name: String) -> JSONObjectText? {
    self[name].flatMap { JSONObjectText(parsing: $0) }
  }

  /// Sets a member to JSON text that the caller knows to be valid; nil leaves the object unchanged.
  package mutating func set(_ name: String, json: [UInt8]?) {
    guard let json else { return }
    set(Array(name.utf8), json)
  }

  private mutating func set(_ name: [UInt8], _ json: [UInt8]) {
    if values.updateValue(json, forKey: name) == nil { names.append(name) }
  }

  /// Sets a member to a string; nil leaves the object unchanged.
  package mutating func set(_ name: String, _ text: String?) {
    set(name, json: text.map { Array(jsonQuoted($0).utf8) })
  }

  /// Sets a member to a number; nil leaves the object unchanged.
  package mutating func set(_ name: String, _ number: Int64?) {
    set(name, json: number.map { Array("\($0)".utf8) })
  }

  /// Sets a member to a flag; nil leaves the object unchanged.
  package mutating func set(_ name: String, _ flag: Bool?) {
    set(name, json: flag.map { Array("\($0)".utf8) })
  }

  /// Sets a member to an object; nil leaves the object unchanged.
  package mutating func set(_ name: String, _ object: JSONObjectText?) {
    set(name, json: object?.bytes)
  }

  /// Sets the members of another object, which replace members of the same name.
  package mutating func merge(_ other: JSONObjectText) {
    for name in other.names { set(name, other.values[name] ?? []) }
  }

  /// The object as JSON text.
  package var bytes: [UInt8] {
    var text: [UInt8] = [UInt8(ascii: "{")]
    for name in names {
      if text.count > 1 { text.append(UInt8(ascii: ",")) }
      text.appendJSONQuoted(String(decoding: name, as: UTF8.self))
      text.append(UInt8(ascii: ":"))
      text += values[name] ?? []
    }
    text.append(UInt8(ascii: "}"))
    return text
  }

  /// Returns a JSON array of texts.
  package static func array(_ elements: some Sequence<[UInt8]>) -> [UInt8] {
    Array("[".utf8) + elements.joined(separator: ",".utf8) + "]".utf8
  }
}
