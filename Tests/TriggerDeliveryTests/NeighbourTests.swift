import Invocation
import DocumentModel
import EventLog
import InvocationContext
import Manifests
import StorageEngine
import TaskQueueModel
import Testing
import TestSupport

@testable import TriggerDelivery

@Suite("What one event or function does to others", .timeLimit(.minutes(5)))
struct NeighbourTests {
  private let storage = FaultyStorage()

  @Test(
    "A crashing event is dead after three crashes of its own, and its neighbours all succeed",
    arguments: [false, true]
  )
  func poison(retries: Bool) async throws {
    let invoker = SharedWorkerInvoker(crowd: 51) { $0 == "things/poison" }
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    let functions: [String: FunctionEndpoint] = [
      "f": .created("things/{id}", retries: retries), "g": .created("things/{id}"),
    ]
    try bench.service.updateFunctions(functions)
    try await bench.run { bench in
      for number in 0..<50 { try await bench.create("things/\(number)") }
      try await bench.create("things/poison")
      try await bench.service.waitUntilStill()
      for _ in 0..<5 { try await bench.jump(.seconds(5)) }

      let administration = bench.service.administration
      let dead = try await administration.list(state: .dead)
      #expect(dead.map(\.id.function) == ["g", "f"])
      #expect(dead.allSatisfy { $0.subject == "things/poison" && $0.crashes == 3 })
      let succeeded = try await administration.list(state: .succeeded, limit: 1000)
      #expect(succeeded.count == 100)
      #expect(succeeded.allSatisfy { $0.crashes == 0 && $0.attempts == 1 })
      // Each ran once with the others and then alone.
      #expect(invoker.runs["f things/poison"] == 4)
      #expect(invoker.runs["f things/7"] == 2)
    }
  }

  @Test("Thousands of failed events of a function hold up neither others, tasks, ticks nor writes")
  func failingFunction() async throws {
    let count = 3000
    let invoker = ScriptedInvoker()
    invoker.set("bad") { _ in .failure("no") }
    let bench = DeliveryBench(
      storage: storage,
      invoker: invoker,
      configuration: .init(heldBytesMax: 100_000)
    )
    try bench.service.updateFunctions([
      "bad": .created("bad/{id}", retries: true), "good": .created("good/{id}"),
      "queue": .queue(), "tick": .schedule("* * * * *"),
    ])
    try await bench.run { bench in
      for number in 0..<count { try await bench.create("bad/\(number)") }
      try await bench.create("good/1")
      _ = try await bench.service.tasks.enqueue(NewTask(id: "t", body: []), in: "queue")
      try await bench.jump(.seconds(60))

      let others = Set(invoker.runs.filter { $0.function != "bad" }.map(\.function))
      #expect(others == ["good", "queue", "tick"])
      #expect(try await bench.service.tasks.all(in: "queue").isEmpty)
      let (last, cursor) = try await storage.read { snapshot in
        (
          try CommitLog.lastSequence(in: snapshot),
          try EventCursor.get(DeliveryService.cursorName, in: snapshot)
        )
      }
      #expect(cursor == last)
      #expect(bench.service.administration.pendingCount == count)
    }
  }

  @Test("A stop writes nothing of a backlog that has not run")
  func stopWritesNothing() async throws {
    let invoker = ScriptedInvoker()
    invoker.set("f", ScriptedInvoker.hanging)
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["f": .created("things/{id}")])
    for number in 0..<2000 { try await bench.create("things/\(number)") }
    try await bench.run { bench in
      await invoker.waitForRuns(DispatchLimits.concurrentDefault)
      await eventually("all are pending") {
        bench.service.administration.pendingCount >= 2000
      }
      storage.refuseCommits(with: StorageError(.failed, "a stop has nothing to write"))
    } stopping: { bench in
      await bench.clock.waitForSleepers()
      bench.clock.advance(by: .seconds(2))
    }

