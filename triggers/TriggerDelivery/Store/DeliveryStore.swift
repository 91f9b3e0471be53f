import DocumentModel
import EventLog
import StorageEngine

/// The rows of pending and settled deliveries.
///
/// A pending delivery has a row under its function, in the order of the events. The row holds the
/// state of the delivery but not the event, which is in the event log. A postponed delivery also
/// has a row by due time. Rows by lane exist only where a lane does not run in the order of its
/// events: for postponed deliveries and for deliveries parked behind them.
struct DeliveryStore: Sendable {
  /// Pending deliveries by function and event.
  static let pending = Keyspace("deliveries_pending")
  /// Postponed deliveries by function, due time and event; values are empty.
  static let due = Keyspace("deliveries_due_by_function")
  /// Postponed and parked deliveries by function, lane and event; values are empty.
  static let lanes = Keyspace("deliveries_lanes")
  /// Deliveries that succeeded, by event and function.
  static let succeeded = Keyspace("deliveries_succeeded")
  /// Failed and dead deliveries, by event and function.
  ///
  /// They have a keyspace of their own, so that successes never push them out.
  static let failed = Keyspace("deliveries_failed")
  /// Events that deliveries still needed when the log deleted them, by event.
  static let events = Keyspace("deliveries_events")

  let storage: any OrderedStorage

  // MARK: Writing

  /// Adds a new or renewed delivery to a batch.
  static func insert(_ delivery: Delivery, into batch: inout StorageBatch) {
    guard !delivery.state.isSettled else {
      return batch.put(keyspace(of: delivery.state), settledKey(delivery.id), delivery.encoded())
    }
    let function = prefix(delivery.id.function)
    batch.put(pending, function + placeKey(delivery.id.place), delivery.encoded())
    guard delivery.isPostponed else { return }
    batch.put(due, dueKey(function, delivery), [])
    putInLane(delivery, function, in: &batch)
  }

  /// Replaces a pending delivery's rows.
  ///
  /// `hasLaneRows` is true if the delivery may have a row by lane.
  static func update(
    from old: Delivery,
    to new: Delivery,
    hasLaneRows: Bool,
    in batch: inout StorageBatch
  ) {
    let function = prefix(old.id.function)
    if old.isPostponed { batch.delete(due, dueKey(function, old)) }
    if new.state.isSettled {
      batch.delete(pending, function + placeKey(old.id.place))
      if hasLaneRows, let lane = old.lane {
        batch.delete(lanes, laneKey(function, lane) + placeKey(old.id.place))
      }
    }
    insert(new, into: &batch)
  }

  /// Adds the row of a delivery that waits for an earlier delivery of its lane.
  ///
  /// It is then loaded only through its lane.
  static func park(_ delivery: Delivery, in batch: inout StorageBatch) {
    let function = prefix(delivery.id.function)
    if delivery.isPostponed { batch.delete(due, dueKey(function, delivery)) }
    putInLane(delivery, function, in: &batch)
  }

  private static func putInLane(
    _ delivery: Delivery,
    _ function: [UInt8],
    in batch: inout StorageBatch
  ) {
    guard let lane = delivery.lane else { return }
    batch.put(lanes, laneKey(function, lane) + placeKey(delivery.id.place), [])
  }

  /// Returns a batch that deletes failed and dead deliveries.
  ///
  /// The batch also deletes their kept events that no other delivery needs.
  func dropping(_ ids: [DeliveryID]) async throws -> StorageBatch {
    try await storage.read { snapshot in
      var batch = StorageBatch()
      for id in ids { batch.delete(Self.failed, Self.settledKey(id)) }
      for (place, ids) in Dictionary(grouping: ids, by: \.place) {
        let functions = Set(ids.map(\.function))
        guard let others = try Self.functionsNeeding(place, in: snapshot) else { continue }
        let isNeeded = try others.contains { function in
          guard !functions.contains(function) else { return false }
          let delivery = try Self.delivery(DeliveryID(place, function), in: snapshot)
          return delivery.map { $0.state != .succeeded } ?? false
        }
        if !isNeeded { batch.delete(Self.events, Self.placeKey(place)) }
      }
      return batch
    }
  }

