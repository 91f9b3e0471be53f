import DocumentModel
import JSONText
import SecurityRules

/// Reads the claims of a token into a value of the rules.
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

  /// The claims of a token's payload, which whoever accepted the token has read before.
  static func value(_ json: String) -> RuleValue {
    var parser = JSONParser(Builder(), loneSurrogates: .replaced)
    // A payload that is no JSON has no claims.
    return (try? parser.parse(Array(json.utf8))) ?? .map(.entries([:]))
  }
}