    #expect(storage.commitsRefused == 0)
    #expect(invoker.runs.count == DispatchLimits.concurrentDefault)
  }

  @Test("While the service stops, what runs may end and is stored, and nothing more begins")
  func stopping() async throws {
    let invoker = ScriptedInvoker()
    let (gate, opener) = AsyncStream.makeStream(of: Void.self)
    invoker.set("f") { _ in
      for await _ in gate {}
      return .ok
    }
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["f": .created("things/{id}")])
    for number in 0..<300 { try await bench.create("things/\(number)") }
    try await bench.run { bench in
      await invoker.waitForRuns(DispatchLimits.concurrentDefault)
    } stopping: { bench in
      // The grace period has begun.
      await bench.clock.waitForSleepers()
      opener.finish()
    }

    #expect(invoker.runs.count == DispatchLimits.concurrentDefault)
    let succeeded = try await bench.service.administration.list(state: .succeeded, limit: 1000)
    #expect(succeeded.count == DispatchLimits.concurrentDefault)
  }

  @Test("A function without workers costs no write; its events are dead a day later, not before")
  func neverStarts() async throws {
    let invoker = ScriptedInvoker()
    invoker.set("f") { _ in .error(.cannotStart) }
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions([
      "f": .created("things/{id}"), "g": .created("others/{id}"),
    ])
    try await bench.run { bench in
      for number in 0..<20 { try await bench.create("things/\(number)") }
      try await bench.jump(.seconds(1))
      let before = storage.commitsSubmitted
      for _ in 0..<20 { try await bench.jump(.seconds(60)) }
      #expect(storage.commitsSubmitted == before)
      // Each half minute brings one attempt for each concurrent delivery, not one for every event.
      #expect(invoker.runs.count <= 20 * 41)
      try await bench.create("others/1")
      try await bench.service.waitUntilStill()
      #expect(try await bench.service.administration.list(state: .succeeded).count == 1)

      try await bench.jump(.seconds(23 * 3600))
      #expect(try await bench.service.administration.list(state: .dead).isEmpty)
      try await bench.jump(.seconds(3600))
      for _ in 0..<3 { try await bench.jump(.seconds(31)) }
      let dead = try await bench.service.administration.list(state: .dead, limit: 100)
      #expect(dead.count == 20)
      #expect(dead.first?.lastError?.contains("No worker could be had") == true)
    }
  }

  @Test("A function that has workers again runs what waited, and the day starts over")
  func startsAgain() async throws {
    let invoker = ScriptedInvoker()
    invoker.set("f") { $0 <= 3 ? .error(.overloaded) : .ok }
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["f": .created("things/{id}")])
    try await bench.run { bench in
      try await bench.create("things/1")
      for _ in 0..<4 { try await bench.jump(.seconds(30)) }
      #expect(invoker.runs.count == 4)
      #expect(invoker.runs.allSatisfy { $0.attempt == "1" })
      let delivery = try #require(try await bench.service.administration.list().first)
      #expect(delivery.state == .succeeded && delivery.attempts == 1)
    }
  }

  @Test("A chain's length is known although its earlier deliveries are kept no longer")
  func trimmedChain() async throws {
    let check = LoopCheck(roundsMax: 3, lengthMax: 6)
    let invoker = ScriptedInvoker()
    let bench = DeliveryBench(
      storage: storage,
      invoker: invoker,
      configuration: .init(loopCheck: check)
    )
    try bench.service.updateFunctions(["f": .created("things/{id}")])
    try await bench.run { bench in
      var cause: String?
      for number in 0..<8 {
        let event = try await EventCause.$current.withValue(cause) {
          try await bench.create("things/\(number)")
        }
        try await bench.service.waitUntilIdle()
        let id = try #require(DeliveryID("\(event).f"))
        let delivery = try await bench.service.administration.show(id)
        #expect(delivery.depth == number)
        cause = invoker.requests.last?.field("x-hearth-cause")
        guard number < 6 else {
          #expect(delivery.state == .dead)
          break
        }
        var batch = StorageBatch()
        DeliveryStore.forget(delivery, in: &batch)
        try await storage.commit(batch)
      }
      #expect(invoker.runs.count == 6)
    }
  }
}
