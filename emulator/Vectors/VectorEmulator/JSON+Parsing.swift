import JSONText

extension JSON {
  /// Parses a text as one value.
  ///
  /// A number beyond the range of a double is infinite in a list of numbers, and an error
  /// elsewhere.
  static func parse(_ text: some Sequence<UInt8>) throws(JSONSyntaxError) -> JSON {
    var parser = JSONParser(Builder())
    return try parser.parse(text)
  }

  private struct Builder: JSONBuilder {
    static var keepsNumberLists: Bool { true }

    func null() -> JSON { .null }
    func boolean(_ flag: Bool) -> JSON { .boolean(flag) }
    func number(_ number: JSONNumber) -> JSON? {
      number.double.isFinite ? .number(number.double) : nil
    }
    func string(_ text: String) -> JSON { .string(text) }
    func array(_ elements: [JSON]) -> JSON { .array(elements) }
    func numbers(_ numbers: [Double]) -> JSON { .numbers(numbers) }
    func object(_ members: [(String, JSON)]) -> JSON {
      .object(Dictionary(members) { _, last in last })
    }
  }
}
