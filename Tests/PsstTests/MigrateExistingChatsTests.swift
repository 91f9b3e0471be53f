import FirestoreClient
import FunctionsRuntime
import FunctionsTesting
import PsstFunctions
import PsstModels
@testable import PsstBackend
import Testing

@Suite("migrateExistingChats")
struct MigrateExistingChatsTests {
  private func contact(_ id: String, _ seconds: Int64, source: String? = nil) -> Client {
    Client(
      clientId: id,
      displayName: id.prefix(1).uppercased() + id.dropFirst(),
      email: "\(id)@psst.app",
      addedAt: Timestamp(microseconds: seconds * 1_000_000),
      source: source
    )
  }

  /// Returns the contacts of a report with another run as their source.
  private func contacts(_ report: MigrationReport, source: String) -> [MigratedContact] {
    report.contacts.map { contact in
      var contact = contact
      contact.data.source = source
      return contact
    }
  }

  @Test("A dry run lists exactly what a real run writes, and writes nothing")
  func dryRun() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      fixture.faults.decide(nil)
      let dry = try await fixture.migrate()
      #expect(dry.dryRun && dry.backup == nil)
      #expect(fixture.faults.commits == 0)
      #expect(try await fixture.contacts().isEmpty)

      let real = try await fixture.migrateReally()
      #expect(!real.dryRun && real.backup == "/backup")
      // Every run has an ID, which is the source of the contacts that it creates.
      #expect(real.run != dry.run && dry.contacts == contacts(dry, source: dry.run))
      #expect(real.contacts == contacts(dry, source: real.run))
      #expect(real.counts == dry.counts)
      #expect(real.skips == dry.skips && real.errors.isEmpty && !real.truncated)
      let stored = try await fixture.contacts()
      #expect(stored == Dictionary(uniqueKeysWithValues: real.contacts.map { ($0.path, $0.data) }))
      #expect(
        stored == [
          // The older of two chats counts, whatever its name.
          "contacts/tina/clients/carl": contact("carl", 1000, source: real.run),
          "contacts/tina/clients/cora": contact("cora", 1000, source: real.run),
          "contacts/theo/clients/carl": contact("carl", 1000, source: real.run),
          "contacts/theo/clients/cora": contact("cora", 1000, source: real.run),
          "contacts/olga/clients/cora": contact("cora", 3000, source: real.run),
        ]
      )
      #expect(real.counts.trainers == 3 && real.counts.created == 5)
      #expect(
        Set(real.skips.map(\.path)) == [
          "users/olga", "contacts/tina/clients/ghost", "contacts/theo/clients/ghost",
        ]
      )
    }
  }

  @Test("A second run writes nothing, and a contact that is there stays as it is")
  func secondRun() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      try await fixture.db.document("contacts/tina/clients/carl").set(contact("charles", 5))
      let first = try await fixture.migrateReally()
      #expect(first.counts.created == 4 && first.counts.existing == 1)
      let stored = try await fixture.contacts()
      #expect(stored["contacts/tina/clients/carl"] == contact("charles", 5))

      let second = try await fixture.migrateReally()
      #expect(second.contacts.isEmpty && second.counts.existing == 5)
      #expect(try await fixture.contacts() == stored)
    }
  }

  @Test("A run after one that was killed between two writes does what is left", arguments: 1...4)
  func crash(commit: Int) async throws {
    // The first run:  lease · olga's contacts · theo's contacts · tina's contacts · lease
    //                 from commit number `commit` on, the database fails
    try await withAdministration { fixture in
      try await fixture.people()
      let plan = try await fixture.migrate()
      fixture.faults.decide { $0 < commit ? .none() : .refused }
      await #expect(throws: CallableError.self) { try await fixture.migrateReally() }
      fixture.faults.decide(nil)
      let before = try await fixture.contacts()
      #expect(before.count == [0, 0, 1, 3][commit - 1])
      try await fixture.outliveLeases()
      let reply = try await fixture.migrateReally()

      #expect(reply.counts.existing == before.count && reply.counts.trainers == 3)
      #expect(reply.counts.created + before.count == plan.counts.created)
      let after = try await fixture.contacts()
      #expect(after.keys.sorted() == plan.contacts.map(\.path).sorted())
      #expect(after.values.count { $0.source == reply.run } == reply.counts.created)
      #expect(try await !fixture.db.document("leases/migration").get().exists)
      let warning = "A run ended without giving back its lease"
      #expect(fixture.suite.logs.contains { $0.message == warning } == (commit > 1))
    }
  }

  @Test("Contacts whose writes are made without an answer are counted once, and as made")
  func lostAnswers() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      // After the lease commit, every second response is lost: one for each trainer.
      fixture.faults.decide { $0.isMultiple(of: 2) ? .unheard : .none() }
      let reply = try await fixture.migrateReally()

      #expect(reply.counts.created == 5 && reply.counts.existing == 0)
      #expect(reply.contacts.count == 5)
      #expect(try await fixture.contacts().values.allSatisfy { $0.source == reply.run })
    }
  }

  @Test("A contact that is created during the run stays, and the others are created")
  func madeMeanwhile() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      let db = fixture.db
      let theirs = contact("charles", 5)
      // Transaction 1 takes the lease, 2 creates the contacts of olga, 3 the contacts of theo.
      fixture.faults.beforeTransaction { number in
        if number == 3 { try await db.document("contacts/theo/clients/carl").create(theirs) }
      }
      let reply = try await fixture.migrateReally()

      #expect(reply.counts.created == 4 && reply.counts.existing == 1)
      #expect(try await fixture.contacts()["contacts/theo/clients/carl"] == theirs)
      #expect(try await fixture.contacts().count == 5)
    }
  }

  @Test("A client whom the trainer removed is never brought back, and the reply says so")
  func removed() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      let note: [String: FieldValue] = ["removedAt": .serverTimestamp]
      try await fixture.db.document("contacts/tina/removed/carl").set(note)
      // Added again, while the removal note still exists.
      try await fixture.db.document("contacts/theo/removed/carl").set(note)
      try await fixture.db.document("contacts/theo/clients/carl").set(contact("carl", 5))
      let dry = try await fixture.migrate()
      // Just before the contacts of tina are created.
      let db = fixture.db
      fixture.faults.beforeTransaction { number in
        if number == 4 { try await db.document("contacts/tina/removed/cora").set(note) }
      }
      let real = try await fixture.migrateReally()

      #expect(dry.counts.created == 3 && dry.counts.existing == 1)
      #expect(real.counts.created == 2 && real.counts.existing == 1)
      #expect(
        real.skips.filter { $0.reason == "the trainer has removed this client" }.map(\.path)
          == ["contacts/tina/clients/carl", "contacts/tina/clients/cora"]
      )
      #expect(try await fixture.contacts().keys.allSatisfy { !$0.hasPrefix("contacts/tina/") })
    }
  }

  @Test("Runs at once go one after another, and make every contact once")
  func concurrentRuns() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      for number in 0..<40 {
        try await fixture.user("client\(number)", "client")
        try await fixture.chat("x\(number)", ["tina", "client\(number)"])
      }
      let replies = try await withThrowingTaskGroup(of: MigrationReport.self) { group in
        for _ in 0..<3 { group.addTask { try await fixture.migrateReally() } }
        return try await group.reduce(into: []) { $0.append($1) }
      }

      #expect(replies.map(\.counts.created).sorted() == [0, 0, 45])
      #expect(replies.map(\.counts.existing).sorted() == [0, 45, 45])
      #expect(replies.allSatisfy { $0.counts.errors == 0 })
      #expect(try await fixture.contacts().count == 45)
    }
  }

  @Test("Beside a run that is alive there is no other; a dry run needs no lease")
  func heldLease() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      try await fixture.lease("migration")
      #expect(try await fixture.migrate().counts.created == 5)

      let error = await fixture.refusal { try await fixture.migrateReally() } as? CallableError
      #expect(error?.code == .aborted)
      #expect(error?.message.contains("held by the run other") == true)
      #expect(try await fixture.contacts().isEmpty)
    }
  }

  // MARK: Some trainers

  @Test("A run for some trainers makes their contacts alone")
  func someTrainers() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      let all = try await fixture.migrate()
      let dry = try await fixture.migrate(["theo", "olga", "theo"])
      #expect(dry.counts.trainers == 2 && dry.counts.created == 3)

      let real = try await fixture.migrateReally(["theo", "olga", "theo"])
      #expect(real.contacts == contacts(dry, source: real.run))
      #expect(
        real.contacts.map(\.path)
          == all.contacts.map(\.path).filter { !$0.hasPrefix("contacts/tina/") }
      )
      #expect(try await fixture.contacts().count == 3)
      // A user without a role counts as a trainer.
      #expect(real.skips.contains { $0.path == "users/olga" && $0.reason.hasPrefix("has no role") })
    }
  }

  @Test(
    "An id of a client, of no user or of a user with an unknown role is skipped with its reason"
  )
  func noTrainers() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      try await fixture.user("boss", "admin")
      let reply = try await fixture.migrateReally(["carl", "nobody", "boss", "tina"])

      #expect(reply.counts.trainers == 1 && reply.counts.created == 2)
      let reasons = Dictionary(uniqueKeysWithValues: reply.skips.map { ($0.path, $0.reason) })
      #expect(reasons["users/carl"] == "the user is a client, not a trainer")
      #expect(reasons["users/nobody"] == "there is no such user")
      #expect(reasons["users/boss"] == "the user's role is neither trainer nor client")
    }
  }

  @Test(
    "What cannot be a list of trainers is refused",
    arguments: [
      [], [""], ["a/b"], ["tina", "."], [".."], ["__all__"],
      [String(repeating: "x", count: 513)], (0...1000).map { "t\($0)" },
    ]
  )
  func senselessTrainers(ids: [String]) async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      for dryRun in [true, false] {
        let error = await #expect(throws: CallableError.self) {
          try await fixture.migrate(ids, dryRun: dryRun, confirm: "migrate")
        }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.contains("trainerIds") == true)
      }
      #expect(try await fixture.contacts().isEmpty)
    }
  }

  // MARK: Large and malformed

  @Test("A trainer in more chats than a page, with more clients than a batch, gets them all")
  func manyChats() async throws {
    try await withAdministration { fixture in
      try await fixture.user("tina", "trainer")
      for number in 0..<105 {
        try await fixture.user("client\(number)", "client")
        for copy in 0..<3 {
          try await fixture.chat("x\(number)-\(copy)", ["tina", "client\(number)"])
        }
      }
      let dry = try await fixture.migrate()
      let real = try await fixture.migrateReally()

      #expect(dry.counts.created == 105)
      #expect(real.contacts == contacts(dry, source: real.run))
      #expect(try await fixture.contacts().count == 105)
    }
  }

  @Test("What is malformed is reported, and the rest is migrated")
  func malformed() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      try await fixture.user("nemo", "client", name: " ", email: "")
      try await fixture.user("mail", "client", name: "", email: "mail@psst.app")
      try await fixture.user("boss", "admin")
      try await fixture.chat("n1", ["theo", "nemo"])
      try await fixture.chat("n2", ["theo", "mail"])
      try await fixture.chat("n3", ["gone", "cora"])
      try await fixture.db.document("chats/b1").set(["members": "tina"])
      try await fixture.db.document("chats/b2").set(["members": ["tina", 7, "a/b", "", "carl"]])
      try await fixture.db.document("chats/b3").set(["members": ["carl", "cora", 7]])
      let dry = try await fixture.migrate()
      let reply = try await fixture.migrateReally()

      // Each is reported once, although the second one is found through two members.
      #expect(reply.errors.map(\.path).sorted() == ["chats/b1", "chats/b2", "chats/b3"])
      let skipped = Set(reply.skips.map(\.path))
      #expect(skipped.isSuperset(of: ["contacts/theo/clients/nemo", "chats/n3", "users/boss"]))
      #expect(reply.counts.skipped == reply.skips.count && reply.counts.errors == 3)
      #expect(dry.skips == reply.skips && dry.errors == reply.errors)
      #expect(
        try await fixture.contacts()["contacts/theo/clients/mail"]?.displayName == "mail@psst.app"
      )
    }
  }

  @Test("A run for some trainers reports the malformed chats that it finds")
  func malformedOfSome() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      try await fixture.db.document("chats/b2").set(["members": ["tina", "theo", 7]])
      try await fixture.db.document("chats/b3").set(["members": ["carl", 7]])

      #expect(try await fixture.migrate(["tina", "theo"]).errors.map(\.path) == ["chats/b2"])
      #expect(try await fixture.migrate(["olga"]).errors.isEmpty)
    }
  }

  @Test("A contact that the database refuses is reported, and the others are made")
  func refusedContact() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      // The contact document is larger than the user's document, and too large.
      let name = String(repeating: "x", count: (1 << 20) - 120)
      try await fixture.user("huge", "client", name: name)
      try await fixture.chat("h1", ["tina", "huge"])
      let reply = try await fixture.migrateReally()

      #expect(reply.counts.created == 5)
      #expect(reply.errors.map(\.path) == ["contacts/tina/clients/huge"])
    }
  }

  @Test("The backup is made before the first write, and without one nothing is written")
  func backup() async throws {
    try await withAdministration(exportStatus: 503) { fixture in
      try await fixture.people()
      fixture.faults.decide(nil)
      let error = await #expect(throws: CallableError.self) { try await fixture.migrateReally() }
      #expect(error?.code == .unavailable)
      #expect(try await fixture.contacts().isEmpty)
      #expect(try await !fixture.db.document("leases/migration").get().exists)
    }
    try await withAdministration(backup: .none) { fixture in
      try await fixture.people()
      fixture.faults.decide(nil)
      let error = await #expect(throws: CallableError.self) { try await fixture.migrateReally() }
      #expect(error?.code == .failedPrecondition)
      #expect(error?.message.contains("PSST_BACKUP_LOCATION") == true)
      #expect(try await fixture.contacts().isEmpty)
    }
    try await withAdministration(backup: .made(location: "gs://b/x")) { fixture in
      let reply = try await fixture.migrateReally()
      #expect(reply.backup == "gs://b/x")
    }
  }

  @Test(
    "Only administrators may, and a real run only with the word",
    arguments: [
      (TestToken.anonymous, StatusCode.unauthenticated), ("tina", .permissionDenied),
      (.user("tina", claims: ["admin": .string("true")]), .permissionDenied),
      (.user("tina", claims: ["admin": .boolean(true)]), .invalidArgument),
      (.admin, .invalidArgument),
    ]
  )
  func access(token: TestToken, code: StatusCode) async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      for confirm in [nil, "", "yes", "MIGRATE"] {
        let error = await #expect(throws: CallableError.self) {
          try await fixture.migrate(dryRun: false, confirm: confirm, as: token)
        }
        #expect(error?.code == code)
      }
      #expect(try await fixture.contacts().isEmpty)
    }
  }

  @Test("Lists are bounded and without gaps, and the reply says so")
  func bounds() {
    // An entry takes a hundred bytes in addition to its text.
    var room = ListLimit(bytes: 250)
    let taken = [1, 100, 1].map { room.takes($0) }
    #expect(taken == [true, false, false])

    var report = MigrationReport(dryRun: true, run: "r")
    let reason = String(repeating: "x", count: 1 << 19)
    for number in 0..<3 { report.skip("chats/\(number)", reason) }
    #expect(report.skips.map(\.path) == ["chats/0"] && report.counts.skipped == 3)
    #expect(report.truncated)
  }
}
