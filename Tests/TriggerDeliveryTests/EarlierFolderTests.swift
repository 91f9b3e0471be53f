import EventLog
import SQLiteStorage
import StorageEngine
import TestSupport
import Testing

@testable import TriggerDelivery

@Suite("Data folders of earlier versions", .timeLimit(.minutes(1)))
struct EarlierFolderTests {
  private let invoker = ScriptedInvoker()

  private func bench(_ storage: SQLiteStore) throws -> DeliveryBench {
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["f": .created("things/{id}")])
    return bench
  }

  /// Adds the rows by which earlier versions divided deliveries among servers.
  private func addClaims(to batch: inout StorageBatch) {
    for shard in UInt8(0)...16 {
      let owner = shard % 2 == 0 ? "one" : "two"
      batch.put(Keyspace("dispatch_shards"), [shard], Array(owner.utf8))
    }
    for server in ["one", "two"] { batch.put(Keyspace("dispatchers"), Array(server.utf8), []) }
    // A notice of the server "one": there is 1 function, and "f" has 1 new delivery.
    let notice: [UInt8] = [3, 0x6F, 0x6E, 0x65, 1, 1, 0x66, 1]
    batch.put(Keyspace("dispatch_news"), [3, 0, 0, 0, 0, 0, 0, 0, 1], notice)
  }

  @Test("What several servers of an earlier version had claimed is delivered, and once")
  func claimed() async throws {
    let folder = try TemporaryFolder()
    let storage = try SQLiteStore(folder: folder.path, logger: .silent)
    let old = try bench(storage)
    var events: [String] = []
    var batch = StorageBatch()
    for number in 0..<40 {
      let event = try await old.create("things/\(number)")
      let id = try #require(DeliveryID("\(event).f"))
      let stored = try await DeliveryStore(storage: storage).event(at: id.place)
      DeliveryStore.insert(Delivery(id: id, event: try #require(stored)), into: &batch)
      EventCursor.put(DeliveryService.cursorName, sequence: id.sequence, in: &batch)
      events.append(event)
    }
    addClaims(to: &batch)
    try await storage.commit(batch)
    try await storage.close()

    for _ in 0..<2 {
      let storage = try SQLiteStore(folder: folder.path, logger: .silent)
      try await bench(storage).run { bench in
        try await bench.service.waitUntilIdle()
        #expect(bench.service.administration.pendingCount == 0)
      }
      try await storage.close()
    }
    #expect(invoker.runs.map(\.event).sorted() == events.sorted())
  }
}
