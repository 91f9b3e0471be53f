import FirestoreClient
import FunctionsRuntime
import FunctionsTesting
import PsstFunctions
import PsstModels
@testable import PsstServices
import Testing

@Suite("migrateExistingChats")
struct MigrateExistingChatsTests {
  private func contact(_ id: String, _ seconds: Int64) -> Contact {
    Contact(
      clientId: id,
      displayName: id.prefix(1).uppercased() + id.dropFirst(),
      email: "\(id)@psst.app",
      addedAt: Timestamp(microseconds: seconds * 1_000_000)
    )
  }

  @Test("A dry run lists exactly what a real run writes, and writes nothing")
  func dryRun() async throws {
    try await withAdministration { world in
      try await world.people()
      world.faults.decide(nil)
      let dry = try await world.migrate()
      #expect(dry.dryRun && dry.backup == nil)
      #expect(world.faults.commits == 0)
      #expect(try await world.contacts().isEmpty)

      let real = try await world.migrateReally()
      #expect(!real.dryRun && real.backup == "/backup")
      #expect(real.contacts == dry.contacts)
      #expect(real.counts == dry.counts)
      #expect(real.skips == dry.skips)
      #expect(real.validation == dry.validation)
      let stored = try await world.contacts()
      #expect(stored == Dictionary(uniqueKeysWithValues: real.contacts.map { ($0.path, $0.data) }))
      #expect(
        stored == [
          // The oldest chat of the two counts, whatever its name.
          "contacts/tina/clients/carl": contact("carl", 1000),
          "contacts/tina/clients/cora": contact("cora", 1000),
          "contacts/theo/clients/carl": contact("carl", 1000),
          "contacts/theo/clients/cora": contact("cora", 1000),
          "contacts/olga/clients/cora": contact("cora", 3000),
        ]
      )
      #expect(real.counts.trainers == 3 && real.counts.created == 5)
      #expect(
        Set(real.skips.map(\.path)) == [
          "users/olga", "contacts/tina/clients/ghost", "contacts/theo/clients/ghost",
        ]
      )
      #expect(real.validation.ok && real.validation.chatsChecked == 5)
    }
  }

  @Test("A second run writes nothing, and a contact that is there stays as it is")
  func secondRun() async throws {
    try await withAdministration { world in
      try await world.people()
      try await world.db.document("contacts/tina/clients/carl").set(contact("charles", 5))
      let first = try await world.migrateReally()
      #expect(first.counts.created == 4 && first.counts.existing == 1)
      #expect(try await world.contacts()["contacts/tina/clients/carl"] == contact("charles", 5))

      world.faults.decide(nil)
      let second = try await world.migrateReally()
      #expect(second.contacts.isEmpty && second.counts.existing == 5)
      #expect(world.faults.commits == 0)
    }
  }

  @Test("A run that ends between two writes is resumed behind them", arguments: 1...8)
  func crash(commit: Int) async throws {
    // The first run:  claim · theo's contacts · checkpoint · tina's contacts · checkpoint · …
    //                 from commit number `commit` on the database is gone
    try await withAdministration { world in
      try await world.people()
      let plan = try await world.migrate()
      world.faults.decide { $0 < commit ? .none() : .refused }
      await #expect(throws: CallableError.self) { try await world.migrateReally() }
      let before = try await world.contacts()
      let left = try await world.db.document("migrationCheckpoints/migrateExistingChats").get()
      world.faults.decide(nil)
      let reply = try await world.migrateReally()

      let cursor = reply.resumedAfter.map { FirestoreValue.string($0) } ?? .null
      #expect((left["cursor"] ?? .null) == cursor)
      #expect(reply.counts.existing == before.count)
      #expect(reply.counts.created + before.count == plan.counts.created)
      #expect(reply.counts.trainers == 3 && reply.validation == plan.validation)
      #expect(
        try await world.contacts()
          == Dictionary(uniqueKeysWithValues: plan.contacts.map { ($0.path, $0.data) })
      )
      let done = try await world.db.document("migrationCheckpoints/migrateExistingChats").get()
      #expect(done["status"] == .string("done"))
    }
  }

  @Test("Writes whose answers are lost are counted once, and the run goes on")
  func lostAnswers() async throws {
    try await withAdministration { world in
      try await world.people()
      let plan = try await world.migrate()
      // Claiming is not tried again: nothing is written yet.
      world.faults.decide { $0.isMultiple(of: 3) || $0 == 1 ? .none() : .unheard }
      let reply = try? await world.migrateReally()
      world.faults.decide(nil)
      let last = try await world.migrateReally()

      let created = (reply?.counts.created ?? 0) + last.counts.created
      #expect(created <= plan.counts.created)
      #expect(try await world.contacts().count == plan.counts.created)
      #expect(last.validation.ok)
    }
  }

  @Test("A contact that somebody makes meanwhile stays, and the others are written")
  func madeMeanwhile() async throws {
    try await withAdministration { world in
      try await world.people()
      let db = world.db
      let theirs = contact("charles", 5)
      // Commit 1 claims the checkpoint; 2 are the contacts of the first trainer.
      world.faults.decide { number in
        .none {
          if number == 2 { try await db.document("contacts/theo/clients/carl").create(theirs) }
        }
      }
      let reply = try await world.migrateReally()

      #expect(reply.counts.created == 4 && reply.counts.existing == 1)
      #expect(try await world.contacts()["contacts/theo/clients/carl"] == theirs)
      #expect(try await world.contacts().count == 5)
    }
  }

  @Test("Runs at once write every contact once")
  func concurrentRuns() async throws {
    try await withAdministration { world in
      try await world.people()
      for number in 0..<40 {
        try await world.user("client\(number)", "client")
        try await world.chat("x\(number)", ["tina", "client\(number)"])
      }
      let replies = try await withThrowingTaskGroup(of: MigrateExistingChatsReply.self) { group in
        for _ in 0..<3 { group.addTask { try await world.migrateReally() } }
        return try await group.reduce(into: []) { $0.append($1) }
      }

      #expect(replies.allSatisfy { $0.validation.ok && $0.counts.errors == 0 })
      #expect(replies.allSatisfy { $0.counts.created + $0.counts.existing == 45 })
      #expect(try await world.contacts().count == 45)
    }
  }

  @Test("A trainer in more chats than a page, with more clients than a batch, gets them all")
  func manyChats() async throws {
    try await withAdministration { world in
      try await world.user("tina", "trainer")
      for number in 0..<105 {
        try await world.user("client\(number)", "client")
        for copy in 0..<3 {
          try await world.chat("x\(number)-\(copy)", ["tina", "client\(number)"])
        }
      }
      let dry = try await world.migrate()
      let real = try await world.migrateReally()

      #expect(dry.counts.created == 105 && real.contacts == dry.contacts)
      #expect(try await world.contacts().count == 105)
      #expect(real.validation.chatsChecked == 315 && real.validation.ok)
    }
  }

  @Test("What is malformed is reported, and the rest is migrated")
  func malformed() async throws {
    try await withAdministration { world in
      try await world.people()
      try await world.user("nemo", "client", name: " ", email: "")
      try await world.user("mail", "client", name: "", email: "mail@psst.app")
      try await world.user("boss", "admin")
      try await world.chat("n1", ["theo", "nemo"])
      try await world.chat("n2", ["theo", "mail"])
      try await world.chat("n3", ["gone", "cora"])
      try await world.db.document("chats/b1").set(["members": "tina"])
      try await world.db.document("chats/b2").set(["members": ["tina", 7, "a/b", ""]])
      try await world.db.document("contacts/tina/clients/nobody").set(contact("nobody", 1))
      let reply = try await world.migrateReally()

      #expect(Set(reply.errors.map(\.path)) == ["chats/b1", "chats/b2"])
      let skipped = Set(reply.skips.map(\.path))
      #expect(skipped.isSuperset(of: ["contacts/theo/clients/nemo", "chats/n3", "users/boss"]))
      #expect(reply.counts.skipped == reply.skips.count && reply.counts.errors == 2)
      #expect(
        try await world.contacts()["contacts/theo/clients/mail"]?.displayName == "mail@psst.app"
      )
      #expect(!reply.validation.ok)
      #expect(reply.validation.contactsWithoutUser == ["contacts/tina/clients/nobody"])
      #expect(reply.validation.missingContacts == ["contacts/theo/clients/nemo"])
    }
  }

  @Test("The backup is made before the first write, and without one nothing is written")
  func backup() async throws {
    try await withAdministration(exportStatus: 503) { world in
      try await world.people()
      world.faults.decide(nil)
      let error = await #expect(throws: CallableError.self) { try await world.migrateReally() }
      #expect(error?.code == .unavailable)
      #expect(world.faults.commits == 0)
    }
    try await withAdministration(backup: .none) { world in
      try await world.people()
      world.faults.decide(nil)
      let error = await #expect(throws: CallableError.self) { try await world.migrateReally() }
      #expect(error?.code == .failedPrecondition)
      #expect(error?.message.contains("PSST_BACKUP_LOCATION") == true)
      #expect(world.faults.commits == 0)
    }
    try await withAdministration(backup: .made(location: "gs://b/x")) { world in
      let reply = try await world.migrateReally()
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
    try await withAdministration { world in
      try await world.people()
      for confirm in [nil, "", "yes", "MIGRATE"] {
        let error = await #expect(throws: CallableError.self) {
          try await world.migrate(dryRun: false, confirm: confirm, as: token)
        }
        #expect(error?.code == code)
      }
      #expect(try await world.contacts().isEmpty)
    }
  }

  @Test("Lists are bounded, and the reply says so")
  func bounds() {
    // An entry takes a hundred bytes beside its text.
    var list = BoundedList<String>(bytesMax: 250)
    for text in ["a", "b", "c"] { list.append(text, bytes: 1) }
    #expect(list.elements == ["a", "b"] && list.isTruncated)
  }
}
