import EventLog
import StorageEngine
import TestSupport
import Testing

@testable import TriggerDelivery

@Suite("Delivery backlog", .timeLimit(.minutes(5)))
struct DeliveryBacklogTests {
  @Test("Twenty thousand deliveries pending at a start all run, and few are in memory at a time")
  func backlog() async throws {
    let count = 20_000
    let storage = MemoryStorage()
    let first = ScriptedInvoker()
    first.set("f", ScriptedInvoker.hanging)
    let before = DeliveryBench(storage: storage, invoker: first)
    for number in 0..<count { try await before.create("things/\(number)") }
    try before.service.updateFunctions(["f": .created("things/{id}")])
    try await before.run { bench in
      await eventually("all are pending", within: .seconds(240)) {
        bench.service.administration.pendingCount >= count
      }
    } stopping: { bench in
      await bench.clock.waitForSleepers()
      bench.clock.advance(by: .seconds(2))
    }
    #expect(first.runs.count == DispatchLimits.concurrentDefault)

    let second = ScriptedInvoker()
    let after = DeliveryBench(storage: storage, invoker: second)
    try after.service.updateFunctions(["f": .created("things/{id}")])
    try await after.run { bench in
      try await bench.service.waitUntilIdle()
    }
    #expect(second.runs.count == count)
    #expect(Set(second.runs.map(\.event)).count == count)
  }

  @Test("The order of a document's events survives a restart in the middle of a retry")
  func orderAfterRestart() async throws {
    let storage = MemoryStorage()
    let first = ScriptedInvoker()
    first.set("f") { _ in .failure("not yet") }
    let before = DeliveryBench(storage: storage, invoker: first)
    try before.service.updateFunctions(["f": .created("things/{id}", retries: true)])
    var events: [String] = []
    try await before.run { bench in
      try await bench.create("things/a")
      try await bench.service.waitUntilIdle()
      try await bench.create("things/a")
      try await bench.create("things/a")
      try await bench.service.waitUntilIdle()
    }
    #expect(Set(first.runs.map(\.event)).count == 1)

    let second = ScriptedInvoker()
    let after = DeliveryBench(storage: storage, invoker: second)
    try after.service.updateFunctions(["f": .created("things/{id}", retries: true)])
    try await after.run { bench in
      try await bench.service.waitUntilIdle()
      while let due = bench.service.nextDue {
        bench.clock.advance(by: max(.milliseconds(1), due.duration(since: bench.now)))
        bench.service.timeJumped()
        try await bench.service.waitUntilIdle()
      }
    }
    events = second.runs.map(\.event)
    #expect(events.count == 3)
    #expect(events == events.sorted { Double($0) ?? 0 < Double($1) ?? 0 })
    #expect(events.first == first.runs.first?.event)
  }
}
