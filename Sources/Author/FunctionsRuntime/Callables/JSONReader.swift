import DocumentModel
import JSONText

/// A reader that turns JSON into values: null, booleans, numbers, strings, arrays and maps.
///
/// Integers stay exact. Integers within the range of `Int64` become integer values, and larger ones
/// become the map of a wrapped `UInt64`. A lone surrogate, which JavaScript can send, becomes
/// U+FFFD.
enum JSONReader {
  /// Reads one value that fills the whole text.
  ///
  /// Wrapped integers are unwrapped unless `unwrapsIntegers` is false. Pass false where `@type` has
  /// other meanings, as in audit log events. Throws `JSONSyntaxError`, or `ValueCodingError` for an
  /// unknown `@type`.
  static func read(
    _ text: some Sequence<UInt8>,
    unwrapsIntegers: Bool = true
  ) throws -> FirestoreValue {
    var parser = JSONParser(Builder(), loneSurrogates: .replaced)
    let value = try parser.parse(text)
    guard unwrapsIntegers, parser.builder.sawWrapper else { return value }
    return try value.unwrappingIntegers(at: "")
  }

  private struct Builder: JSONBuilder {
    /// True if any map has an `@type` member and so may be a wrapped integer.
    private(set) var sawWrapper = false

    func null() -> FirestoreValue { .null }
    func boolean(_ flag: Bool) -> FirestoreValue { .boolean(flag) }
    func string(_ text: String) -> FirestoreValue { .string(text) }
    func array(_ elements: [FirestoreValue]) -> FirestoreValue { .array(elements) }

    func number(_ number: JSONNumber) -> FirestoreValue? {
      switch number {
      case .integer(let integer): .integer(integer)
      case .unsigned(let integer): WrappedInteger.map(WrappedInteger.unsigned, String(integer))
      case .double(let double): double.isFinite ? .double(double) : nil
      }
    }

    mutating func object(_ fields: [(String, FirestoreValue)]) -> FirestoreValue {
      let members = MapValue(fields)
      if members["@type"] != nil { sawWrapper = true }
      return .map(members)
    }
  }
}

extension FirestoreValue {
  /// Returns the value with each wrapped integer, at any depth, replaced by the integer.
  fileprivate func unwrappingIntegers(at path: String) throws(ValueCodingError) -> FirestoreValue {
    switch self {
    case .array(let elements):
      var result: [FirestoreValue] = []
      for (index, element) in elements.enumerated() {
        result.append(try element.unwrappingIntegers(at: "\(path)[\(index)]"))
      }
      return .array(result)
    case .map(let fields):
      if let type = fields["@type"] { return try Self.unwrapped(type, fields["value"], at: path) }
      var result = fields
      for (key, field) in fields {
        result[key] = try field.unwrappingIntegers(at: path.isEmpty ? key : "\(path).\(key)")
      }
      return .map(result)
    default:
      return self
    }
  }

  private static func unwrapped(
    _ type: FirestoreValue,
    _ value: FirestoreValue?,
    at path: String
  ) throws(ValueCodingError) -> FirestoreValue {
    let known = [WrappedInteger.signed, WrappedInteger.unsigned].map(FirestoreValue.string)
    guard known.contains(type) else {
      throw ValueCodingError(
        path: path,
        reason: "has an unknown '@type'; only wrapped Int64Value and UInt64Value are understood"
      )
    }
    // Google's JSON has the integer as text. A plain number is accepted too.
    let text: String? =
      switch value {
      case .string(let digits): digits
      case .integer(let integer): String(integer)
      default: nil
      }
    if let digits = text {
      if type == known[0], let integer = Int64(digits) { return .integer(integer) }
      if type == known[1], let integer = UInt64(digits) {
        return Int64(exactly: integer).map(FirestoreValue.integer)
          ?? WrappedInteger.map(WrappedInteger.unsigned, String(integer))
      }
    }
    throw ValueCodingError(path: path, reason: "wraps an integer whose 'value' is not its digits")
  }
}
