import DocumentModel
import Testing

@testable import SecurityRules

@Suite("Decisions")
struct DecisionTests {
  private struct EveryDocument: RulesDocuments {
    func document(_ path: RulePath, after: Bool) throws -> RuleValue? { .map(.entries([:])) }
  }

  private static func isAllowed(
    _ body: String,
    version: Int = 2,
    _ path: [String] = ["a", "x"],
    ledger: AccessLedger = AccessLedger(isSingle: true)
  ) throws -> Bool {
    try Ruleset(
      name: "f.rules",
      content: "rules_version = '\(version)'; service cloud.firestore { \(body) }"
    ).decide(
      RulesRequest(
        method: .get,
        path: path.map { .known($0) },
        time: RuleTimestamp(Timestamp(microseconds: 0)),
        auth: .null
      ),
      documents: EveryDocument(),
      ledger: ledger
    ).isAllowed
  }

  private static func looks(_ range: Range<Int>) -> String {
    range.map { "exists(/databases/(default)/documents/d/$('\($0)'))" }.joined(separator: " && ")
  }

  @Test("Telling why a rule refuses uses up nothing")
  func reasonsAreFree() throws {
    // The decision skips the first rule's second half, but the reasons may evaluate it.
    let body = """
      match /a/{id} {
        allow get: if false && (\(Self.looks(0..<8)));
        allow get: if \(Self.looks(8..<16));
      }
      """

    #expect(try Self.isAllowed(body))
  }

  @Test("A condition beyond a bound is refused with the bound in the log's line")
  func boundIsSaid() throws {
    let list = "[\(Array(repeating: "1", count: 600).joined(separator: ","))]"
    let ruleset = try Ruleset(
      name: "f.rules",
      content: """
        rules_version = '2';
        service cloud.firestore {
          match /a/{id} { allow get: if \(list) == \(list) && id == 'x'; }
        }
        """
    )
    let decision = ruleset.decide(
      RulesRequest(
        method: .get,
        path: ["a", "x"].map { .known($0) },
        time: RuleTimestamp(Timestamp(microseconds: 0)),
        auth: .null
      ),
      documents: EveryDocument(),
      ledger: AccessLedger(isSingle: true)
    )

    let line = decision.summary(in: ruleset)
    #expect(line.contains("the maximum of 1000 expressions"), "\(line)")
  }

  @Test("Ten documents may be looked at, eleven may not", arguments: [(10, true), (11, false)])
  func accesses(count: Int, isAllowed: Bool) throws {
    let half = count / 2
    let one = "match /a/{id} { allow get: if \(Self.looks(0..<count)); }"
    let two = """
      match /a/{id} {
        allow get: if \(Self.looks(0..<half)) && false;
        allow get: if \(Self.looks(half..<count));
      }
      """

    #expect(try Self.isAllowed(one) == isAllowed)
    #expect(try Self.isAllowed(two) == isAllowed)
    #expect(try Self.isAllowed(two, ledger: AccessLedger(isSingle: false)) == isAllowed)
  }

  @Test("A request of several documents may look at twenty")
  func accessesOfBatch() throws {
    let ledger = AccessLedger(isSingle: false)

    for (range, isAllowed) in [(0..<10, true), (10..<20, true), (20..<21, false), (0..<10, true)] {
      let body = "match /a/{id} { allow get: if \(Self.looks(range)); }"
      #expect(try Self.isAllowed(body, ledger: ledger) == isAllowed)
    }
  }

