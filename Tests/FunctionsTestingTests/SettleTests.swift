import FunctionsTesting
import Testing

@Suite("Settling")
struct SettleTests {
  @Test("Settling waits for what functions cause, three hops on")
  func chain() async throws {
    try await Sample.withChain { suite, _ in
      try await suite.firestore.document("a/1").set([:])
      try await suite.settle()

      #expect(try await suite.firestore.document("d/1").get().fields["from"] == .string("c"))
      #expect(suite.runs.map(\.function) == ["aTob", "bToc", "cTod"])
    }
  }

  @Test("A thousand settlings in a row each find a chain of three functions done")
  func thousand() async throws {
    try await Sample.withChain { suite, chain in
      for id in 1...1000 {
        try await suite.firestore.document("a/\(id)").set([:])
        try await suite.settle()
        guard suite.runCount(of: chain.cTod) == id else {
          Issue.record("settling \(id) came back early")
          return
        }
      }
    }
  }

  @Test("Settling with nothing to do returns at once")
  func nothing() async throws {
    try await withFunctions(Sample.greet) { suite in
      try await suite.settle()
      #expect(suite.runs.isEmpty)
    }
  }

  @Test("A failing function without retries fails once, with its error")
  func failsOnce() async throws {
    let failing = Sample.failing(retry: false)
    try await withFunctions(failing) { suite in
      try await suite.firestore.document("users/tina").set([:])
      try await suite.settle()

      #expect(suite.runs(of: failing).map(\.outcome) == [.failed("it is broken")])
      let delivery = try #require(try await suite.deliveries().first)
      #expect(delivery.state == .failed)
      #expect(delivery.document == "users/tina")
      #expect(delivery.kind == "created")
    }
  }

  @Test("A retrying function is tried until it succeeds, without waiting for the time between")
  func retries() async throws {
    let failing = Sample.failing(3, retry: true)
    try await withFunctions(failing) { suite in
      let start = try await suite.firestore.document("users/tina").set([:])
      try await suite.settle()

      #expect(suite.runs(of: failing).map(\.attempt) == [1, 2, 3, 4])
      #expect(try await suite.deliveries(of: failing).map(\.state) == [.succeeded])
      // The delays of 1, 2 and 4 seconds also show in the documents' times.
      let later = try await suite.firestore.document("users/tom").set([:])
      let times = try [start, later].map { try #require($0.updateTime).microseconds }
      #expect(times[1] - times[0] >= 7_000_000)
    }
  }

  @Test("A function that always fails is tried for a day, as in production, and then given up")
  func dead() async throws {
    let failing = Sample.failing(retry: true)
    try await withFunctions(failing) { suite in
      try await suite.firestore.document("users/tina").set([:])
      try await suite.settle()

      let delivery = try #require(try await suite.deliveries(of: failing).first)
      #expect(delivery.state == .dead)
      // Delays from 1 s to 512 s, then one attempt every ten minutes.
      #expect(delivery.attempts == 153)
      #expect(suite.runCount(of: failing) == 153)
    }
  }

  @Test("An error that no retry can fix ends the event at once")
  func permanent() async throws {
    let failing = Sample.failing(retry: true, with: EventError.permanent("no such thing"))
    try await withFunctions(failing) { suite in
      try await suite.firestore.document("users/tina").set([:])
      try await suite.settle()

      #expect(try await suite.deliveries(of: failing).map(\.state) == [.dead])
      #expect(suite.runCount(of: failing) == 1)
    }
  }

  @Test("When the time is over, settling names what is pending")
  func names() async throws {
    let hanging = Sample.hanging()
    try await withFunctions(hanging, Sample.greet) { suite in
      try await suite.firestore.document("users/tina").set([:])
      await started(hanging, in: suite)
      let issues = await recordedIssues { try await suite.settle(timeout: .milliseconds(1)) }
      let text = try #require(issues.first?.text)
      #expect(issues.count == 1)
      #expect(text.contains("hangs for created users/tina (running, attempt 1)"), "\(text)")
    }
  }

  /// A task that enqueues the next one.
  private static var again: OnTaskDispatched<Int> {
    .init("again") { try await Self.again.enqueue($0.data + 1) }
  }

  @Test("A task without end is reported with how often its function ran")
  func endless() async throws {
    try await withFunctions(Self.again) { suite in
      try await Self.again.enqueue(1)
      let issues = await recordedIssues {
        try await suite.settle(timeout: .milliseconds(20), runsMax: 50)
      }
      #expect(issues.first?.text?.hasPrefix("Not settled: functions ran ") == true)
    }
  }

  @Test("A function that writes its own document is stopped, and its dead event names the loop")
  func loop() async throws {
    try await withFunctions({ function in FunctionsApp { function } }) { environment in
      OnDocumentWritten<FirestoreDocument>("loops", at: "counters/{id}") { _ in
        try await environment.firestore.document("counters/1").update(["n": .increment(1)])
      }
    } test: { suite, loops in
      try await suite.firestore.document("counters/1").set(["n": 0])
      try await suite.settle()

      let deliveries = try await suite.deliveries(of: loops)
      #expect(suite.runCount(of: loops) == 25)
      #expect(deliveries.dropLast().allSatisfy { $0.state == .succeeded })
      let dead = try #require(deliveries.last)
      #expect(dead.state == .dead && dead.attempts == 0)
      #expect(
        dead.error?.contains("Stopped: a loop. loops → loops has come round 25 times") == true
      )
      #expect(dead.cause == deliveries.dropLast().last?.id)
      #expect(deliveries.first?.cause == nil)
    }
  }

