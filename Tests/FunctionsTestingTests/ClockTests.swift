import FunctionsTesting
import Testing

@Suite("The suite's clock")
struct ClockTests {
  private static let start = Timestamp(microseconds: 1_767_225_600_000_000)

  /// Runs a test with a function that logs the time of each run.
  private func withNightly(
    _ schedule: String,
    timeZone: String? = nil,
    startTime: Timestamp = start,
    faults: DeliveryFaults? = nil,
    test: (FunctionsSuite, OnSchedule) async throws -> Void
  ) async throws {
    try await withFunctions(
      { nightly in FunctionsApp { nightly } },
      startTime: startTime,
      deliveryFaults: faults
    ) { fixture in
      OnSchedule("nightly", schedule: schedule, timeZone: timeZone) { event in
        event.logger.info("\(event.scheduleTime) \(fixture.now)")
      }
    } test: { suite, nightly in
      try await test(suite, nightly)
    }
  }

  @Test("Twenty-four hours hold 153 attempts of a function that always fails, each at its time")
  func dayOfRetries() async throws {
    try await withFunctions({ function in FunctionsApp { function } }) { environment in
      OnDocumentCreated<FirestoreDocument>(
        "fails",
        at: "users/{userId}",
        options: .init(retry: true)
      ) { event in
        event.logger.info("\(environment.now)")
        throw Sample.Broken()
      }
    } test: { suite, failing in
      let start = suite.clock.now
      try await suite.firestore.document("users/tina").set([:])
      try await suite.clock.advance(by: .seconds(1023))
      #expect(suite.runCount(of: failing) == 11)
      #expect(try await suite.deliveries().map(\.state) == [.pending])
      try await suite.clock.advance(by: .seconds(24 * 3600 - 1023))

      #expect(suite.runCount(of: failing) == 153)
      #expect(try await suite.deliveries().map(\.state) == [.dead])
      #expect(suite.clock.now == Timestamp(microseconds: start.microseconds + 86_400_000_000))
      let times = suite.logs.compactMap { Timestamp($0.message)?.microseconds }
      let waits = zip(times, times.dropFirst()).map { ($1 - $0) / 1_000_000 }
      #expect(waits.prefix(10) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
      #expect(waits.dropFirst(10).allSatisfy { $0 == 600 })
    }
  }

  @Test("A duration below 0 is an issue, and leaves the time as it is")
  func backward() async throws {
    try await withFunctions(Sample.greet, startTime: Self.start) { suite in
      let issues = await recordedIssues { try await suite.clock.advance(by: .seconds(-1)) }
      #expect(issues.count == 1)
      #expect(issues.first?.text?.contains("only forward") == true)
      #expect(suite.clock.now == Self.start)
    }
  }

  @Test("Functions and the test have the suite's time from the clock of functions")
  func functionClock() async throws {
    let time = OnCall<FirestoreValue, Timestamp>("time", callers: .anyone) { _ in
      FunctionClock.now
    }
    try await withFunctions(time, startTime: Self.start) { suite in
      #expect(FunctionClock.now == Self.start)
      try await suite.clock.advance(by: .seconds(86_400))
      let later = Timestamp(microseconds: Self.start.microseconds + 86_400_000_000)
      #expect(try await suite.call(time, .null) == later)
      #expect(FunctionClock.now == later)
    }
    #expect(FunctionClock.now > Timestamp(microseconds: Self.start.microseconds + 86_400_000_001))
  }

  @Test("Twenty-four hours hold twenty-four runs of an hourly schedule, each at its hour")
  func dayOfTicks() async throws {
    try await withNightly("0 * * * *") { suite, _ in
      try await suite.clock.advance(by: .seconds(24 * 3600))

      let hours = (1...24).map { hour in
        Timestamp(microseconds: Self.start.microseconds + Int64(hour) * 3_600_000_000)
      }
      #expect(suite.logs.map(\.message) == hours.map { "\($0) \($0)" })
      #expect(try await suite.deliveries().allSatisfy { $0.state == .succeeded })
    }
  }

