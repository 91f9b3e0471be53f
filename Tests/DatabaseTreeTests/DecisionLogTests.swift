import DatabaseModel
import DatabaseRules
import DocumentModel
import JSONText
import Testing

@testable import DatabaseTree

@Suite("The log of the rules' decisions")
struct DecisionLogTests {
  @Test("Every decision is kept with its reasons, and administrators are not asked about")
  func decisions() async throws {
    try await DatabaseFixture.with { fixture in
      await fixture.instance.setRules(
        try DatabaseRuleset(
          parsing: #"{"rules":{".read":true,"a":{".write":"newData.val() == 1"}}}"#,
          name: "mine.json"
        )
      )
      try await fixture.set("/a", "2")
      try await fixture.set("/a", "1", as: .nobody)
      await #expect(throws: DatabaseError.permissionDenied) {
        try await fixture.set("/a", "3", as: .nobody)
      }
      _ = try await fixture.instance.read(.at("/a"), as: .nobody)

      let found = fixture.database.decisions
      #expect(found.map(\.method) == ["read", "write", "write"])
      #expect(found.map(\.decision.isAllowed) == [true, false, true])
      #expect(found.map(\.instance) == ["test", "test", "test"])
      #expect(found[1].path == .at("/a"))
      #expect(
        found[1].decision.text(file: found[1].file) == """
          mine.json:1:39 .write of /a at /a: false
            newData.val() == 1
              newData.val() = 3
          """
      )
    }
  }

  @Test("Only the latest decisions are kept")
  func bound() {
    let log = DecisionLog()
    for index in 0..<450 {
      log.add(
        RecentDatabaseDecision(
          time: Timestamp(microseconds: 0),
          instance: "test",
          method: "read",
          path: DatabasePath(["\(index)"]),
          auth: .null,
          decision: DatabaseDecision(isAllowed: true),
          file: "rules.json"
        )
      )
    }
    let paths = log.latestFirst.map(\.path.description)
    #expect(paths == (250..<450).reversed().map { "/\($0)" })
  }
}
