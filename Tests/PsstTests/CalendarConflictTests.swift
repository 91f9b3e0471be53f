import FunctionsRuntime
import FunctionsTesting
import OpenAIStub
@testable import PsstFunctions
import PsstModels
@testable import PsstBackend
import Testing

@Suite("detectCalendarConflicts")
struct CalendarConflictTests {
  @Test("Two events that overlap bring one reminder, due a day before, in the trainer's time")
  func overlap() async throws {
    try await ProactiveFixture.run { fixture in
      try await fixture.put("users/tina/preferences/assistant", ["timeZone": "Asia/Tokyo"])
      try await fixture.event("e1", "Knee\nwork", 9...11)
      try await fixture.event("e2", " ", 10...12)
      let reminder = try #require(try await fixture.reminders().only)
      #expect(
        reminder["text"]
          == .string(#""Knee work" and An event without a title overlap on 2100-05-01 at 19:00."#)
      )
      #expect(reminder["dueDate"] == .timestamp(ProfileFixture.hour(9 - 24)))
      #expect(reminder["trainerId"] == .string("tina") && reminder["createdBy"] == .string("ai"))
      #expect(reminder["completed"] == .boolean(false))
    }
  }

  @Test(
    "Events that touch, take no time, do not take place or are another's overlap with nothing",
    arguments: [
      ("tina", 11...12, "scheduled"), ("tina", 8...9, "scheduled"), ("tina", 10...10, "scheduled"),
      ("tina", 9...11, "cancelled"), ("tina", 9...11, "completed"), ("tina", 9...11, "unheard of"),
      ("tom", 9...11, "scheduled"),
    ] as [(String, ClosedRange<Int64>, String)]
  )
  func noOverlap(trainer: String, hours: ClosedRange<Int64>, status: String) async throws {
    try await ProactiveFixture.run { fixture in
      try await fixture.event("e1", "One", 9...11)
      try await fixture.event("e2", "Two", hours, of: trainer, status: status)
      #expect(try await fixture.reminders().isEmpty)
      try await fixture.event("e3", "Three", 10...11)
      #expect(try await fixture.reminders().count == 1)
    }
  }

  @Test("An event of many days overlaps with each event within it")
  func longEvent() async throws {
    try await ProactiveFixture.run { fixture in
      try await fixture.event("long", "Holidays", 0...24 * 30)
      try await fixture.event("e1", "First", 1...2)
      try await fixture.event("e2", "Last", 24 * 29...24 * 29 + 1)
      try await fixture.event("e3", "Before", -2...0)
      #expect(try await fixture.reminders().count == 2)
    }
  }

  @Test("What is over brings no reminder")
  func past() async throws {
    try await ProactiveFixture.run { fixture in
      let now = fixture.suite.clock.now.microseconds
      for (id, hours) in [("e1", -5...(-1)), ("e2", -4...(-2)), ("e3", -3...2), ("e4", 1...3)]
        as [(String, ClosedRange<Int64>)]
      {
        try await fixture.put(
          "calendar/tina/events/\(id)",
          [
            "title": "x", "status": "scheduled",
            "startTime": .value(Timestamp(microseconds: now + hours.lowerBound * 3_600_000_000)),
            "endTime": .value(Timestamp(microseconds: now + hours.upperBound * 3_600_000_000)),
          ]
        )
        try await fixture.suite.settle()
      }
      #expect(try await fixture.reminders().count == 1)
    }
  }

  @Test("A reminder that is completed or deleted does not come back for the same overlap")
  func once() async throws {
    try await ProactiveFixture.run { fixture in
      try await fixture.event("e1", "One", 9...11)
      try await fixture.event("e2", "Two", 10...12)
      try await fixture.event("e3", "Three", 11...12)
      let ids = try await fixture.reminders().map(\.id)
      #expect(ids.count == 2)
      try await fixture.suite.firestore.document("reminders/\(ids[0])").delete()
      try await fixture.suite.firestore.document("reminders/\(ids[1])").update(["completed": true])
      try await fixture.suite.redeliver(fixture.functions.detectCalendarConflicts)
      for id in ["e1", "e2", "e3"] {
        try await fixture.event(id, "Other \(id)", hours[id] ?? 0...0)
      }
      let left = try await fixture.reminders()
      #expect(left.map(\.id) == [ids[1]] && left.only?["completed"] == .boolean(true))
    }
  }

