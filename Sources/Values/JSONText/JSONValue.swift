/// A JSON value of a request or a response, with doubles as its numbers.
///
/// An array of numbers is a case of its own, because one of a vector has hundreds.
@usableFromInline
package enum JSONValue: Sendable, Hashable {
  case null
  case boolean(Bool)
  case number(Double)
  case string(String)
  /// A list of numbers; not empty.
  case numbers([Double])
  case array([JSONValue])
  case object([String: JSONValue])
  /// A number in a response, with the shortest text of a float.
  case float(Float)
  /// A list of numbers in a response.
  case floats([Float])

  /// A readable name for the kind of value, for error messages.
  package var kind: String {
    switch self {
    case .null: "null"
    case .boolean: "a boolean"
    case .number, .float: "a number"
    case .string: "a string"
    case .numbers, .floats: "a list of numbers"
    case .array: "a list"
    case .object: "an object"
    }
  }

  /// The elements of a list of strings, which may be empty; nil for any other value.
  package var strings: [String]? {
    guard case .array(let elements) = self else { return nil }
    var texts: [String] = []
    for element in elements {
      guard case .string(let text) = element else { return nil }
      texts.append(text)
    }
    return texts
  }

  /// The elements of a list of numbers, which may be empty; nil for any other value.
  ///
  /// A number too large for a float is infinite.
  package var floats: [Float]? {
    switch self {
    case .numbers(let numbers): numbers.map { Float($0) }
    case .array(let elements) where elements.isEmpty: []
    default: nil
    }
  }

  /// The serialized value, with object keys sorted, so that equal values have equal bytes.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    write(to: &bytes)
    return bytes
  }

  /// Parses a text as one value; throws if it consists of more than `valuesMax` values.
  ///
  /// A number beyond the range of a double is infinite in a list of numbers, and an error
  /// elsewhere.
  @inlinable
  package static func parse(
    _ text: some Sequence<UInt8>,
    valuesMax: Int = .max
  ) throws(JSONSyntaxError) -> JSONValue {
    var parser = JSONParser(Builder(), valuesMax: valuesMax)
    return try parser.parse(text)
  }

  @usableFromInline
  struct Builder: JSONBuilder {
    @inlinable static var keepsNumberLists: Bool { true }

    @inlinable init() {}
    @inlinable func null() -> JSONValue { .null }
    @inlinable func boolean(_ flag: Bool) -> JSONValue { .boolean(flag) }
    @inlinable func number(_ number: JSONNumber) -> JSONValue? {
      number.double.isFinite ? .number(number.double) : nil
    }
    @inlinable func string(_ text: String) -> JSONValue { .string(text) }
    @inlinable func array(_ elements: [JSONValue]) -> JSONValue { .array(elements) }
    @inlinable func numbers(_ numbers: [Double]) -> JSONValue { .numbers(numbers) }
    @inlinable func object(_ members: [(String, JSONValue)]) -> JSONValue {
      .object(Dictionary(members) { _, last in last })
    }
  }

  private func write(to bytes: inout [UInt8]) {
    switch self {
    case .null: bytes += "null".utf8
    case .boolean(let flag): bytes += (flag ? "true" : "false").utf8
    case .number(let number): Self.write(number, to: &bytes)
    case .float(let number): Self.write(number, to: &bytes)
    case .string(let text): bytes.appendJSONQuoted(text)
    case .numbers(let numbers): Self.write(numbers, to: &bytes) { Self.write($0, to: &$1) }
    case .floats(let numbers): Self.write(numbers, to: &bytes) { Self.write($0, to: &$1) }
    case .array(let elements): Self.write(elements, to: &bytes) { $0.write(to: &$1) }
    case .object(let members):
      bytes.append(UInt8(ascii: "{"))
      for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        bytes.appendJSONQuoted(member.key)
        bytes.append(UInt8(ascii: ":"))
        member.value.write(to: &bytes)
      }
      bytes.append(UInt8(ascii: "}"))
    }
  }

  private static func write<Element>(
    _ elements: [Element],
    to bytes: inout [UInt8],
    _ write: (Element, inout [UInt8]) -> Void
  ) {
    bytes.append(UInt8(ascii: "["))
    for (index, element) in elements.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      write(element, &bytes)
    }
    bytes.append(UInt8(ascii: "]"))
  }

  /// Writes the shortest text that reads back as the same number; null if it is not finite.
  private static func write(
    _ number: some BinaryFloatingPoint & LosslessStringConvertible,
    to bytes: inout [UInt8]
  ) {
    if !number.isFinite {
      bytes += "null".utf8
    } else if number == number.rounded(), abs(number) < 1e15,
      !(number == 0 && number.sign == .minus)
    {
      bytes += String(Int64(number)).utf8
    } else {
      bytes += String(number).utf8
    }
  }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral
{
  @usableFromInline package init(stringLiteral value: String) { self = .string(value) }
  @usableFromInline package init(integerLiteral value: Int) { self = .number(Double(value)) }
  @usableFromInline package init(booleanLiteral value: Bool) { self = .boolean(value) }
  @usableFromInline package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }

  /// Creates an object; members whose value is nil are left out.
  @usableFromInline package init(dictionaryLiteral elements: (String, JSONValue?)...) {
    var members: [String: JSONValue] = [:]
    for (name, value) in elements { members[name] = value }
    self = .object(members)
  }

  /// Creates a number from a count.
  package init(_ count: Int) { self = .number(Double(count)) }
}
