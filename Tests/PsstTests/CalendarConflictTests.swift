import FunctionsRuntime
import FunctionsTesting
import OpenAIStub
@testable import PsstFunctions
import PsstModels
@testable import PsstServices
import Testing

@Suite("detectCalendarConflicts")
struct CalendarConflictTests {
  @Test("Two events that overlap bring one reminder, due a day before, in the trainer's time")
  func overlap() async throws {
    try await ProactiveScene.run { world in
      try await world.put("users/tina/preferences/assistant", ["timeZone": "Asia/Tokyo"])
      try await world.event("e1", "Knee\nwork", 9...11)
      try await world.event("e2", " ", 10...12)
      let reminder = try #require(try await world.reminders().only)
      #expect(
        reminder["text"]
          == .string(#""Knee work" and An event without a title overlap on 2100-05-01 at 19:00."#)
      )
      #expect(reminder["dueDate"] == .timestamp(Scene.hour(9 - 24)))
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
    try await ProactiveScene.run { world in
      try await world.event("e1", "One", 9...11)
      try await world.event("e2", "Two", hours, of: trainer, status: status)
      #expect(try await world.reminders().isEmpty)
      try await world.event("e3", "Three", 10...11)
      #expect(try await world.reminders().count == 1)
    }
  }

  @Test("An event of many days overlaps with each event within it")
  func longEvent() async throws {
    try await ProactiveScene.run { world in
      try await world.event("long", "Holidays", 0...24 * 30)
      try await world.event("e1", "First", 1...2)
      try await world.event("e2", "Last", 24 * 29...24 * 29 + 1)
      try await world.event("e3", "Before", -2...0)
      #expect(try await world.reminders().count == 2)
    }
  }

  @Test("What is over brings no reminder")
  func past() async throws {
    try await ProactiveScene.run { world in
      let now = world.suite.clock.now.microseconds
      for (id, hours) in [("e1", -5...(-1)), ("e2", -4...(-2)), ("e3", -3...2), ("e4", 1...3)]
        as [(String, ClosedRange<Int64>)]
      {
        try await world.put(
          "calendar/tina/events/\(id)",
          [
            "title": "x", "status": "scheduled",
            "startTime": .value(Timestamp(microseconds: now + hours.lowerBound * 3_600_000_000)),
            "endTime": .value(Timestamp(microseconds: now + hours.upperBound * 3_600_000_000)),
          ]
        )
        try await world.suite.settle()
      }
      #expect(try await world.reminders().count == 1)
    }
  }

  @Test("A reminder that is completed or deleted does not come back for the same overlap")
  func once() async throws {
    try await ProactiveScene.run { world in
      try await world.event("e1", "One", 9...11)
      try await world.event("e2", "Two", 10...12)
      try await world.event("e3", "Three", 11...12)
      let ids = try await world.reminders().map(\.id)
      #expect(ids.count == 2)
      try await world.suite.firestore.document("reminders/\(ids[0])").delete()
      try await world.suite.firestore.document("reminders/\(ids[1])").update(["completed": true])
      try await world.suite.redeliver(world.functions.detectCalendarConflicts)
      for id in ["e1", "e2", "e3"] { try await world.event(id, "Other \(id)", hours[id] ?? 0...0) }
      let left = try await world.reminders()
      #expect(left.map(\.id) == [ids[1]] && left.only?["completed"] == .boolean(true))
    }
  }

  private let hours: [String: ClosedRange<Int64>] = ["e1": 9...11, "e2": 10...12, "e3": 11...12]

  @Test("A reminder goes with its overlap, unless the trainer has completed or changed it")
  func withdrawn() async throws {
    try await ProactiveScene.run { world in
      for change in ["move", "cancel", "delete"] {
        for mark in [[:], ["completed": true], ["text": "Ask Carl"]] as [[String: FieldValue]] {
          try await world.event("e1", "One", 9...11)
          try await world.event("e2", "Two", 10...12)
          let reminder = try #require(try await world.reminders().only)
          if !mark.isEmpty { try await reminder.reference.update(mark) }
          switch change {
          case "move": try await world.event("e2", "Two", 14...15)
          case "cancel": try await world.event("e2", "Two", 10...12, status: "cancelled")
          default: try await world.suite.firestore.document("calendar/tina/events/e2").delete()
          }
          try await world.suite.settle()
          #expect(try await world.reminders().isEmpty == mark.isEmpty, "\(change) \(mark)")
          #expect(try await world.suite.firestore.collection("reminderCauses").get().isEmpty)
          try await reminder.reference.delete()
        }
      }
    }
  }

  @Test("A new title is in the reminder, unless the trainer has changed its text")
  func newTitle() async throws {
    try await ProactiveScene.run { world in
      try await world.event("e1", "One", 9...11)
      try await world.event("e2", "Two", 10...12)
      try await world.event("e2", "Three", 10...12)
      let reminder = try #require(try await world.reminders().only)
      #expect(reminder["text"] == .string(#""One" and "Three" overlap on 2100-05-01 at 10:00."#))
      try await reminder.reference.update(["text": "Ask Carl"])
      try await world.event("e2", "Four", 10...12)
      #expect(try await world.reminders().only?["text"] == .string("Ask Carl"))
    }
  }

  @Test("Events that cannot be read hide no overlap of the others")
  func malformed() async throws {
    try await ProactiveScene.run { world in
      let bad: [[String: FieldValue]] = [
        [:], ["status": "scheduled", "startTime": 7, "endTime": "x"],
        ["status": 7, "startTime": .value(Scene.hour(9)), "endTime": .value(Scene.hour(11))],
        [
          "status": "scheduled", "title": .value([1]), "trainerId": 9,
          "startTime": .value(Scene.hour(20)), "endTime": .value(Scene.hour(11)),
        ],
      ]
      for (number, fields) in bad.enumerated() {
        try await world.put("calendar/tina/events/bad\(number)", fields)
      }
      try await world.event("e1", "One", 9...11)
      try await world.event("e2", "Two", 10...12)
      #expect(try await world.reminders().count == 1)
      #expect(try await world.suite.deliveries().allSatisfy { $0.state == .succeeded })
    }
  }

  @Test("An event among thousands is compared with a bounded number, and the log says so")
  func many() async throws {
    try await ProactiveScene.run(faults: .inOrder) { world in
      for number in 0..<120 as Range<Int64> {
        try await world.scene.event("a\(number)", "x", hours: number...number + 1)
      }
      try await world.suite.settle()
      #expect(try await world.reminders().isEmpty)
      try await world.event("long", "Holidays", 0...200)
      #expect(try await world.reminders().count == 100)
      let lines = world.suite.logs(of: world.functions.detectCalendarConflicts)
      #expect(lines.contains { $0.message.contains("more events than are compared") })
      try await world.suite.firestore.document("calendar/tina/events/long").delete()
      try await world.suite.settle()
      #expect(try await world.reminders().isEmpty)
    }
  }

  @Test("An event with any number of reminders leaves none of them behind")
  func manyCauses() async throws {
    try await ProactiveScene.run(faults: .inOrder) { world in
      try await world.event("e1", "One", 9...11)
      try await world.causes(of: "e1", 0..<1100) { "\($0)" }
      try await world.suite.firestore.document("calendar/tina/events/e1").delete()
      try await world.suite.settle()

      #expect(try await world.reminders().isEmpty)
      #expect(try await world.suite.firestore.collection("reminderCauses").get().isEmpty)
    }
  }

  @Test("A reminder that was deleted does not come back, however many others are looked at")
  func onceAmongMany() async throws {
    try await ProactiveScene.run(faults: .inOrder) { world in
      try await world.event("e1", "One", 9...11)
      try await world.event("e2", "Two", 10...12)
      let reminder = try #require(try await world.reminders().only)
      try await reminder.reference.delete()
      // Pages before and behind it.
      try await world.causes(of: "e1", 0..<500) { $0 < 250 ? "!\($0)" : "~\($0)" }
      try await world.event("e1", "Other", 9...11)

      #expect(try await world.reminders().isEmpty)
      let causes = try await world.suite.firestore.collection("reminderCauses").get()
      #expect(causes.map(\.id) == [reminder.id])
    }
  }
}

/// Psst's functions that act without a request by a user.
struct ProactiveScene: Sendable {
  let scene: Scene
  var suite: FunctionsSuite { scene.suite }
  var functions: MessageFunctions { scene.functions }

  static func run(
    faults: DeliveryFaults? = nil,
    _ test: (ProactiveScene) async throws -> Void
  ) async throws {
    try await withFunctions(Self.app, deliveryFaults: faults) { world in
      MessageFunctions(
        services: MessageServices(
          firestore: world.firestore,
          settings: PsstSettings(
            embedding: .lexical,
            vectors: VectorSettings(host: ProviderStandIn.host)
          ),
          http: world.http,
          retries: ServiceRetries(attemptsMax: 1, now: { world.now.date })
        )
      )
    } test: { suite, functions in
      let scene = Scene(suite: suite, functions: functions, model: OpenAIStandIn())
      try await scene.populate()
      try await test(ProactiveScene(scene: scene))
    }
  }

  private static func app(_ functions: MessageFunctions) -> FunctionsApp {
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
    try await scene.event(id, title, hours: hours, of: trainer, status: status)
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
            dueDate: Scene.hour(0),
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
