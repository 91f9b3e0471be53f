import Invocation
import DocumentModel
import EventLog
import Manifests
import StorageEngine
import TaskQueueModel
import Testing
import TestSupport

@testable import TriggerDelivery

@Suite("Why events wait", .timeLimit(.minutes(5)))
struct WaitReasonTests {
  private let storage = MemoryStorage()
  private let invoker = ScriptedInvoker()
  private let created = FunctionEndpoint.created("things/{id}", retries: true)

  /// Returns the reasons of all pending deliveries by their subjects.
  private func reasons(_ bench: DeliveryBench) async throws -> [String: WaitReason] {
    let pending = try await bench.service.administration.list(state: .pending)
    let reasons = try await bench.service.administration.waitReasons(of: pending)
    return Dictionary(
      pending.compactMap { delivery in reasons[delivery.id].map { (delivery.subject, $0) } }
    ) { first, _ in first }
  }

  @Test("An event without a worker says why none could be started, and when that is tried again")
  func noWorker() async throws {
    invoker.set("f") { _ in .error(.cannotStart) }
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["f": created])
    try await bench.run { bench in
      try await bench.create("things/a")
      try await bench.service.waitUntilStill()
      let reason = try #require(try await reasons(bench)["things/a"])
      #expect(reason.code == "noWorker" && reason.needsAction)
      #expect(reason.text.contains("ended as scripted."))
      let time = try #require(reason.time)
      #expect(time > bench.now)
      #expect(bench.service.administration.figures["f"]?.holdUp == reason)
    }
  }

  @Test("An event behind another one of its document names it, as it runs and as it waits")
  func earlierEvent() async throws {
    let (gate, open) = AsyncStream.makeStream(of: Void.self)
    invoker.set("f") { run in
      if run == 1 { for await _ in gate { break } }
      return run == 1 ? .failure("no") : .ok
    }
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["f": created])
    try await bench.run { bench in
      let first = try await bench.create("things/a")
      let second = try await bench.create("things/a")
      let one = try #require(DeliveryID("\(first).f"))
      let two = try #require(DeliveryID("\(second).f"))
      await invoker.waitForRuns(1)
      try await bench.service.administration.waitForExpansion()
      #expect(try await reason(two, bench) == .earlierEvent(one, isRunning: true))
      #expect(try await reason(one, bench) == nil)

      open.yield()
      try await bench.service.waitUntilIdle()
      #expect(try await reason(one, bench) == .nextAttempt(bench.now.advanced(by: .seconds(1))))
      #expect(try await reason(two, bench) == .earlierEvent(one, isRunning: false))
      try await bench.jump(.seconds(1))
      #expect(try await reasons(bench).isEmpty)
    }
  }

  private func reason(_ id: DeliveryID, _ bench: DeliveryBench) async throws -> WaitReason? {
    let delivery = try await bench.service.administration.show(id)
    return try await bench.service.administration.waitReasons(of: [delivery])[id]
  }

  @Test("An event beyond what the function may run at once says so")
  func concurrency() async throws {
    var endpoint = created
    endpoint.maxInstances = 1
    endpoint.concurrency = 1
    invoker.set("f", ScriptedInvoker.hanging)
    let bench = DeliveryBench(
      storage: storage,
      invoker: invoker,
      configuration: .init(stopGrace: .zero)
    )
    try bench.service.updateFunctions(["f": endpoint])
    try await bench.run { bench in
      try await bench.create("things/a")
      try await bench.create("things/b")
      await invoker.waitForRuns(1)
      try await bench.service.administration.waitForExpansion()
      #expect(try await reasons(bench) == ["things/b": .concurrency(1)])
    }
  }

  @Test("A task waits for its time, for its paused queue, and for the deployment of its function")
  func tasks() async throws {
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["q": .queue()])
    try await bench.run { bench in
      let time = bench.now.advanced(by: .seconds(60))
      _ = try await bench.service.tasks.enqueue(
        NewTask(id: "t", body: [], scheduleTime: time),
        in: "q"
      )
      try await bench.service.administration.waitForExpansion()
      #expect(try await reasons(bench) == ["t": .notDue(time)])
      _ = try await bench.service.tasks.setPaused(true, queue: "q")
      #expect(try await reasons(bench) == ["t": .queuePaused("q")])
      try bench.service.updateFunctions(["f": created])
      #expect(
        try await reasons(bench) == [
          "t": .notDeployed(
            "q",
            since: bench.now,
            keptUntil: bench.now.advanced(by: .seconds(86_400))
          )
        ]
      )
    }
  }

  @Test("Before the first deployment events are counted, and what an earlier run left says so")
  func nothingDeployed() async throws {
    invoker.set("f") { _ in .failure("no") }
    let first = DeliveryBench(storage: storage, invoker: invoker)
    try first.service.updateFunctions(["f": created])
    try await first.run { bench in
      try await bench.create("things/a")
      try await bench.service.waitUntilIdle()
    }
    let next = DeliveryBench(storage: storage, invoker: invoker)
    try await next.run { bench in
      for number in 0..<3 { try await bench.create("things/n\(number)") }
      await eventually("all are counted") { bench.service.eventsBeforeDeployment == 3 }
      #expect(try await reasons(bench) == ["things/a": .nothingDeployed])
      try bench.service.updateFunctions(["f": created])
      try await bench.service.waitUntilIdle()
      #expect(bench.service.eventsBeforeDeployment == 0)
    }
  }

  @Test("Events that are skipped are counted, and stay so after a crash")
  func skipped() async throws {
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["f": created])
    try await bench.run { bench in
      try await bench.service.setEnabled(false)
      try await bench.create("things/a")
      try await bench.create("others/a")
      let last = try await bench.create("things/b")
      try await bench.service.waitUntilIdle()
      #expect(bench.service.eventsSkipped == 2)
      // A later service starts at the stored cursor and receives none of these events.
      let cursor = try await storage.read { try EventCursor.get("deliveries", in: $0) }
      #expect(cursor.map { "\($0).0" } == last)
      try await bench.service.setEnabled(true)
      try await bench.create("things/c")
      try await bench.service.waitUntilIdle()
      #expect(invoker.runs.count == 1 && bench.service.eventsSkipped == 2)
    }
  }
}
