import DocumentModel
import DocumentStore
import EventLog
import FirestoreEmulator
import Foundation
import Identity
import Logging
import QueryEngine
import SecurityRules
import StatusCodes
import StorageEngine
import Testing
import TestSupport

/// Tests of security rules that govern an in-memory store.
@Suite("Rules of a store")
struct RulesPolicyTests {
  private static let database = DatabaseName(project: "demo-psst")
  private static let alice = AuthContext.user(
    UserIdentity(uid: "alice", claimsJSON: "{\"sub\":\"alice\"}")
  )

  /// A store with rules and a log that both write to.
  private struct Fixture {
    let log = LogCapture()
    let policy: RulesPolicy
    let store: DocumentDatabase

    init() {
      let logger = log.logger(level: .notice)
      let storage = MemoryStorage()
      policy = RulesPolicy(logger: logger)
      store = DocumentDatabase(
        storage: storage,
        queryRunner: QueryRunner(logger: logger),
        tailer: EventTailer(storage: storage, logger: logger),
        accessPolicy: policy,
        now: { Timestamp(microseconds: 1_700_000_000_000_000) },
        clock: ContinuousClock(),
        logger: logger
      )
    }

    /// Loads a ruleset with the given condition for `t/{id}`.
    func load(_ condition: String) throws {
      let ruleset = try Ruleset(
        name: "f.rules",
        content: SampleRules.documents(
          "match /t/{id} { allow get, write: if \(condition); }"
        )
      )
      policy.load(ruleset, for: .project(RulesPolicyTests.database.project))
    }

    func put(_ path: String, _ fields: MapValue = [:], as auth: AuthContext = .admin) async throws {
      let name = RulesPolicyTests.name(path)
      try await commit(.update(name, fields: fields, mask: nil, transforms: []), auth)
    }

    func delete(_ path: String) async throws {
      try await commit(.delete(RulesPolicyTests.name(path)), .admin)
    }

    private func commit(_ operation: Write.Operation, _ auth: AuthContext) async throws {
      _ = try await store.commit(
        [Write(operation)],
        database: RulesPolicyTests.database,
        transaction: nil,
        auth: auth
      )
    }

    /// Indicates whether the rules let Alice get `t/x`.
    func mayGet() async throws -> Bool {
      do {
        _ = try await store.lookUp(
          [RulesPolicyTests.name("t/x")],
          mask: nil,
          at: .latest,
          auth: RulesPolicyTests.alice
        )
        return true
      } catch let error as StatusError where error.statusCode == .permissionDenied { return false }
    }
  }

  private static func name(_ path: String) -> DocumentName {
    DocumentName(database: database, path: ResourcePath(slashSeparated: path))
  }

  @Test("The store's look-ups judge each path of the table as the official emulator does")
  func paths() async throws {
    struct Row: Decodable {
      var path: String
      var verdict: String

      init(from decoder: any Decoder) throws {
        var row = try decoder.unkeyedContainer()
        path = try row.decode(String.self)
        verdict = try row.decode(String.self)
      }
    }
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../SecurityRulesTests/look_up_paths.json")
    let rows = try JSONDecoder().decode([Row].self, from: try Data(contentsOf: file))
    let fixture = Fixture()
    let long = String(repeating: "x", count: 1500)
    let umlauts = String(repeating: "ü", count: 750)
    try await fixture.put(
      "t/x",
      [
        "blank": .string(""), "slash": .string("a/b"), "s": .string("text"),
        "long": .string(long + "x"), "max": .string(long), "s1": .string(umlauts),
        "s2": .string(umlauts + "ü"), "n": .integer(7), "f": .double(1.5), "yes": .boolean(true),
        "z": .null, "l": .array([]), "m": .map([:]), "p": .reference(Self.name("t/x")),
        "b": .bytes([120]), "t": .timestamp(Timestamp(microseconds: 1_000_000)),
      ]
    )
    for path in [
      "t/x/s/y", "t/7", "t/1", "t/1.5", "t/true", "t/null", "t/...", "t/__id7__", "t/\(long)",
      "\(long)/x", "t/{i}", "t/*", "t/a b", "t/____", "t/__", "t/%2F", "t/`", "t/\(umlauts)",
    ] {
      try await fixture.put(path)
    }

    for row in rows {
      try fixture.load("exists(\(row.path))")
      #expect(try await fixture.mayGet() == (row.verdict == "document"), "exists(\(row.path))")
      try fixture.load("!exists(\(row.path))")
      #expect(try await fixture.mayGet() == (row.verdict == "nothing"), "!exists(\(row.path))")
    }
  }

