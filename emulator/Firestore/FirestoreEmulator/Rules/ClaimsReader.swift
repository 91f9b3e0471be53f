import DocumentModel
import JSONText
import SecurityRules

/// A reader that converts a token's claims into a value for security rules.
enum ClaimsReader {
  private struct Builder: JSONBuilder {
    mutating func null() -> RuleValue { .null }
    mutating func boolean(_ flag: Bool) -> RuleValue { .bool(flag) }
    mutating func string(_ text: String) -> RuleValue { .string(text) }
    mutating func array(_ elements: [RuleValue]) -> RuleValue { .list(elements) }

    mutating func number(_ number: JSONNumber) -> RuleValue? {
      switch number {
      case .integer(let value): .int(value)
      case .unsigned, .double: .float(number.double)
      }
    }

    mutating func object(_ members: [(String, RuleValue)]) -> RuleValue {
      .map(RuleMap(members))
    }
  }

  /// Returns the claims of a token's payload.
  ///
  /// The token was validated before, so its payload has been parsed already.
  static func value(_ json: String) -> RuleValue {
    var parser = JSONParser(Builder(), loneSurrogates: .replaced)
    // A payload that is not JSON has no claims.
    return (try? parser.parse(Array(json.utf8))) ?? .map(.entries([:]))
  }
}