  @Test("Of two functions that write each other's documents the dead event names both")
  func cycle() async throws {
    try await withFunctions({ links in FunctionsApp { for link in links { link } } }) {
      environment in
      [("a", "b"), ("b", "a")].map { from, to in
        OnDocumentWritten<FirestoreDocument>("\(from)To\(to)", at: "\(from)/{id}") { event in
          let other = try environment.firestore.document("\(to)/\(event.params.id)")
          try await other.set(["n": .increment(1)], .merge)
        }
      }
    } test: { suite, links in
      try await suite.firestore.document("a/1").set(["n": 0])
      try await suite.settle()

      let dead = try await suite.deliveries().filter { $0.state == .dead }
      #expect(dead.map(\.function) == ["aTob"])
      #expect(dead.first?.error?.contains("aTob → bToa → aTob has come round") == true)
      #expect(links.map { suite.runCount(of: $0) } == [25, 25])
    }
  }

  @Test("A function that outruns its own time has failed")
  func functionTimeout() async throws {
    let hanging = Sample.hanging(timeout: .seconds(1))
    try await withFunctions(hanging) { suite in
      try await suite.firestore.document("users/tina").set([:])
      try await suite.settle()

      let delivery = try #require(try await suite.deliveries(of: hanging).first)
      #expect(delivery.state == .failed)
      #expect(delivery.error?.contains("did not finish within 1.0 seconds") == true)
    }
  }

  @Test("An earlier event is delivered again on request")
  func redelivers() async throws {
    try await withFunctions(Sample.greet) { suite in
      for user in ["tina", "tom"] {
        try await suite.firestore.document("users/\(user)").set([:])
      }
      try await suite.settle()
      let again = try await suite.redeliver(Sample.greet, document: "users/tom")
      try await suite.settle()

      #expect(again.map(\.document) == ["users/tom"])
      #expect(suite.runs(of: Sample.greet).map(\.document).filter { $0 == "users/tom" }.count == 2)
      try await suite.redeliver(Sample.greet)
      try await suite.settle()
      #expect(suite.runCount(of: Sample.greet) == 5)
      let eventIDs = Set(suite.runs(of: Sample.greet).map(\.eventID))
      #expect(eventIDs.count == 2)
    }
  }

  @Test("An event that never was is not delivered again")
  func noEvent() async throws {
    try await withFunctions(Sample.greet) { suite in
      let error = await #expect(throws: FunctionsTestingError.self) {
        try await suite.redeliver(Sample.greet, document: "users/tina")
      }
      #expect(error?.kind == .noSuchEvent)
      #expect(error?.message.contains("users/tina") == true)
    }
  }
}
