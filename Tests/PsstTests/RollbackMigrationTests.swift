import FirestoreClient
import FunctionsRuntime
import FunctionsTesting
import PsstBackend
import PsstFunctions
import PsstModels
import Testing

@Suite("rollbackMigration")
struct RollbackMigrationTests {
  private func contact(_ id: String, source: String? = nil) -> Client {
    Client(
      clientId: id,
      displayName: id,
      email: "\(id)@psst.app",
      addedAt: Timestamp(microseconds: 0),
      source: source
    )
  }

  @Test("A rollback removes what its run made, and nothing else; a dry one says what")
  func removes() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      let earlier = try await fixture.migrateReally(["olga"])
      try await fixture.db.document("contacts/tina/clients/cora").set(contact("cora"))
      let run = try await fixture.migrateReally().run
      // Collections of the same name elsewhere contain no contacts.
      let profile = fixture.db.document("clientProfiles/tina/clients/carl")
      try await profile.set(["source": .value(run)])
      let dry = try await fixture.rollBack(run, dryRun: nil, confirm: nil)
      #expect(dry.dryRun && dry.run == run && dry.counts.removed == 3 && dry.kept.isEmpty)
      #expect(try await fixture.db.document("contacts/theo/clients/carl").get().exists)

      let real = try await fixture.rollBack(run)
      #expect(!real.dryRun && real.removed == dry.removed && real.counts == dry.counts)
      #expect(
        real.removed == [
          "contacts/theo/clients/carl", "contacts/theo/clients/cora", "contacts/tina/clients/carl",
        ]
      )
      #expect(try await profile.get().exists)
      try await profile.delete()
      let left = try await fixture.contacts()
      #expect(left.keys.sorted() == ["contacts/olga/clients/cora", "contacts/tina/clients/cora"])
      #expect(left["contacts/olga/clients/cora"]?.source == earlier.run)
      #expect(try await !fixture.db.document("leases/migration").get().exists)

      // The trainer has removed no one, so a migration creates the contacts again.
      #expect(try await fixture.migrateReally().counts.created == 3)
    }
  }

  @Test("What somebody has touched since stays, and the reply says why; a message touches nothing")
  func touched() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      let run = try await fixture.migrateReally().run
      try await fixture.suite.clock.advance(by: .seconds(1))
      func contact(_ path: String) -> DocumentReference { fixture.db.document("contacts/\(path)") }
      // A message, a new name, a new address, and the trainer as the new source.
      try await contact("tina/clients/carl").update(["lastContactedAt": .serverTimestamp])
      try await contact("tina/clients/cora").update(["displayName": "Cora from the gym"])
      try await contact("theo/clients/carl").update(["email": "carl@gym.app"])
      try await contact("theo/clients/cora").update(["source": "trainer"])
      let dry = try await fixture.rollBack(run, dryRun: true)
      let real = try await fixture.rollBack(run)

      #expect(dry.removed == real.removed && dry.kept == real.kept && dry.counts == real.counts)
      #expect(real.removed == ["contacts/olga/clients/cora", "contacts/tina/clients/carl"])
      #expect(
        real.kept.map(\.path) == ["contacts/theo/clients/carl", "contacts/tina/clients/cora"]
      )
      #expect(real.kept.allSatisfy { $0.reason.contains("it was changed") })
      #expect(
        try await fixture.contacts().keys.sorted() == [
          "contacts/theo/clients/carl", "contacts/theo/clients/cora", "contacts/tina/clients/cora",
        ]
      )
    }
  }

  @Test("A client's own new name keeps no contact; a change after the account is gone does")
  func changedClient() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      let run = try await fixture.migrateReally().run
      try await fixture.suite.clock.advance(by: .seconds(1))
      try await fixture.user("carl", "client", name: "Charles")
      try await fixture.db.document("users/cora").delete()
      try await fixture.db.document("contacts/tina/clients/cora").update(["displayName": "C."])
      let reply = try await fixture.rollBack(run)

      #expect(reply.counts.removed == 4)
      #expect(reply.kept.map(\.path) == ["contacts/tina/clients/cora"])
      #expect(reply.kept.first?.reason.contains("no user to compare") == true)
    }
  }

  @Test("A contact that is changed or removed in the moment before is left alone")
  func changedMeanwhile() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      let run = try await fixture.migrateReally().run
      try await fixture.suite.clock.advance(by: .seconds(1))
      let db = fixture.db
      // Transaction 1 takes the lease, 2 removes contacts.
      fixture.faults.beforeTransaction { number in
        guard number == 2 else { return }
        try await db.document("contacts/tina/clients/carl").update(["displayName": "C."])
        try await db.document("contacts/tina/clients/cora").delete()
      }
      let reply = try await fixture.rollBack(run)

      #expect(reply.counts.removed == 3)
      #expect(reply.kept.map(\.path) == ["contacts/tina/clients/carl"])
      #expect(
        try await fixture.contacts().keys.sorted() == ["contacts/tina/clients/carl"]
      )
    }
  }

  @Test("Removals without an answer are counted once; one that is killed goes on when called again")
  func faults() async throws {
    try await withAdministration { fixture in
      try await fixture.user("tina", "trainer")
      for number in 100..<250 {
        try await fixture.user("client\(number)", "client")
        try await fixture.chat("x\(number)", ["tina", "client\(number)"])
      }
      let run = try await fixture.migrateReally().run
      // lease · 100 contacts, response lost · retry · the database fails
      fixture.faults.decide { $0 == 2 ? .unheard : $0 < 4 ? .none() : .refused }
      await #expect(throws: CallableError.self) { try await fixture.rollBack(run) }
      #expect(try await fixture.contacts().count == 50)
      try await fixture.outliveLeases()
      // lease · 50 contacts, response lost · retry
      fixture.faults.decide { $0 == 2 ? .unheard : .none() }
      let reply = try await fixture.rollBack(run)

      #expect(reply.counts.removed == 50 && reply.removed.count == 50 && reply.kept.isEmpty)
      #expect(try await fixture.contacts().isEmpty)
    }
  }

  @Test("A contact that the trainer makes again while an answer is lost is not called removed")
  func madeAgainMeanwhile() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      let run = try await fixture.migrateReally().run
      let path = "contacts/tina/clients/carl"
      let db = fixture.db
      let theirs = contact("carl", source: "trainer")
      // lease · all contacts, response lost · retry
      fixture.faults.decide { $0 == 2 ? .unheard : .none() }
      fixture.faults.beforeTransaction { number in
        if number == 3 { try await db.document(path).set(theirs) }
      }
      let reply = try await fixture.rollBack(run)

      #expect(reply.counts.removed == 4 && !reply.removed.contains(path))
      #expect(try await fixture.contacts() == [path: theirs])
    }
  }

  @Test("An unknown run, or one that is already rolled back, is not found")
  func unknown() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      let run = try await fixture.migrateReally().run
      _ = try await fixture.rollBack(run)
      for unknown in [run, "nothing"] {
        for dryRun in [true, false] {
          let error = await #expect(throws: CallableError.self) {
            try await fixture.rollBack(unknown, dryRun: dryRun)
          }
          #expect(error?.code == .notFound)
          #expect(error?.message.contains(unknown) == true)
        }
      }
      #expect(try await !fixture.db.document("leases/migration").get().exists)
    }
  }

  @Test("Beside a migration there is no rollback")
  func heldLease() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      let run = try await fixture.migrateReally().run
      try await fixture.lease("migration")
      let error = await fixture.refusal { try await fixture.rollBack(run) } as? CallableError
      #expect(error?.code == .aborted)
      #expect(error?.message.contains("held by the run other") == true)
      #expect(try await fixture.contacts().count == 5)
    }
  }

  @Test(
    "What can be no run is refused, above all what would be the trainers' own contacts",
    arguments: ["", "trainer", String(repeating: "x", count: 101)]
  )
  func senselessRun(run: String) async throws {
    try await withAdministration { fixture in
      let path = "contacts/tina/clients/carl"
      try await fixture.db.document(path).set(contact("carl", source: "trainer"))
      for dryRun in [true, false] {
        let error = await #expect(throws: CallableError.self) {
          try await fixture.rollBack(run, dryRun: dryRun)
        }
        #expect(error?.code == .invalidArgument)
      }
      #expect(try await fixture.contacts().keys.sorted() == [path])
    }
  }

  @Test(
    "Only administrators may, and a real rollback only with the word",
    arguments: [
      (TestToken.anonymous, StatusCode.unauthenticated), ("tina", .permissionDenied),
      (.user("tina", claims: ["admin": .boolean(true)]), .invalidArgument),
      (.admin, .invalidArgument),
    ]
  )
  func access(token: TestToken, code: StatusCode) async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      let run = try await fixture.migrateReally().run
      for confirm in [nil, "", "migrate", "ROLLBACK"] {
        let error = await #expect(throws: CallableError.self) {
          try await fixture.rollBack(run, confirm: confirm, as: token)
        }
        #expect(error?.code == code)
      }
      #expect(try await fixture.contacts().count == 5)
    }
  }
}