  @Test(
    "A thousand expressions are evaluated, one more is not",
    arguments: [(996, true), (997, false)]
  )
  func expressions(count: Int, isAllowed: Bool) throws {
    // The comparison, its right side, the call and the list are four expressions.
    let list = Array(repeating: "1", count: count).joined(separator: ",")

    #expect(
      try Self.isAllowed("match /a/{id} { allow get: if [\(list)].size() > 0; }") == isAllowed
    )
  }

  @Test("In the first version a recursive wildcard takes a segment at least")
  func emptyGlob() throws {
    let body = "match /a/{id} { match /{rest=**} { allow get; } }"

    #expect(try !Self.isAllowed(body, version: 1))
    #expect(try Self.isAllowed(body, version: 2))
    #expect(try Self.isAllowed(body, version: 1, ["a", "x", "b"]))
  }

  @Test("Wildcards have the values of their own segments, the innermost of a name counting")
  func captures() throws {
    let body = """
      match /{a}/{b} {
        function inner() { return a == '1' && b == '2'; }
        match /{c}/{b} {
          allow get: if a == '1' && b == '4' && c == '3' && inner();
        }
      }
      """

    #expect(try Self.isAllowed(body, ["1", "2", "3", "4"]))
    #expect(try !Self.isAllowed(body, ["1", "4", "3", "4"]))
    #expect(try !Self.isAllowed(body, ["3", "2", "1", "4"]))
    #expect(
      try Self.isAllowed(
        "match /{a}/{r=**} { match /{z} { allow get: if r == /2/3 && z == '4'; } }",
        ["1", "2", "3", "4"]
      )
    )
  }

  @Test("A rule is not asked of what lies below its path")
  func whole() throws {
    #expect(try !Self.isAllowed("match /a/{id} { allow get; }", ["a", "x", "b", "y"]))
    #expect(try !Self.isAllowed("match /a/{id}/b/{c} { allow get; }"))
    #expect(try !Self.isAllowed("match /a/{id} { allow list, write; }"))
  }

  @Test("A document before the request does not stand in for itself after it")
  func beforeAndAfter() throws {
    struct Created: RulesDocuments {
      func document(_ path: RulePath, after: Bool) throws -> RuleValue? {
        after ? .map(.entries([:])) : nil
      }
    }
    let ruleset = try Ruleset(
      name: "f.rules",
      content: """
        rules_version = '2';
        service cloud.firestore {
          match /a/{id} {
            function d(id) { return /databases/(default)/documents/d/$(id); }
            allow get: if !exists(d('x')) && existsAfter(d('x')) && !exists(d('x'))
              && existsAfter(d('y')) && !exists(d('y'));
          }
        }
        """
    )
    let decision = ruleset.decide(
      RulesRequest(
        method: .get,
        path: [.known("a"), .known("x")],
        time: RuleTimestamp(Timestamp(microseconds: 0)),
        auth: .null
      ),
      documents: Created(),
      ledger: AccessLedger(isSingle: true)
    )

    #expect(decision.isAllowed)
  }

  @Test(
    "A rule's semicolon may be missing before the next declaration",
    arguments: [
      "allow list: if true;", "match /z/{q} { allow get; }", "function f() { return true; }",
    ]
  )
  func semicolons(next: String) throws {
    #expect(try Self.isAllowed("match /a/{id} { allow get: if true \(next) }"))
  }

  @Test(
    "A query over all collections of a name needs a rule for each, those at the top too",
    arguments: [(1, false), (2, true)]
  )
  func collectionGroups(version: Int, isAllowed: Bool) throws {
    // In version 1 a recursive wildcard matches at least one segment.
    let ruleset = try Ruleset(
      name: "f.rules",
      content: """
        rules_version = '\(version)';
        service cloud.firestore {
          match /databases/{database}/documents {
            match /{parents=**} { match /posts/{id} { allow list: if true; } }
          }
        }
        """
    )
    let request = RulesRequest(
      method: .list,
      path: [
        .known("databases"), .known("(default)"), .known("documents"), .anyStretch,
        .known("posts"), .unknown,
      ],
      time: RuleTimestamp(Timestamp(microseconds: 0)),
      auth: .null,
      constraints: [QueryConstraints([])]
    )

    let decision = ruleset.decide(
      request,
      documents: EveryDocument(),
      ledger: AccessLedger(isSingle: true)
    )

    #expect(decision.isAllowed == isAllowed)
  }
}
