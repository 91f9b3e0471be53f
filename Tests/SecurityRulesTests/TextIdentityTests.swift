import DocumentModel
import Testing

@testable import SecurityRules

/// Swift treats some visually similar texts as equal, such as `K` and the Kelvin sign.
@Suite("Texts that look alike are different")
struct TextIdentityTests {
  private static let kelvin = "\u{212A}"

  private struct Rooms: RulesDocuments {
    func document(_ path: RulePath, after: Bool) throws -> RuleValue? {
      // Mallory owns the room named by the Kelvin sign; Alice owns the room K.
      let isKelvin = path.segments.last?.unicodeScalars.first == "\u{212A}"
      return .map(
        .entries(["data": .map(.entries(["owner": .string(isKelvin ? "mallory" : "alice")]))])
      )
    }
  }

  private static func isAllowed(
    _ condition: String,
    room: String,
    ledger: AccessLedger = AccessLedger(isSingle: false)
  ) throws -> Bool {
    let ruleset = try Ruleset(
      name: "f.rules",
      content: """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{db}/documents/rooms/{room}/posts/{id} {
            allow create: if \(condition);
          }
        }
        """
    )
    return ruleset.decide(
      RulesRequest(
        method: .create,
        path: ["databases", "d", "documents", "rooms", room, "posts", "1"].map { .known($0) },
        time: RuleTimestamp(Timestamp(microseconds: 0)),
        auth: .map(.entries(["uid": .string("mallory")])),
        resource: .null
      ),
      documents: Rooms(),
      ledger: ledger
    ).isAllowed
  }

  @Test("A document that was looked at does not stand in for another")
  func ledger() throws {
    let rule =
      "get(/databases/$(db)/documents/rooms/$(room)).data.owner == request.auth.uid"
    let ledger = AccessLedger(isSingle: false)

    #expect(try Self.isAllowed(rule, room: Self.kelvin, ledger: ledger))
    #expect(try !Self.isAllowed(rule, room: "K", ledger: ledger))
  }

  @Test(
    "A key of a map is not found by another",
    arguments: [
      "room in {'K': true}", "{'K': true}[room]", "{'K': true}.get(room, false)",
      "{'K': true, 'a': 1}.keys().hasAny([room])", "{'K': 1} == {room: 1}",
      "{'K': 1}.diff({room: 1}).unchangedKeys().size() == 1", "{'K': 1, room: 2}.size() == 1",
      "room in ['K']", "['K'].hasAny([room])", "room in ['K'].toSet()", "room == 'K'",
      "/a/$(room) == /a/K", "path('/a/{K}').bind({room: 'x'}) == /a/x",
    ]
  )
  func keys(condition: String) throws {
    #expect(try Self.isAllowed(condition, room: "K") || condition.contains("room: 2"))
    #expect(try !Self.isAllowed(condition, room: Self.kelvin))
  }

  @Test("A regular expression does not stand in for another")
  func patterns() throws {
    let rule = "'a'.matches(room) || 'K'.matches(room)"

    #expect(try Self.isAllowed(rule, room: "K"))
    #expect(try !Self.isAllowed("'K'.matches('K') && 'K'.matches(room)", room: Self.kelvin))
  }

  @Test("A path's text is split at every slash, whatever stands behind it")
  func slashes() throws {
    #expect(
      try Self.isAllowed(
        "path('a/' + room).size() == 2 || path('a/' + room)[1] == room",
        room: "\u{301}x"
      )
    )
  }
}
