import Invocation
import DocumentModel
import Logging
import Manifests
import StatusCodes
import StorageEngine
import TaskQueueModel
import Testing
import TestSupport

@testable import TriggerDelivery

@Suite("Functions that are not deployed", .timeLimit(.minutes(5)))
struct UndeployedTests {
  private let storage = MemoryStorage()
  private let invoker = ScriptedInvoker()
  private let log = LogCapture()
  private let f = ["f": FunctionEndpoint.created("things/{id}", retries: true)]
  private let g = ["g": FunctionEndpoint.created("others/{id}")]

  private func bench(_ configuration: DeliveryService.Configuration = .init()) -> DeliveryBench {
    DeliveryBench(
      storage: storage,
      invoker: invoker,
      configuration: configuration,
      logger: log.logger()
    )
  }

  /// Makes `count` events of `f` wait because no worker starts, and then undeploys `f`.
  private func leaveOut(_ count: Int, _ bench: DeliveryBench) async throws -> DeploymentEffects {
    invoker.set("f") { _ in .error(.cannotStart) }
    try bench.service.updateFunctions(f)
    for number in 0..<count { try await bench.create("things/t\(number)") }
    try await bench.service.waitUntilStill()
    return try bench.service.updateFunctions(g)
  }

  private func count(_ state: Delivery.State, _ bench: DeliveryBench) async throws -> Int {
    try await bench.service.administration.list(state: state, limit: .max).count
  }

