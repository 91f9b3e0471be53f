import DatabaseModel
import JSONText
import Testing

@testable import DatabaseRules

@Suite("Explanations of the Realtime Database's rules")
struct ExplanationTests {
  private static let rules = #"""
    {
      "rules": {
        ".read": false,
        "chats": {
          "$id": {
            ".read": "data.child('members').hasChild(auth.uid) && auth.token.level > 3",
            ".write": "auth != null && (root.child('open').val() == true
              || !data.exists())",
            "text": { ".validate": "newData.val().length < 5" }
          }
        }
      }
    }
    """#

  private static let data = #"{"chats":{"1":{"members":{"alice":true},"text":"x"}}}"#

  private func decision(
    _ auth: JSONValue,
    _ text: String,
    writing value: String? = nil,
    coverage: DatabaseCoverage? = nil
  ) throws -> DatabaseDecision {
    let rules = try DatabaseRuleset(parsing: Self.rules)
    let before = try tree(Self.data)
    var after = before
    if let value { after.set(try tree(value), at: try path(text)) }
    let request = DatabaseRulesRequest(
      auth: auth,
      nowMilliseconds: 0,
      data: before,
      newData: value == nil ? nil : after
    )
    return value == nil
      ? rules.read(try path(text), query: nil, request, coverage: coverage)
      : rules.write([try path(text)], request, coverage: coverage)
  }

  @Test("A refusal shows each rule, its deciding part and the values")
  func refusal() throws {
    let refused = try decision(["uid": "bob"], "/chats/1/text")
    #expect(
      refused.text(file: "database.rules.json") == """
        database.rules.json:3:14 .read of / at /: false
          false
        database.rules.json:6:19 .read of /chats/$id at /chats/1: false
          data.child('members').hasChild(auth.uid)
            data.child('members') = snapshot of /chats/1/members
            auth.uid = 'bob'
        """
    )
    #expect(
      refused.summary(file: "r.json")
        == "r.json:3:14 .read of / `false` decides | r.json:6:19 .read of /chats/$id "
        + "`data.child('members').hasChild(auth.uid)` decides (data.child('members') = "
        + "snapshot of /chats/1/members, auth.uid = 'bob')"
    )
    #expect(refused.answers.map(\.kind) == [.read, .read])
    #expect(refused.answers.map(\.path) == [.root, try path("/chats/1")])
  }

  @Test("An error shows the values that had the wrong type")
  func failure() throws {
    let refused = try decision(["uid": "alice"], "/chats/1")
    #expect(
      refused.text(file: "r.json").hasSuffix(
        """
        r.json:6:19 .read of /chats/$id at /chats/1: error
          auth.token.level > 3
            error: Expected two numbers or two strings for >, found null and a number.
            auth.token.level = null
        """
      )
    )
  }

  @Test("All alternatives of a rule are shown")
  func alternatives() throws {
    let refused = try decision(["uid": "alice"], "/chats/1/text", writing: "1")
    #expect(
      refused.text(file: "r.json") == """
        r.json:7:20 .write of /chats/$id at /chats/1: false
          root.child('open').val() == true
            root.child('open').val() = null
          data.exists()
            data = snapshot of /chats/1
        """
    )
  }

  @Test("A refused value shows the rule that granted the write and the one that refuses it")
  func validation() throws {
    let refused = try decision(["uid": "alice"], "/chats/2", writing: #"{"text":"too long"}"#)
    #expect(
      refused.text(file: "r.json") == """
        r.json:7:20 .write of /chats/$id at /chats/2: true
        r.json:9:33 .validate of /chats/$id/text at /chats/2/text: false
          newData.val().length < 5
            newData.val().length = 8
        """
    )
  }

  @Test("An allowed request shows the rule that granted it, without reasons")
  func allowed() throws {
    let allowed = try decision(["uid": "alice"], "/chats/2", writing: #"{"text":"x"}"#)
    #expect(
      allowed.text(file: "r.json") == "r.json:7:20 .write of /chats/$id at /chats/2: true"
    )
  }

  @Test("A path without rules says so")
  func nothing() throws {
    let refused = try decision(.null, "/other", writing: "1")
    #expect(refused.text(file: "r.json") == "r.json: no rule grants access to this path")
    #expect(refused.summary(file: "r.json") == "no rule in r.json grants access to this path")
  }

  @Test("A text of a user cannot control the terminal")
  func controls() throws {
    let refused = try decision(["uid": "b\u{1B}[2J'\\\u{202E}"], "/chats/1")
    #expect(
      refused.text(file: "r.json").hasSuffix(#"auth.uid = 'b\u{1B}[2J\'\\\u{202E}'"#)
    )
    let long = try decision(["uid": .string(String(repeating: "x", count: 1000))], "/chats/1")
    #expect(long.text(file: "r.json").utf8.count < 600)
  }

  @Test("Coverage counts the results of each rule and names what was never evaluated")
  func coverage() throws {
    let coverage = DatabaseCoverage()
    _ = try decision(["uid": "bob"], "/chats/1", coverage: coverage)
    _ = try decision(["uid": "bob"], "/chats/1", coverage: coverage)
    _ = try decision(["uid": "alice"], "/chats/2/text", writing: #""long""#, coverage: coverage)
    let rules = try DatabaseRuleset(parsing: Self.rules).rules(in: coverage)
    #expect(rules.map(\.line) == [3, 6, 7, 9])
    #expect(rules.map(\.isTrue) == [nil, 0, 1, 1])
    #expect(rules.map(\.isFalse) == [nil, 2, 0, 0])
    #expect(rules.map(\.failed) == [nil, 0, 0, 0])
    #expect(rules.map(\.skipped) == [[], ["auth.token.level > 3"], [], []])
    #expect(rules[1].path == "/chats/$id")
    #expect(rules[2].condition.hasPrefix("auth != null && (root.child('open').val() == true ||"))
    _ = try decision(["uid": "alice"], "/chats/1", coverage: coverage)
    #expect(try DatabaseRuleset(parsing: Self.rules).rules(in: coverage)[1].failed == 1)
  }

  @Test("The number of results that a decision keeps is bounded")
  func bounds() throws {
    var text = #"{".read":"auth != null"}"#
    var place = DatabasePath.root
    for index in 0..<30 {
      text = #"{".read":"auth != null","k\#(29 - index)":\#(text)}"#
      place = place.child("k\(index)")
    }
    let rules = try DatabaseRuleset(parsing: #"{"rules":\#(text)}"#)
    let request = DatabaseRulesRequest(auth: .null, nowMilliseconds: 0, data: DatabaseNode.empty)
    #expect(rules.read(place, query: nil, request).answers.count == 20)
  }
}
