import DocumentModel
import TestSupport
import Testing

@testable import SecurityRules

/// The cost of a refusal and its reasons, in the units of `AccessLedger.work`.
@Suite("The cost of decisions and of their reasons")
struct ReasonCostTests {
  private static let workMax = 1_000_000_000

  /// Returns the cost of a rule's decision, the cost of its reasons, and the reasons.
  private static func costs(_ condition: String, _ text: String) throws -> (
    decision: Int, reasons: Int, reported: [Decision.Reason]
  ) {
    let ruleset = try Ruleset(
      name: "f.rules",
      content: SampleRules.documents(
        """
        function isName(s) { return s.size() <= 100 && s.matches('.*x'); }
        match /t/{id} { allow get: if \(condition); }
        """
      )
    )
    let request = RulesRequest(
      method: .get,
      path: ["databases", "(default)", "documents", "t", "x"].map { .known($0) },
      time: RuleTimestamp(Timestamp(microseconds: 0)),
      auth: .null,
      resource: .map(
        .entries([
          "data": .map(
            .fields([
              "s": .string(text), "l": .array(Array(repeating: .null, count: text.utf8.count)),
            ])
          )
        ])
      )
    )
    let evaluation = Evaluation(
      ruleset,
      request,
      constraints: nil,
      documents: NoDocuments(),
      ledger: AccessLedger(isSingle: true, workMax: workMax)
    )
    let candidate = try #require(PatternSearch.allows(for: request, in: ruleset).first)
    let rule = try #require(candidate.allow.condition)
    evaluation.captures = candidate.captures
    #expect((try? evaluation.holds(rule)) != true)
    let again = evaluation.repeated()
    let reasons = again.reasons(rule, candidate.captures)
    return (workMax - evaluation.workLeft, workMax - again.workLeft, reasons)
  }

  private struct NoDocuments: RulesDocuments {
    func document(_ path: RulePath, after: Bool) throws -> RuleValue? { nil }
  }

  @Test(
    "Whatever looks at a large value counts",
    arguments: [
      "resource.data.l.size() == 0", "resource.data['l'].size() == 0",
      "resource.data.get('l', []).size() == 0", "resource.data.get(['l'], []).size() == 0",
      "resource.data.s[0] == 'b'", "resource.data.s[0:2] == 'b'", "resource.data.s.size() == 0",
    ]
  )
  func largeValues(condition: String) throws {
    let cost = try Self.costs(condition, String(repeating: "a", count: 200_000)).decision

    #expect(cost > 6000)
  }

  @Test("Whether a document has a field costs nothing more when its value is large")
  func presence() throws {
    let text = String(repeating: "a", count: 200_000)
    #expect(try Self.costs("!('l' in resource.data)", text).decision < 100)
  }

  @Test(
    "What a rule has skipped costs nothing in its reasons either",
    arguments: [
      "resource.data.s.size() <= 100 && resource.data.s.matches('(?s).*[^\\\\pZ\\\\pC].*')",
      "!(resource.data.s.size() > 100 || resource.data.s.matches('.*x'))",
      "isName(resource.data.s)",
      "resource.data.s.size() <= 100 ? resource.data.s.matches('.*x') : false",
      "1 == 2 && [1].hasAll(resource.data.s.split(''))",
    ]
  )
  func skippedParts(condition: String) throws {
    let text = String(repeating: "a", count: 1_000_000)
    let (decision, reasons, reported) = try Self.costs(condition, text)

    // Only the size of the text is evaluated.
    #expect(decision < text.utf8.count / 16)
    #expect(reasons <= decision)
    #expect(!reported.isEmpty)
  }

  @Test("A value that a failed part did not need is shown only where it costs little")
  func unneededOperand() throws {
    let condition = "request.auth.uid == resource.data.s.replace('a', 'b')"
    let short = try Self.costs(condition, "aa").reported
    let long = try Self.costs(condition, String(repeating: "a", count: 1_000_000)).reported

    #expect(short.map(\.text) == [condition])
    #expect(short.first?.operands.map(\.value) == ["(no value)", "'bb'"])
    #expect(long.map(\.text) == [condition])
    #expect(long.first?.operands.map(\.value) == ["(no value)", "(no value)"])
  }
}
