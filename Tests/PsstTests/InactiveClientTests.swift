import Foundation
import FunctionsRuntime
import FunctionsTesting
@testable import PsstFunctions
import PsstModels
@testable import PsstBackend
@testable import PsstServices
import Testing

@Suite("remindInactiveClients")
struct InactiveClientTests {
  @Test("A client without messages for two weeks causes one reminder for each silence")
  func silence() async throws {
    try await ProactiveFixture.run { fixture in
      try await fixture.contact("carl", days: 14, lastDays: nil)
      try await fixture.contact("cora", days: 100, lastDays: 13)
      for _ in 1...3 { try await fixture.remind() }
      let first = try #require(try await fixture.reminders().only)
      #expect(first["trainerId"] == .string("tina") && first["createdBy"] == .string("ai"))
      #expect(
        first["text"] == .string("Carl and you have not written to each other for 14 days.")
      )
      #expect(first["completed"] == .boolean(false))

      try await first.reference.update(["completed": true])
      try await fixture.suite.clock.advance(by: .seconds(86_400))
      try await fixture.remind()
      #expect(try await fixture.reminders().count == 2)
      for reminder in try await fixture.reminders() { try await reminder.reference.delete() }
      try await fixture.remind()
      #expect(try await fixture.reminders().isEmpty)

      let now = fixture.suite.clock.now
      try await fixture.suite.firestore.document("chats/c1/messages/m1")
        .set(Message(text: "Hello", senderID: "carl", timestamp: now))
      try await fixture.suite.settle()
      try await fixture.remind()
      #expect(try await fixture.reminders().isEmpty)
      try await fixture.suite.clock.advance(by: .seconds(14 * 86_400 + 60))
      try await fixture.remind()
      #expect(try await fixture.reminders().count == 1)
    }
  }

  @Test(
    "The days of silence are the trainer's, within sane bounds",
    arguments: [
      (nil, 14), (.value(3), 3), (.value(0), 1), (.value(-5), 1), (.value(1_000_000), 365),
      (.value(Int.min), 1), (.value("soon"), 14),
    ] as [(FieldValue?, Int)]
  )
  func days(wish: FieldValue?, days: Int) async throws {
    try await ProactiveFixture.run { fixture in
      if let wish {
        try await fixture.put("users/tina/preferences/assistant", ["inactiveDays": wish])
      }
      try await fixture.contact("carl", days: days - 1)
      try await fixture.contact("cora", days: days)
      try await fixture.remind()
      #expect(try await fixture.reminders().only?["text"]?.text?.hasPrefix("Cora") == true)
    }
  }

  @Test("Malformed contacts, preferences and trainers stop no other reminder")
  func malformed() async throws {
    try await ProactiveFixture.run { fixture in
      let bad: [[String: FieldValue]] = [
        [:], ["addedAt": "x"], ["addedAt": .value(fixture.time(days: 50)), "lastContactedAt": 7],
        ["lastContactedAt": .value(fixture.time(days: 50))],
      ]
      for (number, fields) in bad.enumerated() {
        try await fixture.put("contacts/tina/clients/a\(number)", fields)
      }
      try await fixture.put("users/weird", ["role": "coach"])
      try await fixture.put(
        "users/tina/preferences/assistant",
        ["tone": 7, "timeZone": .value([1])]
      )
      for trainer in ["weird", "carl", "nobody", "tina", "tom"] {
        try await fixture.contact("cora", of: trainer, days: 50)
      }
      try await fixture.put(
        "contacts/tom/clients/nameless",
        ["addedAt": .value(fixture.time(days: 50)), "displayName": 7]
      )
      try await fixture.remind()
      let reminders = try await fixture.reminders()
      #expect(
        reminders.map { $0["trainerId"]?.text ?? "" }.sorted() == ["tina", "tom", "tom"]
      )
      #expect(reminders.contains { $0["text"]?.text?.hasPrefix("A client and") == true })
    }
  }

  @Test("Trainers and contacts are read in pages, each once")
  func pages() async throws {
    try await ProactiveFixture.run(faults: .inOrder) { fixture in
      for number in 0..<230 { try await fixture.contact("client\(number)", days: 20) }
      for number in 0..<120 {
        try await fixture.put("users/trainer\(number)", ["role": "trainer"])
        try await fixture.contact("carl", of: "trainer\(number)", days: 20)
      }
      try await fixture.remind()
      #expect(try await fixture.reminders().count == 350)
      let line = fixture.suite.logs(of: fixture.functions.remindInactiveClients).last
      #expect(line?.metadata["trainers"] == "121" && line?.metadata["contacts"] == "350")
    }
  }

  @Test("Two runs at once, and one that is repeated, write each reminder once")
  func twice() async throws {
    try await ProactiveFixture.run { fixture in
      for number in 0..<5 { try await fixture.contact("client\(number)", days: 20) }
      let inactive = fixture.functions.services.inactiveClients
      let now = fixture.suite.clock.now
      let reports = try await withThrowingTaskGroup(of: InactiveClients.Report.self) { group in
        for _ in 0..<4 { group.addTask { try await inactive.remind(at: now) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(reports.map(\.reminded).reduce(0, +) == 5)
      #expect(reports.allSatisfy { $0.silent == 5 && $0.failed == 0 })
      #expect(try await fixture.reminders().count == 5)
    }
  }

  @Test("A trainer whose contacts the database does not give is counted, and the run fails")
  func database() async throws {
    try await ProactiveFixture.run { fixture in
      for trainer in ["tina", "tom"] { try await fixture.contact("carl", of: trainer, days: 20) }
      let faulty = FaultyFirestore(fixture.suite.firestore)
      let inactive = InactiveClients(firestore: faulty.firestore, documents: DocumentReader())
      faulty.refuseQueries(after: 1)
      let report = try await inactive.remind(at: fixture.suite.clock.now)
      #expect(report.failed == 1 && report.reminded == 1)
      faulty.refuseQueries(after: nil)
      #expect(try await inactive.remind(at: fixture.suite.clock.now).reminded == 1)
    }
  }
}

extension ProactiveFixture {
  /// Returns the time `days` days ago.
  func time(days: Int) -> Timestamp {
    Timestamp(microseconds: suite.clock.now.microseconds - Int64(days) * 86_400_000_000)
  }

  /// Writes a contact created `days` and last contacted `lastDays` days ago.
  func contact(
    _ client: String,
    of trainer: String = "tina",
    days: Int,
    lastDays: Int? = nil
  ) async throws {
    try await Client.reference(in: suite.firestore, trainerID: trainer, clientID: client).set(
      Client(
        clientId: client,
        displayName: client.capitalized,
        email: "\(client)@psst.app",
        addedAt: time(days: days),
        lastContactedAt: lastDays.map { time(days: $0) }
      )
    )
  }

  /// Runs the schedule now.
  func remind() async throws {
    let run = try await suite.runSchedule(functions.remindInactiveClients)
    #expect(run.state == .succeeded)
  }
}

extension FirestoreValue {
  fileprivate var text: String? { if case .string(let text) = self { text } else { nil } }
}
