import JSONText

/// A JSON value that preserves everything the parser reports to a builder.
indirect enum PlainJSON: Equatable {
  case null
  case boolean(Bool)
  case number(JSONNumber)
  case string(String)
  case array([PlainJSON])
  case numbers([Double])
  case object([String: PlainJSON])

  /// Parses a text, with each number as a separate value.
  static func read(
    _ text: some Sequence<UInt8>,
    loneSurrogates: LoneSurrogates = .refused,
    valuesMax: Int = .max
  ) throws(JSONSyntaxError) -> PlainJSON {
    var parser = JSONParser(
      EachValue(),
      loneSurrogates: loneSurrogates,
      valuesMax: valuesMax
    )
    return try parser.parse(text)
  }

  /// Parses a text, with a list of numbers as a single value.
  static func readKeepingLists(
    _ text: some Sequence<UInt8>
  ) throws(JSONSyntaxError) -> PlainJSON {
    var parser = JSONParser(KeptLists())
    return try parser.parse(text)
  }

  private struct EachValue: JSONBuilder {
    func null() -> PlainJSON { .null }
    func boolean(_ flag: Bool) -> PlainJSON { .boolean(flag) }
    func number(_ number: JSONNumber) -> PlainJSON? {
      number.double.isFinite ? .number(number) : nil
    }
    func string(_ text: String) -> PlainJSON { .string(text) }
    func array(_ elements: [PlainJSON]) -> PlainJSON { .array(elements) }
    func object(_ members: [(String, PlainJSON)]) -> PlainJSON {
      .object(Dictionary(members) { _, last in last })
    }
  }

  private struct KeptLists: JSONBuilder {
    static var keepsNumberLists: Bool { true }

    func null() -> PlainJSON { .null }
    func boolean(_ flag: Bool) -> PlainJSON { .boolean(flag) }
    func number(_ number: JSONNumber) -> PlainJSON? { .number(number) }
    func string(_ text: String) -> PlainJSON { .string(text) }
    func array(_ elements: [PlainJSON]) -> PlainJSON { .array(elements) }
    func numbers(_ numbers: [Double]) -> PlainJSON { .numbers(numbers) }
    func object(_ members: [(String, PlainJSON)]) -> PlainJSON {
      .object(Dictionary(members) { _, last in last })
    }
  }
}