  @Test("Time stands still, and settling does not make schedules run")
  func standsStill() async throws {
    try await withNightly("* * * * *") { suite, nightly in
      try await suite.firestore.document("users/tina").set([:])
      try await suite.settle()
      #expect(suite.clock.now == Self.start)
      #expect(suite.runs.isEmpty)

      try await suite.clock.advance(by: .seconds(59))
      #expect(suite.runs.isEmpty)
      try await suite.clock.advance(by: .seconds(1))
      #expect(suite.runCount(of: nightly) == 1)
      try await suite.clock.advance(to: Self.start)
      #expect(suite.runCount(of: nightly) == 1)
    }
  }

  @Test("A scheduled run that lies on the way to a retry runs at its time")
  func onTheWay() async throws {
    let failing = Sample.failing(8, retry: true)
    let everyMinute = OnSchedule("everyMinute", schedule: "* * * * *") {
      $0.logger.info("\($0.scheduleTime)")
    }
    try await withFunctions(failing, everyMinute, startTime: Self.start) { suite in
      try await suite.firestore.document("users/tina").set([:])
      try await suite.settle()

      // The eighth retry comes after 255 seconds, and four full minutes pass until then.
      #expect(suite.runCount(of: failing) == 9)
      let minutes = (1...4).map { minute in
        Timestamp(microseconds: Self.start.microseconds + minute * 60_000_000).description
      }
      #expect(suite.logs(of: everyMinute).map(\.message) == minutes)
    }
  }

  @Test("A schedule in a time zone passes the change to summer time as its wall clock does")
  func daylightSaving() async throws {
    let start = try #require(Timestamp("2026-03-28T12:00:00Z"))
    try await withNightly("0 6 * * *", timeZone: "Europe/Berlin", startTime: start) { suite, _ in
      try await suite.clock.advance(by: .seconds(3 * 24 * 3600))
      let times = suite.logs.compactMap { $0.message.split(separator: " ").first }
      #expect(
        times.map { $0.prefix(19) } == [
          "2026-03-29T04:00:00", "2026-03-30T04:00:00", "2026-03-31T04:00:00",
        ]
      )
    }
  }

  @Test("With delivery faults the clock drives schedules and retries too")
  func faults() async throws {
    let faults = DeliveryFaults(seed: 2, duplicates: false)
    try await withNightly("0 * * * *", faults: faults) { suite, nightly in
      try await suite.clock.advance(by: .seconds(24 * 3600))
      let times = Set(suite.logs.compactMap { $0.message.split(separator: " ").first })
      #expect(times.count >= 23)
      #expect(suite.runCount(of: nightly) == times.count)
    }
  }

  @Test("A scheduled function can be run immediately and reports its outcome")
  func runNow() async throws {
    try await withNightly("0 3 * * *") { suite, nightly in
      let run = try await suite.runSchedule(nightly)
      #expect(run.state == .succeeded && run.kind == "schedule")
      #expect(suite.logs.map(\.message) == ["\(Self.start) \(Self.start)"])
      let weekly = OnSchedule("weekly", schedule: "0 3 * * 1") { _ in }
      let error = await #expect(throws: FunctionsTestingError.self) {
        try await suite.runSchedule(weekly)
      }
      #expect(error?.kind == .noSuchFunction)
    }
  }

  @Test("A scheduled run that fails is no error of the test, and is retried where it says so")
  func runFails() async throws {
    let failing = OnSchedule(
      "nightly",
      schedule: "0 3 * * *",
      options: .init(retry: .init(attempts: 3))
    ) { _ in throw Sample.Broken() }
    try await withFunctions(failing) { suite in
      let run = try await suite.runSchedule(failing)
      #expect(run.state == .dead)
      #expect(suite.runs(of: failing).count == run.attempts)
    }
  }
}
