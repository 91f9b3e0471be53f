import EventLog
import Logging
import StorageEngine
import Synchronization
import TestSupport
import Testing
import TriggerDelivery

@Suite("Two services over one store", .timeLimit(.minutes(5)))
struct SharingTests {
  /// A service with its own connection to the store, its own tailer and its own functions.
  private struct Node: Sendable {
    let storage: SeveredStorage
    let bench: DeliveryBench
    let invoker = ScriptedInvoker()

    init(_ store: any OrderedStorage) throws {
      storage = SeveredStorage(store)
      bench = DeliveryBench(
        storage: storage,
        invoker: invoker,
        configuration: .init(claimHeartbeat: .milliseconds(40)),
        realClock: ContinuousClock()
      )
      try bench.service.updateFunctions(["f": .created("things/{id}", retries: true)])
    }

    /// Runs until the task is cancelled, without an orderly shutdown.
    func live() async {
      await withTaskGroup(of: Void.self) { group in
        // The errors of a service that is cut off do not matter.
        group.addTask { try? await bench.tailer.run() }
        group.addTask { try? await bench.service.run() }
      }
    }
  }

  private let store = MemoryStorage()

  private func settledCount() async throws -> Int {
    try await store.read { snapshot in
      var count = 0
      try snapshot.scan(Keyspace("deliveries_succeeded"), prefix: []) { _, _ in
        count += 1
        return true
      }
      return count
    }
  }

  private func waitForSettled(_ count: Int) async throws {
    try await eventually("\(count) deliveries are settled", within: .seconds(240)) {
      try await settledCount() >= count
    }
  }

  @Test("When nothing fails, both deliver, and each event runs once")
  func sharing() async throws {
    let (one, two) = (try Node(store), try Node(store))
    let writer = DeliveryBench(storage: store, invoker: ScriptedInvoker())
    let count = 400
    try await withThrowingTaskGroup(of: Void.self) { group in
      for node in [one, two] { group.addTask { await node.live() } }
      // Writes until both have taken part: the second one gets its shards after some heartbeats.
      var written = 0
      while written < count || one.invoker.runs.isEmpty || two.invoker.runs.isEmpty {
        try await writer.create("things/\(written)")
        written += 1
        if written > count { try await Task.sleep(for: .milliseconds(5)) }
      }
      try await waitForSettled(written)
      let events = (one.invoker.runs + two.invoker.runs).map(\.event)
      #expect(events.count == written)
      #expect(Set(events).count == written)
      group.cancelAll()
    }
  }

  @Test(
    "Killed again and again, they deliver every event, and what succeeded is stored",
    arguments: 0..<3
  )
  func killed(round: Int) async throws {
    var generator = SeededGenerator.forTest()
    let writer = DeliveryBench(storage: store, invoker: ScriptedInvoker())
    let count = 600
    let runs = Mutex<Set<String>>([])
    try await withThrowingTaskGroup(of: Void.self) { group in
      let survivor = try Node(store)
      group.addTask { await survivor.live() }
      var written = 0
      for life in 0..<4 {
        let node = try Node(store)
        let task = Task { await node.live() }
        while written < count * (life + 1) / 4 {
          try await writer.create("things/\(written % 50)")
          written += 1
          if Int.random(in: 0..<20, using: &generator) == 0 {
            try await Task.sleep(for: .milliseconds(Int.random(in: 1...20, using: &generator)))
          }
        }
        node.storage.cut()
        task.cancel()
        await task.value
        runs.withLock { $0.formUnion(node.invoker.runs.map(\.event)) }
      }
      try await waitForSettled(count)
      runs.withLock { $0.formUnion(survivor.invoker.runs.map(\.event)) }
      #expect(runs.withLock { $0.count } == count)
      group.cancelAll()
    }
  }

  @Test("Of two services one takes each run of a schedule")
  func schedules() async throws {
    let (one, two) = (try Node(store), try Node(store))
    for node in [one, two] {
      try node.bench.service.updateFunctions(["tick": .schedule("* * * * *")])
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for node in [one, two] { group.addTask { await node.live() } }
      var expected = 0
      for _ in 0..<5 {
        await eventually("both know the next run") {
          one.bench.service.nextTick != nil && two.bench.service.nextTick != nil
        }
        for node in [one, two] {
          node.bench.clock.advance(by: .seconds(60))
          node.bench.service.timeJumped()
        }
        expected += 1
        try await waitForSettled(expected)
      }
      let times = (one.invoker.requests + two.invoker.requests).map {
        $0.field("x-cloudscheduler-scheduletime")
      }
      #expect(times.count == expected && Set(times).count == expected)
      group.cancelAll()
    }
  }
}
