import DocumentModel
import StorageEngine

/// The rows of deliveries: one by id, and for each pending delivery one by due time.
struct DeliveryStore: Sendable {
  static let rows = Keyspace("deliveries")
  /// Rows by due time, for pending deliveries.
  ///
  /// A key is the due time and the id; a value is a byte of flags and the delivery's lane, if any.
  static let due = Keyspace("deliveries_due")

  let storage: any OrderedStorage

  /// A delivery with the size of its row.
  typealias Stored = (delivery: Delivery, bytes: Int)

  /// A pending delivery as its due row names it.
  struct Pending: Sendable {
    var id: DeliveryID
    var lane: DeliveryLane?
    var isTask: Bool
    var isUnanswered: Bool
    var due: Timestamp

    /// Whether this is a run of a schedule, which never overlaps the previous run.
    var isOfSchedule: Bool { lane == .schedule(of: id.function) }
  }

  /// Adds rows for new deliveries to a batch.
  static func insert(_ deliveries: [Delivery], into batch: inout StorageBatch) -> [Stored] {
    deliveries.map { delivery in
      let row = delivery.encoded()
      batch.put(rows, delivery.id.key, row)
      if !delivery.state.isSettled { batch.put(due, dueKey(delivery), dueValue(delivery)) }
      return (delivery, row.count)
    }
  }

  /// Replaces a delivery's row, in a batch that may hold other changes.
  static func update(from old: Delivery, to new: Delivery, in batch: inout StorageBatch) -> Stored {
    batch.delete(due, dueKey(old))
    return insert([new], into: &batch)[0]
  }

  /// Pending deliveries from a key of the due rows on, and the key of the next page.
  ///
  /// Reading page by page lets others read in between.
  func pending(from start: [UInt8]) async throws -> (page: [Pending], next: [UInt8]?) {
    try await storage.read { snapshot in
      var page: [Pending] = []
      var last: [UInt8]?
      try snapshot.scan(Self.due, from: start, to: nil, descending: false) { key, value in
        page.append(try Self.pending(key, value.bytes))
        if page.count == Self.pageMax { last = key }
        return page.count < Self.pageMax
      }
      // The smallest key above the last one.
      return (page, last.map { $0 + [0] })
    }
  }

  /// Keys read at once.
  private static let pageMax = 10_000

  /// One delivery with the size of its row, or nil.
  func stored(_ id: DeliveryID) async throws -> Stored? {
    try await storage.read { snapshot in
      try snapshot.get(Self.rows, id.key).map { (try Delivery(decoding: $0.bytes), $0.bytes.count) }
    }
  }

  /// One delivery, or nil.
  func delivery(_ id: DeliveryID) async throws -> Delivery? { try await stored(id)?.delivery }

  /// A delivery and those that led to it, newest first, at most `limit`.
  func chain(from id: DeliveryID, limit: Int) async throws -> [Delivery] {
    try await storage.read { snapshot in
      var chain: [Delivery] = []
      var next: DeliveryID? = id
      while let id = next, chain.count < limit, let row = try snapshot.get(Self.rows, id.key) {
        let delivery = try Delivery(decoding: row.bytes)
        chain.append(delivery)
        next = delivery.cause
      }
      return chain
    }
  }

  /// The newest deliveries that `filter` accepts, newest first, at most `limit`.
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

  /// How many rows there are.
  func count() async throws -> Int {
    try await storage.read { snapshot in
      var count = 0
      try snapshot.scan(Self.rows, prefix: [], descending: false) { _, _ in
        count += 1
        return true
      }
      return count
    }
  }

  /// Deletes at most `limit` of the oldest rows, except those that `isKept`; returns how many.
  ///
  /// Failed and dead deliveries are not spared: only the count bounds what is kept.
  func trim(_ limit: Int, except isKept: @Sendable (DeliveryID) -> Bool) async throws -> Int {
    let keys = try await storage.read { snapshot -> [[UInt8]] in
      var keys: [[UInt8]] = []
      try snapshot.scan(Self.rows, prefix: [], descending: false) { key, _ in
        if !isKept(try DeliveryID(key: key)) { keys.append(key) }
        return keys.count < limit
      }
      return keys
    }
    guard !keys.isEmpty else { return 0 }
    var batch = StorageBatch()
    for key in keys { batch.delete(Self.rows, key) }
    try await storage.commit(batch, durability: .relaxed)
    return keys.count
  }

  private static func pending(
    _ key: [UInt8],
    _ value: [UInt8]
  ) throws(CorruptDataError) -> Pending {
    guard key.count > 8 else { throw CorruptDataError("the due time of a delivery") }
    let bits = key.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    return Pending(
      id: try DeliveryID(key: key.dropFirst(8)),
      lane: value.count == 9
        ? DeliveryLane(hash: value.dropFirst().reduce(0) { $0 << 8 | UInt64($1) }) : nil,
      isTask: (value.first ?? 0) & taskFlag != 0,
      isUnanswered: (value.first ?? 0) & unansweredFlag != 0,
      due: Timestamp(microseconds: Int64(bitPattern: bits ^ (1 << 63)))
    )
  }

  private static func dueKey(_ delivery: Delivery) -> [UInt8] {
    var key = KeyEncoder()
    key.append(UInt64(bitPattern: delivery.dueTime.microseconds) ^ (1 << 63))
    key.append(raw: delivery.id.key)
    return key.bytes
  }

  private static func dueValue(_ delivery: Delivery) -> [UInt8] {
    var value: [UInt8] = [0]
    if delivery.task != nil { value[0] |= taskFlag }
    if delivery.isUnanswered { value[0] |= unansweredFlag }
    if let lane = delivery.lane { withUnsafeBytes(of: lane.hash.bigEndian) { value += $0 } }
    return value
  }

  private static let taskFlag: UInt8 = 1
  private static let unansweredFlag: UInt8 = 2
}

extension DeliveryStore.Pending {
  /// A delivery as its due row names it.
  init(_ delivery: Delivery) {
    self.init(
      id: delivery.id,
      lane: delivery.lane,
      isTask: delivery.task != nil,
      isUnanswered: delivery.isUnanswered,
      due: delivery.dueTime
    )
  }
}
