import Foundation
import FunctionsTesting
import Testing

@Suite("Dates in a suite")
struct DateTests {
  private static let start = Date(timeIntervalSince1970: 1_767_225_600.123456)

  struct Appointment: Codable, Sendable {
    var at: Date
  }

  @Test("A date is the same as its timestamp in writes, filters, cursors and conditions")
  func firestore() async throws {
    try await withFunctions(Sample.greet, startTime: Self.start) { suite in
      let appointments = suite.firestore.collection("appointments")
      let times = (0..<3).map { Self.start.addingTimeInterval(Double($0) / 1000) }
      try await appointments.document("0").set(Appointment(at: times[0]))
      try await appointments.document("1").set(["at": .value(times[1])])
      let written = try await appointments.document("2").set(["at": times[2], "n": 1])

      let stored = try await appointments.order(by: "at").get()
      #expect(stored.map { $0["at"] } == times.map { .timestamp($0.timestamp) })
      let model: Appointment = try stored[0].data()
      #expect(model.at.timestamp == times[0].timestamp)

      func ids(_ query: DocumentQuery) async throws -> [String] { try await query.get().map(\.id) }
      let byTime = appointments.order(by: FieldPath(["at"]))
      #expect(try await ids(appointments.where("at", .greaterThan, times[0])) == ["1", "2"])
      #expect(try await ids(appointments.where(FieldPath(["at"]), .equal, times[1])) == ["1"])
      #expect(try await ids(byTime.start(after: times[0]).end(at: times[1])) == ["1"])
      #expect(try await ids(appointments.where(.documentID, .in, [stored[2].reference])) == ["2"])
      #expect(stored[2][FieldPath(["n"])] == .integer(1))

      let changed = try #require(written.updateTime?.date)
      let last = appointments.document("2")
      let error = await #expect(throws: FirestoreError.self) {
        try await last.delete(.lastUpdated(changed.addingTimeInterval(-1)))
      }
      #expect(error?.code == .failedPrecondition)
      try await last.update(["n": 2], lastUpdated: changed)
      let again = try #require(try await last.get().updateTime)
      try await last.delete(.lastUpdated(again))
      let count = try await suite.firestore.runReadOnlyTransaction(at: again.date) { transaction in
        try await transaction.get(byTime).count
      }
      #expect(count == 3)
    }
  }

  @Test("The suite's clock, tasks and events made by hand take dates")
  func times() async throws {
    let work = OnTaskDispatched<Int>("work") { $0.logger.info("\($0.data)") }
    let nightly = OnSchedule("nightly", schedule: "0 3 * * *") {
      $0.logger.info("\($0.scheduleTime)")
    }
    try await withFunctions(work, nightly, startTime: Self.start) { suite in
      #expect(suite.clock.now == Self.start.timestamp)
      let later = Self.start.addingTimeInterval(60)
      try await work.enqueue(1, at: later)
      try await suite.clock.advance(to: later.addingTimeInterval(-1))
      #expect(suite.runCount(of: work) == 0)
      try await suite.clock.advance(to: later)
      #expect(suite.runCount(of: work) == 1)
      #expect(suite.clock.now == later.timestamp)
      try await suite.deliver(ScheduleEvent(scheduleTime: later), to: nightly)
      #expect(suite.logs(of: nightly).map(\.message) == ["\(later.timestamp)"])
    }
    let event = DocumentEvent(path: "users/tina", data: 1, time: Self.start)
    #expect(event.time == Self.start.timestamp)
    let user = UserRecord(uid: "tina", creationTime: Self.start, lastSignInTime: Self.start)
    #expect(UserEvent(user: user, time: Self.start).time == user.creationTime)
    #expect(TaskRequest(data: 1, scheduledTime: Self.start).scheduledTime == user.lastSignInTime)
    #expect(
      CloudEventMessage(type: "t", data: 1, time: Self.start).time == Self.start.timestamp
    )
  }

  struct UserPath: DocumentPath {
    var userID = ""
    static let pattern: Pattern = "users/\(\.userID)"
  }

  @Test("A function with a typed path is triggered by writes, and by events made by hand")
  func typedPaths() async throws {
    let welcome = OnDocumentCreated<FirestoreDocument>("welcome", path: UserPath.self) {
      $0.logger.info("\($1.userID)")
    }
    try await withFunctions(welcome) { suite in
      let tina = suite.firestore.document(UserPath(userID: "tina"))
      #expect(tina.path == "users/tina")
      try await tina.set([:])
      try await suite.settle()
      let run = try await suite.deliver(
        DocumentEvent(path: "users/tom", data: [:] as [String: Int]),
        to: welcome
      )
      #expect(run.outcome == .succeeded)
      #expect(suite.logs(of: welcome).map(\.message) == ["tina", "tom"])

      let elsewhere = suite.firestore.document(UserPath(userID: "tina/chats/c1"))
      let error = await #expect(throws: FirestoreError.self) { try await elsewhere.get() }
      #expect(error?.code == .invalidArgument)
    }
  }
}