  @Test("What waits for a function that a deployment lacks is kept, said, and run once it is back")
  func comesBack() async throws {
    try await bench().run { bench in
      let effects = try await leaveOut(300, bench)
      #expect(
        effects.sentences == [
          "f is no longer deployed; its 300 waiting events are kept for 24 hours and run if f "
            + "is deployed again by then."
        ]
      )
      try await bench.service.waitUntilIdle()
      #expect(try await count(.pending, bench) == 300)
      let runs = invoker.runs.count
      try await bench.create("things/missed")
      try await bench.create("others/a")
      try await bench.jump(.seconds(23 * 3600))
      #expect(invoker.runs.dropFirst(runs).map(\.function) == ["g"])

      invoker.set("f") { _ in .ok }
      let back = try bench.service.updateFunctions(f)
      #expect(back.sentences == ["f is deployed again; its 300 waiting events will run."])
      try await bench.service.waitUntilIdle()
      #expect(try await count(.succeeded, bench) == 301)
    }
  }

  @Test("What waits for longer than the bound is dead, with one line in the log for all of it")
  func givenUp() async throws {
    try await bench().run { bench in
      _ = try await leaveOut(1500, bench)
      try await bench.service.waitUntilIdle()
      try await bench.jump(.seconds(24 * 3600))
      try await bench.service.waitUntilIdle()

      let dead = try await bench.service.administration.list(state: .dead, limit: .max)
      #expect(dead.count == 1500)
      #expect(dead.first?.lastError == "The function was not deployed for 86400.0 seconds.")
      let lines = log.entries(atLeast: .warning).filter { $0.metadata["delivery.count"] != nil }
      #expect(
        lines.map(\.message) == [
          "The events of a function wait, because it is no longer deployed",
          "The events of a function are dead, because it was not deployed again in time",
        ]
      )
      #expect(lines.map { $0.metadata["delivery.count"] } == ["1500", "1500"])
      #expect(log.entries(atLeast: .warning).count == 3)
    }
  }

  @Test("The time for which events are kept goes on over a restart")
  func restart() async throws {
    let clock = try await { () async throws -> ManualClock in
      let bench = bench()
      try await bench.run { bench in
        _ = try await leaveOut(3, bench)
        // The row is written shortly after, and the log reports it then.
        try await bench.service.waitUntilIdle()
        try await bench.jump(.seconds(20 * 3600))
        try await eventually("the row is written") { try await rowCount() > 0 }
      }
      return bench.clock
    }()
    let next = DeliveryBench(storage: storage, invoker: invoker, clock: clock)
    try next.service.updateFunctions(g)
    try await next.run { bench in
      try await bench.service.waitUntilIdle()
      #expect(try await count(.pending, bench) == 3)
      try await bench.jump(.seconds(4 * 3600))
      try await bench.service.waitUntilIdle()
      #expect(try await count(.dead, bench) == 3)
    }
  }

  private func rowCount() async throws -> Int {
    try await storage.read { snapshot in
      var count = 0
      try snapshot.scan(UndeployedBacklogs.keyspace, prefix: []) { _, _ in
        count += 1
        return true
      }
      return count
    }
  }

  @Test("A delivery that runs when its function goes away ends as it would have")
  func runsOn() async throws {
    let (gate, open) = AsyncStream.makeStream(of: Void.self)
    invoker.set("f") { run in
      if run == 1 { for await _ in gate { break } }
      return run == 1 ? .failure("no") : .ok
    }
    try await bench().run { bench in
      try bench.service.updateFunctions(f)
      try await bench.create("things/a")
      await invoker.waitForRuns(1)
      try bench.service.updateFunctions(g)
      open.yield()
      try await bench.service.waitUntilIdle()
      let waiting = try #require(try await bench.service.administration.list().first)
      #expect(waiting.state == .pending && waiting.attempts == 1)
      try bench.service.updateFunctions(f)
      try await bench.jump(.seconds(1))
      #expect(try await count(.succeeded, bench) == 1)
    }
  }

  @Test("Tasks of a queue that is not deployed wait, and run once it is back")
  func tasks() async throws {
    try await bench().run { bench in
      invoker.set("q") { _ in .error(.cannotStart) }
      try bench.service.updateFunctions(["q": .queue()])
      _ = try await bench.service.tasks.enqueue(
        NewTask(id: "t1", body: []),
        in: "q"
      )
      try await bench.service.waitUntilStill()
      let effects = try bench.service.updateFunctions(g)
      #expect(effects.suspended.map(\.pendingCount) == [1])
      try await bench.jump(.seconds(3600))
      #expect(try await count(.pending, bench) == 1)
      invoker.set("q") { _ in .ok }
      try bench.service.updateFunctions(["q": .queue()])
      try await bench.service.waitUntilIdle()
      #expect(try await count(.succeeded, bench) == 1)
    }
  }

  @Test("A dead event of a function that is not deployed is not retried, and says why")
  func retry() async throws {
    invoker.set("f") { _ in .failure("no", advice: .never) }
    try await bench().run { bench in
      try bench.service.updateFunctions(f)
      try await bench.create("things/a")
      try await bench.service.waitUntilIdle()
      let dead = try #require(try await bench.service.administration.list(state: .dead).first)
      try bench.service.updateFunctions(g)
      await #expect(throws: StatusError.self) {
        try await bench.service.administration.retry(dead.id)
      }
      try bench.service.updateFunctions(f)
      #expect(try await bench.service.administration.retry(dead.id).state == .pending)
    }
  }

  @Test("What no deployment has is not in memory, and an untouched function runs on")
  func window() {
    let now = Timestamp(microseconds: 1_800_000_000_000_000)
    var state = DispatchState(heldBytesMax: 1 << 20, startsByItself: true)
    let day = Duration.seconds(86_400)
    _ = state.deploy(["f": DispatchLimits(), "g": DispatchLimits()], now: now, keptFor: day)
    for function in ["f", "g"] {
      let delivery = Delivery.sample(sequence: 1, function: function, at: now)
      let new = DeliveryStore.Candidate(delivery: delivery, event: nil, bytes: 100)
      state.add([new], of: function)
    }
    let effects = state.deploy(["g": DispatchLimits()], now: now, keptFor: day)
    #expect(effects.suspended.map(\.function) == ["f"])
    #expect(state.backlogs["f"]?.entries.isEmpty == true && state.backlogs["f"]?.count == 1)
    let work = state.look(now: now)
    #expect(work.starts.map(\.delivery.id.function) == ["g"])
    #expect(work.loads.isEmpty && work.concernsUndeployed)
    _ = state.deploy(["f": DispatchLimits()], now: now, keptFor: day)
    #expect(state.look(now: now).loads.map(\.function) == ["f"])
  }
}
