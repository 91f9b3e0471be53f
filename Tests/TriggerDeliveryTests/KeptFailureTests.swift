import DocumentModel
import EventLog
import Manifests
import StorageEngine
import Testing
import TestSupport

@testable import TriggerDelivery

@Suite("Failures that are kept", .timeLimit(.minutes(5)))
struct KeptFailureTests {
  private let storage = FaultyStorage()
  private let invoker = ScriptedInvoker()

  private var store: DeliveryStore { DeliveryStore(storage: storage) }

  private func failed(_ function: String) async throws -> [Delivery] {
    try await store.list(states: [.failed, .dead], function: function, limit: .max, scanMax: .max) {
      _ in true
    }
  }

  /// Returns once a function has at most `count` failures left.
  private func waitForFailures(of function: String, atMost count: Int) async throws {
    try await eventually("at most \(count) failures of \(function) are left") {
      try await failed(function).count <= count
    }
  }

  /// Trims all records from the log, as retention does.
  private func trimLog() async throws {
    let batch = try await storage.read { snapshot in
      let records = try CommitLog.records(after: 0, limit: 10_000, in: snapshot)
      var batch = StorageBatch()
      batch.deleteRange(CommitLog.keyspace, from: nil, to: nil)
      try DeliveryService.keepNeeded(records, in: snapshot, to: &batch)
      return batch
    }
    try await storage.commit(batch)
  }

  @Test("Thousands of one function's failures push out none of another's")
  func byFunction() async throws {
    for function in ["f", "g"] { invoker.set(function) { _ in .failure("no") } }
    let bench = DeliveryBench(
      storage: storage,
      invoker: invoker,
      configuration: .init(settledKept: 100)
    )
    try bench.service.updateFunctions([
      "f": .created("things/{id}"), "g": .created("others/{id}"),
    ])
    try await bench.run { bench in
      try await bench.create("others/1")
      for number in 0..<2500 { try await bench.create("things/\(number)") }
      try await bench.service.waitUntilIdle()
      try await waitForFailures(of: "f", atMost: 1100)

      #expect(try await failed("g").count == 1)
      let newest = try #require(try await failed("f").first)
      #expect(newest.subject == "things/2499")
    }
  }

  @Test(
    "A start drops what an earlier run kept beyond the bound, and the events that only it needed",
    arguments: [true, false]
  )
  func afterRestart(sizesAreKnown: Bool) async throws {
    for function in ["f", "g"] { invoker.set(function) { _ in .failure("no") } }
    let functions: [String: FunctionEndpoint] = [
      "f": .created("things/{id}"), "g": .created("things/1"),
    ]
    let before = DeliveryBench(storage: storage, invoker: invoker)
    try before.service.updateFunctions(functions)
    try await before.run { bench in
      for number in 0..<100 { try await bench.create("things/\(number)", bytes: 10_000) }
      try await bench.service.waitUntilIdle()
    }
    try await trimLog()
    #expect(try await store.count(DeliveryStore.events) == 100)
    if !sizesAreKnown {
      // The format of the previous version.
      var batch = StorageBatch()
      for var delivery in try await failed("f") + failed("g") {
        delivery.eventBytes = 0
        DeliveryStore.insert(delivery, into: &batch)
      }
      try await storage.commit(batch)
    }

    let after = DeliveryBench(
      storage: storage,
      invoker: invoker,
      configuration: .init(failedBytesMax: 200_000)
    )
    try after.service.updateFunctions(functions)
    try await after.run { _ in
      try await waitForFailures(of: "f", atMost: 20)
      let left = try await failed("f")
      #expect((10...20).contains(left.count))
      // The newest failures remain, and the event that another function needs.
      #expect(left.first?.subject == "things/99")
      #expect(try await failed("g").count == 1)
      #expect(try await store.count(DeliveryStore.events) == left.count + 1)
    }
  }

  @Test("All failures of a function are retried in few batches, and discarded in as few")
  func batches() async throws {
    invoker.set("f") { _ in .failure("no") }
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions([
      "f": .created("things/{id}"), "fine": .created("others/{id}"),
    ])
    try await bench.run { bench in
      let administration = bench.service.administration
      for number in 0..<900 { try await bench.create("things/\(number)") }
      try await bench.create("others/1")
      try await bench.service.waitUntilIdle()
      let ids = try await administration.list(limit: 1000).map(\.id)
      #expect(ids.count == 901)
      invoker.set("f", ScriptedInvoker.hanging)
      let before = storage.commitsSubmitted
      let count = try await administration.retryAll(ids)

      #expect(count == 900, "One has succeeded")
      #expect(storage.commitsSubmitted - before == 2)
      #expect(administration.pendingCount == 900)
      await invoker.waitForRuns(901 + DispatchLimits.concurrentDefault)
      #expect(try await administration.retryAll(ids) == 0)
    } stopping: { bench in
      await bench.clock.waitForSleepers()
      bench.clock.advance(by: .seconds(2))
    }
    invoker.set("f") { _ in .failure("no") }
    let again = DeliveryBench(storage: storage, invoker: invoker)
    try again.service.updateFunctions(["f": .created("things/{id}")])
    try await again.run { bench in
      let administration = bench.service.administration
      try await bench.service.waitUntilIdle()
      let ids = try await administration.list(state: .failed, limit: 1000).map(\.id)
      try await trimLog()
      let before = storage.commitsSubmitted
      let count = try await administration.discardAll(ids)

      #expect(count == 900)
      #expect(storage.commitsSubmitted - before == 2)
      #expect(try await store.count(DeliveryStore.events) == 0)
    }
  }
}
