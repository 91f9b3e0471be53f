import JSONText

/// A JSON value, with arrays of numbers as a case of their own.
///
/// Most of the transferred data are vectors, so these arrays are not split into single values.
enum JSON: Sendable, Hashable {
  case null
  case boolean(Bool)
  case number(Double)
  case string(String)
  /// A list of numbers; not empty.
  case numbers([Double])
  case array([JSON])
  case object([String: JSON])
  /// A number in a response, with the shortest text of a float.
  case float(Float)
  /// A list of numbers in a response.
  case floats([Float])

  /// A readable name for the kind of value, for error messages.
  var kind: String {
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

  /// The serialized value, with object keys sorted, so that equal values have equal bytes.
  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    write(to: &bytes)
    return bytes
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

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral
{
  init(stringLiteral value: String) { self = .string(value) }
  init(integerLiteral value: Int) { self = .number(Double(value)) }
  init(booleanLiteral value: Bool) { self = .boolean(value) }
  init(arrayLiteral elements: JSON...) { self = .array(elements) }

  /// Creates an object; members whose value is nil are left out.
  init(dictionaryLiteral elements: (String, JSON?)...) {
    var members: [String: JSON] = [:]
    for (name, value) in elements { members[name] = value }
    self = .object(members)
  }

  /// Creates a number from a count.
  init(_ count: Int) { self = .number(Double(count)) }
}
