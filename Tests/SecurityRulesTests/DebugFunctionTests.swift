import DocumentModel
import TestSupport
import Testing

@testable import SecurityRules

@Suite("The function debug")
struct DebugFunctionTests {
  private static func decision(_ condition: String, text: String = "") throws -> (
    decision: Decision, lines: [String]
  ) {
    let rules = SampleRules.get(if: condition)
    let ruleset = try Ruleset(name: "f.rules", content: rules)
    let decision = ruleset.decide(
      RulesRequest(
        method: .get,
        path: ["databases", "(default)", "documents", "t", "x"].map { .known($0) },
        time: RuleTimestamp(Timestamp(microseconds: 0)),
        auth: .null,
        resource: .map(.entries(["data": .map(.fields(["s": .string(text)]))]))
      ),
      documents: NoDocuments(),
      ledger: AccessLedger(isSingle: true)
    )
    return (decision, decision.debugLines(in: ruleset))
  }

  private struct NoDocuments: RulesDocuments {
    func document(_ path: RulePath, after: Bool) throws -> RuleValue? { nil }
  }

  @Test("It returns its argument and logs location and value once, whether or not access is denied")
  func values() throws {
    let allowed = try Self.decision("debug(id) == 'x'")
    let refused = try Self.decision("debug(id) == 'y'")

    #expect(allowed.decision.isAllowed)
    #expect(!refused.decision.isAllowed)
    for lines in [allowed.lines, refused.lines] {
      #expect(lines == ["f.rules:4:35 debug(id) = 'x'"])
    }
  }

  @Test("A skipped call logs nothing, and a failed call logs no value")
  func skipped() throws {
    #expect(try Self.decision("false && debug(id) == 'x'").lines.isEmpty)
    #expect(try Self.decision("debug(resource.data.none)").lines.isEmpty)
  }

  @Test("A line is of bounded length and cannot command a terminal")
  func hostileText() throws {
    let text = "\u{1B}[2J\u{202E}\n" + String(repeating: "x", count: 100_000)
    let line = try #require(
      try Self.decision("debug(resource.data.s) == ''", text: text).lines.first
    )

    #expect(line.utf8.count < 500)
    #expect(!line.unicodeScalars.contains { $0.value < 32 || $0.value == 0x202E })
  }

  @Test("A decision keeps a bounded number of values, the first ones")
  func manyCalls() throws {
    let calls = (0..<50).map { "debug(\($0)) >= 0" }.joined(separator: " && ")
    let lines = try Self.decision(calls).lines

    #expect(lines.count == Decision.debuggedMax)
    #expect(lines.first?.hasSuffix("debug(0) = 0") == true)
  }

  @Test("The explanation of a decision shows the values, too")
  func explanation() throws {
    let rules = try Ruleset(
      name: "f.rules",
      content: SampleRules.get(if: "debug(id) == 'y'")
    )
    let cases = """
      {"documents": {}, "cases": [
        {"name": "a", "expect": "allow", "method": "get", "path": "t/x"}]}
      """
    let result = try #require(try RulesTestFile(json: Array(cases.utf8)).run(rules).first)

    #expect(result.decision.text(for: .get, in: rules).hasSuffix("debug(id) = 'x'"))
  }
}