  /// Returns all failed and dead deliveries, ordered by the time of their failure.
  func failedRows() async throws -> [FailedRow] {
    var found: [FailedRow] = []
    var next: [UInt8]? = []
    while let start = next {
      let page = try await storage.read { snapshot in
        var page: [Delivery] = []
        try snapshot.scan(Self.failed, from: start, to: nil, descending: false) { key, value in
          let place = try Self.place(key.prefix(16))
          let function = String(decoding: key.dropFirst(16), as: UTF8.self)
          page.append(try Delivery(DeliveryID(place, function), decoding: value.bytes))
          return page.count < Self.failedPageMax
        }
        var reader = EventReader(snapshot)
        // Rows of earlier versions do not contain the size of their events.
        for index in page.indices where page[index].eventBytes == 0 {
          page[index].eventBytes = try reader.event(at: page[index].id.place)?.bytes ?? 0
        }
        return page
      }
      found += page.map { FailedRow($0) }
      next = page.count < Self.failedPageMax ? nil : page.last.map { Self.settledKey($0.id) + [0] }
    }
    return found.sorted { ($0.time, $0.id) < ($1.time, $1.id) }
  }

  /// A failed or dead delivery with the number of bytes kept for it.
  struct FailedRow: Sendable {
    var id: DeliveryID
    var time: Timestamp
    var keptBytes: Int

    init(_ delivery: Delivery) {
      id = delivery.id
      time = delivery.settledTime ?? delivery.commitTime
      keptBytes = delivery.eventBytes + DeliveryStore.rowBytes
    }
  }

  /// The approximate size of a failed delivery's row with its error text.
  static let rowBytes = 512
  /// The number of rows read at once; the events of some rows may have to be read as well.
  private static let failedPageMax = 250

  /// Deletes a settled delivery.
  static func forget(_ delivery: Delivery, in batch: inout StorageBatch) {
    batch.delete(keyspace(of: delivery.state), settledKey(delivery.id))
  }

  // MARK: Reading

  /// Reads one delivery; nil if there is none.
  func delivery(_ id: DeliveryID) async throws -> Delivery? {
    try await storage.read { try Self.delivery(id, in: $0) }
  }

  static func delivery(_ id: DeliveryID, in snapshot: any StorageSnapshot) throws -> Delivery? {
    if let row = try snapshot.get(pending, prefix(id.function) + placeKey(id.place)) {
      return try Delivery(id, decoding: row.bytes)
    }
    for keyspace in [succeeded, failed] {
      if let row = try snapshot.get(keyspace, settledKey(id)) {
        return try Delivery(id, decoding: row.bytes)
      }
    }
    return nil
  }

  /// Reads deliveries, with a flag that is true if their event is stored.
  ///
  /// A delivery is nil if it is unknown.
  func settled(
    _ ids: [DeliveryID]
  ) async throws -> [(delivery: Delivery?, hasEvent: Bool)] {
    try await storage.read { snapshot in
      var reader = EventReader(snapshot)
      return try ids.map { id in
        guard let delivery = try Self.delivery(id, in: snapshot) else { return (nil, false) }
        return (delivery, try reader.event(at: id.place) != nil)
      }
    }
  }

  /// Returns a delivery and the deliveries that led to it, newest first, at most `limit`.
  func chain(from id: DeliveryID, limit: Int) async throws -> [Delivery] {
    try await storage.read { snapshot in
      var chain: [Delivery] = []
      var next: DeliveryID? = id
      while let id = next, chain.count < limit, let delivery = try Self.delivery(id, in: snapshot) {
        chain.append(delivery)
        next = delivery.cause
      }
      return chain
    }
  }