  private let hours: [String: ClosedRange<Int64>] = ["e1": 9...11, "e2": 10...12, "e3": 11...12]

  @Test("A reminder goes with its overlap, unless the trainer has completed or changed it")
  func withdrawn() async throws {
    try await ProactiveFixture.run { fixture in
      for change in ["move", "cancel", "delete"] {
        for mark in [[:], ["completed": true], ["text": "Ask Carl"]] as [[String: FieldValue]] {
          try await fixture.event("e1", "One", 9...11)
          try await fixture.event("e2", "Two", 10...12)
          let reminder = try #require(try await fixture.reminders().only)
          if !mark.isEmpty { try await reminder.reference.update(mark) }
          switch change {
          case "move": try await fixture.event("e2", "Two", 14...15)
          case "cancel": try await fixture.event("e2", "Two", 10...12, status: "cancelled")
          default: try await fixture.suite.firestore.document("calendar/tina/events/e2").delete()
          }
          try await fixture.suite.settle()
          #expect(try await fixture.reminders().isEmpty == mark.isEmpty, "\(change) \(mark)")
          #expect(try await fixture.suite.firestore.collection("reminderCauses").get().isEmpty)
          try await reminder.reference.delete()
        }
      }
    }
  }

  @Test("A new title is in the reminder, unless the trainer has changed its text")
  func newTitle() async throws {
    try await ProactiveFixture.run { fixture in
      try await fixture.event("e1", "One", 9...11)
      try await fixture.event("e2", "Two", 10...12)
      try await fixture.event("e2", "Three", 10...12)
      let reminder = try #require(try await fixture.reminders().only)
      #expect(reminder["text"] == .string(#""One" and "Three" overlap on 2100-05-01 at 10:00."#))
      try await reminder.reference.update(["text": "Ask Carl"])
      try await fixture.event("e2", "Four", 10...12)
      #expect(try await fixture.reminders().only?["text"] == .string("Ask Carl"))
    }
  }

  @Test("Events that cannot be read hide no overlap of the others")
  func malformed() async throws {
    try await ProactiveFixture.run { fixture in
      let bad: [[String: FieldValue]] = [
        [:], ["status": "scheduled", "startTime": 7, "endTime": "x"],
        [
          "status": 7, "startTime": .value(ProfileFixture.hour(9)),
          "endTime": .value(ProfileFixture.hour(11)),
        ],
        [
          "status": "scheduled", "title": .value([1]), "trainerId": 9,
          "startTime": .value(ProfileFixture.hour(20)), "endTime": .value(ProfileFixture.hour(11)),
        ],
      ]
      for (number, fields) in bad.enumerated() {
        try await fixture.put("calendar/tina/events/bad\(number)", fields)
      }
      try await fixture.event("e1", "One", 9...11)
      try await fixture.event("e2", "Two", 10...12)
      #expect(try await fixture.reminders().count == 1)
      #expect(try await fixture.suite.deliveries().allSatisfy { $0.state == .succeeded })
    }
  }

  @Test("An event among thousands is compared with a bounded number, and the log says so")
  func many() async throws {
    try await ProactiveFixture.run(faults: .inOrder) { fixture in
      for number in 0..<120 as Range<Int64> {
        try await fixture.profiles.event("a\(number)", "x", hours: number...number + 1)
      }
      try await fixture.suite.settle()
      #expect(try await fixture.reminders().isEmpty)
      try await fixture.event("long", "Holidays", 0...200)
      #expect(try await fixture.reminders().count == 100)
      let lines = fixture.suite.logs(of: fixture.functions.detectCalendarConflicts)
      #expect(lines.contains { $0.message.contains("more events than are compared") })
      try await fixture.suite.firestore.document("calendar/tina/events/long").delete()
      try await fixture.suite.settle()
      #expect(try await fixture.reminders().isEmpty)
    }
  }

