import DatabaseModel
import JSONText
import Testing

@testable import DatabaseRules

@Suite("Files of the Realtime Database's rules")
struct RulesFileTests {
  private static let commented = """
    /* All rules. */
    {
      "rules": { // The root.
        ".read": "auth != null &&
          // not a comment: it is in a string
          true" /* inner /* */,
        "a//b/*c": {}, "url": { ".write": "'http://x' == '/*'" }
      }
    }
    """

  @Test("Comments stand everywhere outside of strings, and strings can have several lines")
  func comments() throws {
    let text = Self.commented.replacing("// not a comment: it is in a string", with: "")
      .replacing("\"a//b/*c\": {}, ", with: "")
    let rules = try DatabaseRuleset(parsing: text)
    #expect(rules.source == text)
    let strict = try DatabaseRuleset(parsing: rules.strictJSON)
    #expect(strict.strictJSON == rules.strictJSON)
    #expect(!rules.strictJSON.contains("\n"))
    #expect(rules.strictJSON.hasPrefix(#"{"rules":{".read":"auth != null &&"#))
    #expect(rules.strictJSON.hasSuffix(#""url":{".write":"'http://x' == '/*'"}}}"#))
  }

  @Test("Slashes in a string are no comment")
  func slashes() {
    #expect(throws: DatabaseRulesError.self) { try DatabaseRuleset(parsing: Self.commented) }
  }

  @Test("Every rule can be a boolean")
  func booleans() throws {
    let rules = try DatabaseRuleset(
      parsing: #"{"rules":{".read":true,".write":true,".validate":false}}"#
    )
    let request = DatabaseRulesRequest(
      auth: .null,
      nowMilliseconds: 0,
      data: DatabaseNode.empty,
      newData: try tree("1")
    )
    #expect(rules.read(.root, query: nil, request).isAllowed)
    #expect(!rules.write([.root], request).isAllowed)
  }
}
