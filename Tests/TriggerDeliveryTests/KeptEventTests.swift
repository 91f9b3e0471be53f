import Invocation
import DocumentModel
import EventLog
import NIOCore
import StatusCodes
import StorageEngine
import TaskQueueModel
import Testing

@testable import TriggerDelivery

@Suite("Events that the log gives up", .timeLimit(.minutes(5)))
struct KeptEventTests {
  private let storage = MemoryStorage()
  private let invoker = ScriptedInvoker()

  /// Trims all records from the log, as retention does.
  private func trimAll() async throws {
    let batch = try await storage.read { snapshot in
      let records = try CommitLog.records(after: 0, limit: 1000, in: snapshot)
      var batch = StorageBatch()
      batch.deleteRange(CommitLog.keyspace, from: nil, to: nil)
      try DeliveryService.keepNeeded(records, in: snapshot, to: &batch)
      return batch
    }
    try await storage.commit(batch)
  }

  private func keptCount() async throws -> Int {
    try await DeliveryStore(storage: storage).count(DeliveryStore.events)
  }

  @Test("What waits for a retry, for its time, or has failed still has its event; the rest goes")
  func kept() async throws {
    invoker.set("later") { $0 == 1 ? .failure("no") : .ok }
    invoker.set("failing") { $0 == 1 ? .failure("no") : .ok }
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions([
      "later": .created("things/{id}", retries: true), "failing": .created("bad/{id}"),
      "fine": .created("{any}/{id}"), "queue": .queue(),
    ])
    try await bench.run { bench in
      try await bench.create("things/a")
      try await bench.create("others/b")
      try await bench.create("bad/c")
      let time = bench.now.advanced(by: .seconds(60))
      let task = NewTask(id: "t", body: [1, 2], scheduleTime: time)
      _ = try await bench.service.tasks.enqueue(task, in: "queue")
      try await bench.service.waitUntilIdle()
      try await trimAll()
      #expect(try await keptCount() == 3)

      let tasks = try await bench.service.tasks.all(in: "queue")
      #expect(tasks.map(\.body) == [[1, 2]])
      let failed = try #require(
        try await bench.service.administration.list(state: .failed).first
      )
      _ = try await bench.service.administration.retry(failed.id)
      try await bench.jump(.seconds(60))

      let requests = invoker.requests
      for function in ["later", "failing"] {
        let sizes = requests.filter { $0.function == function }.map(\.wholeBody.readableBytes)
        #expect(sizes.count == 2 && sizes[0] == sizes[1])
      }
      #expect(requests.last { $0.function == "queue" }?.wholeBody.readableBytes == 2)
      let store = DeliveryStore(storage: storage)
      #expect(try await store.sweepEvents(after: nil, limit: 100) == nil)
      #expect(try await keptCount() == 0)
    }
  }

  @Test("A kept event stays while one of its deliveries needs it, however often it is swept")
  func swept() async throws {
    invoker.set("later") { _ in .failure("no") }
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions([
      "later": .created("things/{id}", retries: true), "failing": .created("none/{id}"),
    ])
    try await bench.run { bench in
      for id in ["a", "b", "c"] { try await bench.create("things/\(id)") }
      try await bench.service.waitUntilIdle()
      try await trimAll()
      let store = DeliveryStore(storage: storage)
      let next = try await store.sweepEvents(after: nil, limit: 2)
      #expect(next != nil)
      #expect(try await store.sweepEvents(after: next, limit: 2) == nil)
      #expect(try await keptCount() == 3)

      let pending = try await bench.service.administration.list(state: .pending)
      for delivery in pending { try await bench.service.administration.discard(delivery.id) }
      for delivery in pending { try await bench.service.administration.discard(delivery.id) }
      _ = try await store.sweepEvents(after: nil, limit: 100)
      #expect(try await keptCount() == 0)
    }
  }

  @Test("A settled delivery whose event is gone cannot be delivered again, and says why")
  func gone() async throws {
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["f": .created("things/{id}")])
    try await bench.run { bench in
      try await bench.create("things/a")
      try await bench.service.waitUntilIdle()
      try await trimAll()
      let settled = try #require(try await bench.service.administration.list().first)
      let error = await #expect(throws: StatusError.self) {
        try await bench.service.administration.redeliver(settled.id)
      }
      #expect(error?.statusCode == .failedPrecondition)
      #expect(error?.statusMessage.contains("kept no longer") == true)
    }
  }
}