  @Test("Each request looks up what is there then")
  func freshLookUps() async throws {
    let fixture = Fixture()
    try await fixture.put("t/x")
    try fixture.load("exists(/databases/(default)/documents/gates/open)")

    for _ in 0..<3 {
      try await fixture.put("gates/open")
      #expect(try await fixture.mayGet())
      try await fixture.delete("gates/open")
      #expect(try await !fixture.mayGet())
    }
  }

  @Test("A commit's look-ups keep apart what is there before it and after it")
  func beforeAndAfter() async throws {
    let fixture = Fixture()
    try fixture.load(
      """
      !exists(/databases/(default)/documents/t/$(id))
        && existsAfter(/databases/(default)/documents/t/$(id))
        && !exists(/databases/(default)/documents/t/$(id))
        && getAfter(/databases/(default)/documents/t/$(id)).data.n == 1
      """
    )

    try await fixture.put("t/new", ["n": .integer(1)], as: Self.alice)
    await #expect(throws: StatusError.self) {
      try await fixture.put("t/new", ["n": .integer(1)], as: Self.alice)
    }
  }

  @Test("Rules that take long decide like others, and are asked once for the log and the coverage")
  func longDecisions() async throws {
    let fixture = Fixture()
    let text = String(repeating: "ab", count: 200_000)
    try await fixture.put("t/x", ["s": .string(text)])

    try fixture.load("debug(resource.data.s.replace('b', '').size() == 200000)")
    #expect(try await fixture.mayGet())
    try fixture.load("resource.data.s.replace('b', '').size() == 1")
    #expect(try await !fixture.mayGet())

    #expect(fixture.policy.decisions.map(\.decision.isAllowed) == [false, true])
    #expect(fixture.log.entries.count { $0.message.contains("debug(") } == 1)
    #expect(fixture.log.entries.count { $0.message.contains("is denied") } == 1)
    let rules = try #require(fixture.policy.rules(of: Self.database))
    let json = rules.ruleset.coverageJSON(rules.coverage)
    #expect(json.contains(#""count":1"#) && !json.contains(#""count":2"#), "\(json)")
  }

  @Test("A request about thousands of documents is decided apart, and each looks up its own")
  func manyDocuments() async throws {
    let fixture = Fixture()
    let names = (0..<3000).map { Self.name("t/\($0)") }
    let writes = names.map { Write(.update($0, fields: [:], mask: nil, transforms: [])) }
    try fixture.load(
      """
      !exists(/databases/(default)/documents/t/$(id))
        && existsAfter(/databases/(default)/documents/t/$(id))
      """
    )
    let commit = { (auth: AuthContext) in
      try await fixture.store.commit(
        writes,
        database: Self.database,
        transaction: nil,
        auth: auth
      )
    }

    _ = try await commit(Self.alice)
    await #expect(throws: StatusError.self) { try await commit(Self.alice) }

    try fixture.load("exists(/databases/(default)/documents/t/$(id))")
    let found = try await fixture.store.lookUp(names, mask: nil, at: .latest, auth: Self.alice)
    #expect(found.documents.count { $0.document != nil } == names.count)
  }

  @Test("Values given to debug are lines of the log, one for each request, and of the decisions")
  func debugValues() async throws {
    let fixture = Fixture()
    try await fixture.put("t/x", ["s": .string("a\u{1B}[2Jb")])
    try fixture.load("debug(resource.data.s) != ''")

    #expect(try await fixture.mayGet())
    #expect(try await fixture.mayGet())

    let lines = fixture.log.entries.map(\.message).filter { $0.contains("debug(") }
    #expect(lines.count == 2)
    #expect(lines.first == "f.rules:4:42 debug(resource.data.s) = 'a\\u{1B}[2Jb'")
    #expect(fixture.policy.decisions.first?.decision.debugged.count == 1)
  }

  @Test("The last decisions name their document, their query and another database")
  func titles() async throws {
    let fixture = Fixture()
    try fixture.load("false")
    let other = DatabaseName(project: Self.database.project, database: "other")
    let path = ResourcePath(slashSeparated: "t/x")
    for database in [Self.database, other] {
      await #expect(throws: StatusError.self) {
        try await fixture.store.lookUp(
          [DocumentName(database: database, path: path)],
          mask: nil,
          at: .latest,
          auth: Self.alice
        )
      }
    }

    #expect(fixture.policy.decisions.map(\.path) == ["t/x in database other", "t/x"])
  }

  /// Rules that allow everything, with a comment that makes them as long as rules can be.
  private func longRules() throws -> Ruleset {
    let text = SampleRules.documents("match /t/{id} { allow get, write; }") + "//"
    let padding = String(repeating: "x", count: RulesLimits.fileBytesMax - text.utf8.count)
    return try Ruleset(name: "f.rules", content: text + padding)
  }

  @Test("Rules for ever new projects displace the oldest, whose requests are denied, not allowed")
  func manyProjects() throws {
    let policy = Fixture().policy
    let rules = try longRules()
    policy.load(rules, for: .everyProject)
    try policy.load(sent: rules, for: .project("own"), keeping: "own")
    for number in 0..<40 {
      try policy.load(sent: rules, for: .project("p\(number)"), keeping: "own")
    }

    func inForce(_ project: String) -> Bool {
      policy.rules(of: DatabaseName(project: project))?.ruleset === rules
    }
    #expect((0..<40).filter { inForce("p\($0)") }.count < 16)
    #expect(inForce("p39") && inForce("own") && inForce("another"))
    #expect(!inForce("p0") && !policy.isOpen(DatabaseName(project: "p0")))
  }

  @Test("The rules of the latest projects are in force, however many projects there were")
  func manyShortRules() throws {
    let policy = Fixture().policy
    let rules = try Ruleset(
      name: "f.rules",
      content: "service cloud.firestore { match /{path=**} { allow read; } }"
    )
    for number in 0..<20_000 {
      try policy.load(sent: rules, for: .project("p\(number)"), keeping: "own")
    }

    for number in 19_000..<20_000 {
      let inForce = policy.rules(of: DatabaseName(project: "p\(number)"))?.ruleset
      #expect(inForce === rules)
    }
    #expect(policy.rules(of: DatabaseName(project: "p0"))?.ruleset !== rules)

    // Even the projects whose rules were dropped are bounded.
    let error = #expect(throws: StatusError.self) {
      for number in 20_000..<200_000 {
        try policy.load(sent: rules, for: .project("p\(number)"), keeping: "own")
      }
    }
    #expect(error?.statusCode == .resourceExhausted)
    try policy.load(sent: rules, for: .project("own"), keeping: "own")
    #expect(policy.rules(of: DatabaseName(project: "own"))?.ruleset === rules)
  }

  @Test("The last decisions keep only as much of former rules as is little")
  func formerRules() async throws {
    let fixture = Fixture()
    try await fixture.put("t/x")
    weak var first: Ruleset?
    for number in 0..<8 {
      let rules = try longRules()
      if number == 0 { first = rules }
      fixture.policy.load(rules, for: .project(Self.database.project))
      #expect(try await fixture.mayGet())
    }

    #expect(first == nil)
    #expect((1..<8).contains(fixture.policy.decisions.count))
  }
}
