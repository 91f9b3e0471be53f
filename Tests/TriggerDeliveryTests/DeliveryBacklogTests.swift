import EventLog
import StorageEngine
import TestSupport
import Testing

@testable import TriggerDelivery

@Suite("Delivery backlog", .timeLimit(.minutes(2)))
struct DeliveryBacklogTests {
  @Test("A hundred thousand deliveries pending at a start are all known, and few are in memory")
  func knowsAll() async throws {
    let count = 100_000
    let storage = MemoryStorage()
    let time = DeliveryBench(storage: storage, invoker: ScriptedInvoker()).now
    for first in stride(from: 1, through: count, by: 10_000) {
      var batch = StorageBatch()
      _ = DeliveryStore.insert(
        (first..<first + 10_000).map { .sample(sequence: UInt64($0), at: time) },
        into: &batch
      )
      EventCursor.put(DeliveryService.cursorName, sequence: UInt64(count), in: &batch)
      try await storage.commit(batch)
    }
    let invoker = ScriptedInvoker()
    invoker.set("f", ScriptedInvoker.hanging)
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try await bench.service.updateFunctions(["f": .created("things/{id}")])
    try await bench.run { bench in
      await invoker.waitForRuns(DispatchLimits.concurrentDefault)
      #expect(await bench.service.pendingCount == count)
    } stopping: { bench in
      await bench.clock.waitForSleepers()
      bench.clock.advance(by: .seconds(2))
    }

    // Only those that run were read from storage.
    #expect(invoker.runs.count == DispatchLimits.concurrentDefault)
  }

  @Test("The order of a document's events survives a restart in the middle of a retry")
  func orderAfterRestart() async throws {
    let storage = MemoryStorage()
    let first = ScriptedInvoker()
    first.set("f") { _ in .failure("not yet") }
    let before = DeliveryBench(storage: storage, invoker: first)
    try await before.service.updateFunctions(["f": .created("things/{id}", retries: true)])
    var events: [String] = []
    try await before.run { bench in
      try await bench.create("things/a")
      try await bench.service.waitUntilIdle()
      try await bench.create("things/a")
      try await bench.create("things/a")
      try await bench.service.waitUntilIdle()
    } stopping: { bench in
      await bench.clock.waitForSleepers()
      bench.clock.advance(by: .seconds(2))
    }
    #expect(Set(first.runs.map(\.event)).count == 1)

    let second = ScriptedInvoker()
    let after = DeliveryBench(storage: storage, invoker: second)
    try await after.service.updateFunctions(["f": .created("things/{id}", retries: true)])
    try await after.run { bench in
      try await bench.service.waitUntilIdle()
      while let due = await bench.service.nextDue {
        bench.clock.advance(by: max(.milliseconds(1), due.duration(since: bench.now)))
        await bench.service.timeJumped()
        try await bench.service.waitUntilIdle()
      }
    }
    events = second.runs.map(\.event)
    #expect(events.count == 3)
    #expect(events == events.sorted { Double($0) ?? 0 < Double($1) ?? 0 })
    #expect(events.first == first.runs.first?.event)
  }
}