  @Test("An event with any number of reminders leaves none of them behind")
  func manyCauses() async throws {
    try await ProactiveFixture.run(faults: .inOrder) { fixture in
      try await fixture.event("e1", "One", 9...11)
      try await fixture.causes(of: "e1", 0..<1100) { "\($0)" }
      try await fixture.suite.firestore.document("calendar/tina/events/e1").delete()
      try await fixture.suite.settle()

      #expect(try await fixture.reminders().isEmpty)
      #expect(try await fixture.suite.firestore.collection("reminderCauses").get().isEmpty)
    }
  }

  @Test("A reminder that was deleted does not come back, however many others are looked at")
  func onceAmongMany() async throws {
    try await ProactiveFixture.run(faults: .inOrder) { fixture in
      try await fixture.event("e1", "One", 9...11)
      try await fixture.event("e2", "Two", 10...12)
      let reminder = try #require(try await fixture.reminders().only)
      try await reminder.reference.delete()
      // Pages before and behind it.
      try await fixture.causes(of: "e1", 0..<500) { $0 < 250 ? "!\($0)" : "~\($0)" }
      try await fixture.event("e1", "Other", 9...11)

      #expect(try await fixture.reminders().isEmpty)
      let causes = try await fixture.suite.firestore.collection("reminderCauses").get()
      #expect(causes.map(\.id) == [reminder.id])
    }
  }
}

/// Psst's functions that act without a request by a user.
struct ProactiveFixture: Sendable {
  let profiles: ProfileFixture
  var suite: FunctionsSuite { profiles.suite }
  var functions: AppFunctions { profiles.functions }

  static func run(
    faults: DeliveryFaults? = nil,
    of app: @escaping @Sendable (AppFunctions) -> FunctionsApp = Self.app,
    _ test: (ProactiveFixture) async throws -> Void
  ) async throws {
    try await withFunctions(app, deliveryFaults: faults) { environment in
      AppFunctions(
        services: BackendServices(
          firestore: environment.firestore,
          settings: PsstSettings(
            embedding: .lexical,
            vectors: VectorSettings(host: ProviderStub.host)
          ),
          http: environment.http,
          retries: ServiceRetries(attemptsMax: 1, now: { environment.now.date })
        )
      )
    } test: { suite, functions in
      let profiles = ProfileFixture(suite: suite, functions: functions, model: OpenAIModelStub())
      try await profiles.populate()
      try await test(ProactiveFixture(profiles: profiles))
    }
  }

  private static func app(_ functions: AppFunctions) -> FunctionsApp {
    FunctionsApp {
      functions.recordContact
      functions.remindInactiveClients
      functions.detectCalendarConflicts
    }
  }

  func put(_ path: String, _ fields: [String: FieldValue]) async throws {
    try await suite.firestore.document(path).set(fields)
  }

  /// Writes an event and waits until it has been compared with others.
  func event(
    _ id: String,
    _ title: String,
    _ hours: ClosedRange<Int64>,
    of trainer: String = "tina",
    status: String = "scheduled"
  ) async throws {
    try await profiles.event(id, title, hours: hours, of: trainer, status: status)
    try await suite.settle()
  }

  /// Writes reminders of overlaps of an event that are no more.
  func causes(of event: String, _ numbers: Range<Int>, id: (Int) -> String) async throws {
    let firestore = suite.firestore
    for start in stride(from: numbers.lowerBound, to: numbers.upperBound, by: 200) {
      var batch = firestore.batch()
      for number in start..<min(start + 200, numbers.upperBound) {
        let cause = ReminderCause(
          trainerId: "tina",
          text: "Overlap \(number)",
          events: ["calendar/tina/events/\(event)", "calendar/tina/events/gone\(number)"]
        )
        try batch.set(firestore.collection(ReminderCause.collection).document(id(number)), cause)
        try batch.set(
          firestore.collection(Reminder.collection).document(id(number)),
          Reminder(
            trainerId: "tina",
            text: cause.text,
            dueDate: ProfileFixture.hour(0),
            createdBy: "ai"
          )
        )
      }
      _ = try await batch.commit()
    }
  }

  func reminders() async throws -> [DocumentSnapshot] {
    Array(try await suite.firestore.collection("reminders").get())
  }
}

extension Array {
  /// The single element of a list; nil if the list has more or none.
  var only: Element? { count == 1 ? first : nil }
}
