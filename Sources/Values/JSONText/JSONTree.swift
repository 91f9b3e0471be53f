/// A JSON value with its numbers as written and its members in order.
package indirect enum JSONTree: Sendable {
  case null
  case boolean(Bool)
  case number(JSONNumber)
  case string(String)
  case array([JSONTree])
  /// The members in their original order; a name may occur more than once.
  case object([(String, JSONTree)])

  /// Parses a text as one value.
  ///
  /// Numbers beyond the range of a double are errors.
  package static func parse(_ text: [UInt8]) throws(JSONSyntaxError) -> JSONTree {
    var parser = JSONParser(Builder())
    return try parser.parse(text)
  }

  /// The kind of the value for the end of a sentence, such as "a number".
  package var kind: String {
    switch self {
    case .null: "null"
    case .boolean(let flag): String(flag)
    case .number: "a number"
    case .string: "a text"
    case .array: "a list"
    case .object: "an object"
    }
  }

  private struct Builder: JSONBuilder {
    func null() -> JSONTree { .null }
    func boolean(_ flag: Bool) -> JSONTree { .boolean(flag) }
    func number(_ number: JSONNumber) -> JSONTree? {
      number.double.isFinite ? .number(number) : nil
    }
    func string(_ text: String) -> JSONTree { .string(text) }
    func array(_ elements: [JSONTree]) -> JSONTree { .array(elements) }
    func object(_ members: [(String, JSONTree)]) -> JSONTree { .object(members) }
  }
}