  /// Indicates whether a function has a pending delivery.
  func hasPending(_ function: String) async throws -> Bool {
    try await storage.read { snapshot in
      try Self.first(Self.pending, Self.prefix(function), in: snapshot) != nil
    }
  }

  /// Returns the functions that have pending deliveries.
  static func functionsPending(in snapshot: any StorageSnapshot) throws -> [String] {
    var functions: [String] = []
    var start: [UInt8]? = []
    while let from = start {
      start = nil
      try snapshot.scan(pending, from: from, to: nil, descending: false) { key, _ in
        let function = key.prefix { $0 != 0 }
        functions.append(String(decoding: function, as: UTF8.self))
        // A function's keys continue its name with a zero byte.
        start = Array(function) + [1]
        return false
      }
    }
    return functions
  }

  /// Deletes the oldest rows of a keyspace of settled deliveries; returns their number.
  func trim(_ keyspace: Keyspace, _ limit: Int) async throws -> Int {
    let keys = try await storage.read { snapshot -> [[UInt8]] in
      var keys: [[UInt8]] = []
      try snapshot.scan(keyspace, from: nil, to: nil, descending: false) { key, _ in
        keys.append(key)
        return keys.count < limit
      }
      return keys
    }
    guard let last = keys.last else { return 0 }
    var batch = StorageBatch()
    batch.deleteRange(keyspace, from: nil, to: last + [0])
    try await storage.commit(batch, durability: .relaxed)
    return keys.count
  }

  /// Counts the rows of a keyspace of settled deliveries, whose number is bounded.
  func count(_ keyspace: Keyspace) async throws -> Int {
    try await storage.read { snapshot in
      var count = 0
      try snapshot.scan(keyspace, from: nil, to: nil, descending: false) { _, _ in
        count += 1
        return true
      }
      return count
    }
  }

  // MARK: Keys

  static func keyspace(of state: Delivery.State) -> Keyspace {
    state == .succeeded ? succeeded : failed
  }

  /// Returns the prefix of all rows of a function; names of functions contain no zero byte.
  static func prefix(_ function: String) -> [UInt8] { Array(function.utf8) + [0] }

  static func placeKey(_ place: EventPlace) -> [UInt8] {
    var key = KeyEncoder()
    key.append(place.sequence)
    key.append(place.rank)
    return key.bytes
  }

  static func settledKey(_ id: DeliveryID) -> [UInt8] {
    placeKey(id.place) + Array(id.function.utf8)
  }

  static func laneKey(_ function: [UInt8], _ lane: DeliveryLane) -> [UInt8] {
    var key = KeyEncoder(prefix: function)
    key.append(lane.hash)
    return key.bytes
  }

  static func dueKey(_ function: [UInt8], _ delivery: Delivery) -> [UInt8] {
    dueKey(function, delivery.dueTime) + placeKey(delivery.id.place)
  }

  static func dueKey(_ function: [UInt8], _ time: Timestamp) -> [UInt8] {
    var key = KeyEncoder(prefix: function)
    key.append(UInt64(bitPattern: time.microseconds) ^ (1 << 63))
    return key.bytes
  }

  /// Decodes the event at the end of a key, or at the start of a settled delivery's key.
  static func place(_ bytes: ArraySlice<UInt8>) throws(CorruptDataError) -> EventPlace {
    guard bytes.count == 16 else { throw CorruptDataError("the key of a delivery") }
    return EventPlace(sequence: number(bytes.prefix(8)), rank: number(bytes.suffix(8)))
  }

  static func time(_ bytes: ArraySlice<UInt8>) -> Timestamp {
    Timestamp(microseconds: Int64(bitPattern: number(bytes) ^ (1 << 63)))
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Returns the first key of a keyspace that starts with `prefix`.
  static func first(
    _ keyspace: Keyspace,
    _ prefix: [UInt8],
    in snapshot: any StorageSnapshot
  ) throws -> [UInt8]? {
    var found: [UInt8]?
    try snapshot.scan(keyspace, prefix: prefix) { key, _ in
      found = key
      return false
    }
    return found
  }
}
