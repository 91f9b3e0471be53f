import DocumentModel
import StorageEngine

/// The rows of the deliveries: one by id, and one by due time for each that is pending.
struct DeliveryStore: Sendable {
  static let rows = Keyspace("deliveries")
  static let due = Keyspace("deliveries_due")

  let storage: any StorageEngine

  /// Adds rows for new deliveries to a batch.
  static func insert(_ deliveries: [Delivery], into batch: inout WriteBatch) {
    for delivery in deliveries {
      batch.put(rows, delivery.id.key, delivery.encoded())
      batch.put(due, dueKey(delivery), [])
    }
  }

  /// Replaces a delivery's row after a try; relaxed, for redelivery covers its loss.
  func update(from old: Delivery, to new: Delivery) async throws {
    var batch = WriteBatch()
    batch.delete(Self.due, Self.dueKey(old))
    batch.put(Self.rows, new.id.key, new.encoded())
    if !new.state.isSettled { batch.put(Self.due, Self.dueKey(new), []) }
    try await storage.commit(batch, durability: .relaxed)
  }

  /// Removes a delivery with all it says.
  func remove(_ delivery: Delivery) async throws {
    var batch = WriteBatch()
    batch.delete(Self.due, Self.dueKey(delivery))
    batch.delete(Self.rows, delivery.id.key)
    try await storage.commit(batch, durability: .synced)
  }

  /// Up to `limit` pending deliveries, the longest due first, and whether that was all.
  func pending(limit: Int) async throws -> (deliveries: [Delivery], complete: Bool) {
    try await storage.read { snapshot in
      var found: [Delivery] = []
      var complete = true
      try snapshot.scan(Self.due, prefix: []) { key, _ in
        guard found.count < limit else {
          complete = false
          return false
        }
        let row = Array(key.dropFirst(8))
        if let value = try snapshot.get(Self.rows, row) {
          let delivery = try Delivery(decoding: value.bytes)
          // A write that failed halfway may have left a due time behind.
          if !delivery.state.isSettled { found.append(delivery) }
        }
        return true
      }
      return (found, complete)
    }
  }

  /// How many deliveries are pending.
  func pendingCount() async throws -> Int {
    try await storage.read { snapshot in
      var count = 0
      try snapshot.scan(Self.due, prefix: []) { _, _ in
        count += 1
        return true
      }
      return count
    }
  }

  /// One delivery, or nil.
  func delivery(_ id: DeliveryID) async throws -> Delivery? {
    try await storage.read { snapshot in
      try snapshot.get(Self.rows, id.key).map { try Delivery(decoding: $0.bytes) }
    }
  }

  /// The newest deliveries first, at most `limit` of those that `filter` accepts.
  func list(
    limit: Int,
    scanMax: Int,
    where filter: @Sendable (Delivery) -> Bool
  ) async throws -> [Delivery] {
    try await storage.read { snapshot in
      var found: [Delivery] = []
      var scanned = 0
      try snapshot.scan(Self.rows, prefix: [], descending: true) { _, value in
        let delivery = try Delivery(decoding: value.bytes)
        scanned += 1
        if filter(delivery) { found.append(delivery) }
        return found.count < limit && scanned < scanMax
      }
      return found
    }
  }

  /// Deletes the oldest settled rows beyond `keep`, at most `batchMax` at once.
  ///
  /// Failed and dead ones go like the others: what is kept is bounded by count alone.
  func trim(keep: Int, batchMax: Int) async throws {
    let surplus = try await storage.read { snapshot -> [[UInt8]] in
      var settled: [[UInt8]] = []
      var count = 0
      try snapshot.scan(Self.rows, prefix: [], descending: true) { key, value in
        guard try Delivery(decoding: value.bytes).state.isSettled else { return true }
        count += 1
        if count > keep { settled.append(key) }
        return settled.count < batchMax
      }
      return settled
    }
    guard !surplus.isEmpty else { return }
    var batch = WriteBatch()
    for key in surplus { batch.delete(Self.rows, key) }
    try await storage.commit(batch, durability: .relaxed)
  }

  private static func dueKey(_ delivery: Delivery) -> [UInt8] {
    var key = KeyEncoder()
    key.append(UInt64(bitPattern: delivery.dueTime.microseconds) ^ (1 << 63))
    key.append(raw: delivery.id.key)
    return key.bytes
  }
}
