import DocumentModel
import StorageEngine

/// The rows of the deliveries: one by id, and one by due time for each that is pending.
struct DeliveryStore: Sendable {
  static let rows = Keyspace("deliveries")
  static let due = Keyspace("deliveries_due")

  let storage: any StorageEngine

  /// A delivery with the size of its row.
  typealias Stored = (delivery: Delivery, bytes: Int)

  /// Adds rows for new deliveries to a batch.
  static func insert(_ deliveries: [Delivery], into batch: inout WriteBatch) -> [Stored] {
    deliveries.map { delivery in
      let row = delivery.encoded()
      batch.put(rows, delivery.id.key, row)
      batch.put(due, dueKey(delivery), [])
      return (delivery, row.count)
    }
  }

  /// Replaces a delivery's row after a try; relaxed, for redelivery covers its loss.
  @discardableResult
  func update(from old: Delivery, to new: Delivery) async throws -> Stored {
    let row = new.encoded()
    var batch = WriteBatch()
    batch.delete(Self.due, Self.dueKey(old))
    batch.put(Self.rows, new.id.key, row)
    if !new.state.isSettled { batch.put(Self.due, Self.dueKey(new), []) }
    try await storage.commit(batch, durability: .relaxed)
    return (new, row.count)
  }

  /// The pending deliveries that are due first, and when the next after them is due.
  ///
  /// At most `limit`, and no more once they have `bytesMax` bytes, but at least one if there is one.
  func pending(
    limit: Int,
    bytesMax: Int
  ) async throws -> (deliveries: [Stored], nextDue: Timestamp?) {
    try await storage.read { snapshot in
      var found: [Stored] = []
      var bytes = 0
      var nextDue: Timestamp?
      try snapshot.scan(Self.due, prefix: []) { key, _ in
        guard found.count < limit, bytes < bytesMax else {
          nextDue = try Self.dueTime(key)
          return false
        }
        guard let row = try snapshot.get(Self.rows, Array(key.dropFirst(8))) else { return true }
        let delivery = try Delivery(decoding: row.bytes)
        guard !delivery.state.isSettled else { return true }
        found.append((delivery, row.bytes.count))
        bytes += row.bytes.count
        return true
      }
      return (found, nextDue)
    }
  }

  /// How many deliveries are pending; reads in pieces, so that others can read in between.
  func pendingCount() async throws -> Int {
    var count = 0
    var from: [UInt8]? = []
    while let start = from {
      let (counted, last) = try await storage.read { snapshot -> (Int, [UInt8]?) in
        var counted = 0
        var last: [UInt8]?
        try snapshot.scan(Self.due, from: start, to: nil, descending: false) { key, _ in
          counted += 1
          if counted == Self.countMax { last = key }
          return counted < Self.countMax
        }
        return (counted, last)
      }
      count += counted
      // The smallest key above.
      from = last.map { $0 + [0] }
    }
    return count
  }

  /// Keys counted in one read.
  private static let countMax = 10_000

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

  private static func dueTime(_ key: [UInt8]) throws(CorruptDataError) -> Timestamp {
    guard key.count > 8 else { throw CorruptDataError("the due time of a delivery") }
    let bits = key.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    return Timestamp(microseconds: Int64(bitPattern: bits ^ (1 << 63)))
  }

  private static func dueKey(_ delivery: Delivery) -> [UInt8] {
    var key = KeyEncoder()
    key.append(UInt64(bitPattern: delivery.dueTime.microseconds) ^ (1 << 63))
    key.append(raw: delivery.id.key)
    return key.bytes
  }
}
