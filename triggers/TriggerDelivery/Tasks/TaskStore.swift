import DocumentModel
import StorageEngine

/// The names of tasks, with the delivery of each task.
///
/// The name of an ended task stays reserved for some time.
struct TaskStore: Sendable {
  /// Rows by name; a key consists of the queue, a zero byte and the id.
  static let names = Keyspace("task_names")
  /// Used names, ordered by the time their task ended.
  static let used = Keyspace("task_names_used")
  /// The paused queues.
  static let paused = Keyspace("task_queues_paused")

  /// The entry for a name.
  enum Name: Sendable {
    /// The name's task has this delivery, which is not settled.
    case live(DeliveryID)
    /// The name's task ended at this time.
    case used(Timestamp)
  }

  let storage: any OrderedStorage

  /// The stored entry for a name and its row version; nil if the name is free.
  func find(queue: String, id: String) async throws -> (name: Name, version: UInt64)? {
    try await storage.read { snapshot in
      guard let stored = try snapshot.get(Self.names, Self.key(queue, id)) else { return nil }
      guard !stored.bytes.isEmpty else {
        let id = DeliveryID(sequence: stored.version, changeIndex: 0, function: queue)
        return (.live(id), stored.version)
      }
      var decoder = BinaryDecoder(stored.bytes)
      return (.used(Timestamp(microseconds: try decoder.signed())), stored.version)
    }
  }

  /// Takes a name in the batch that records its task; the row's version is the task's sequence.
  static func take(queue: String, id: String, in batch: inout StorageBatch) {
    batch.put(names, key(queue, id), [])
  }

  /// Returns the deliveries of a queue's unfinished tasks after an id, ordered by id.
  ///
  /// Returns at most `limit` deliveries.
  func list(queue: String, after id: String?, limit: Int) async throws -> [Delivery] {
    let prefix = Self.key(queue, "")
    let start = id.map { Self.key(queue, $0) + [0] } ?? prefix
    return try await storage.read { snapshot in
      var found: [Delivery] = []
      try snapshot.scan(
        Self.names,
        from: start,
        to: keyAfter(prefix: prefix),
        descending: false
      ) { _, value in
        guard value.bytes.isEmpty else { return true }
        let id = DeliveryID(sequence: value.version, changeIndex: 0, function: queue)
        if let delivery = try DeliveryStore.delivery(id, in: snapshot) { found.append(delivery) }
        return found.count < limit
      }
      return found
    }
  }

  /// Returns the condition for taking a name: the row has not changed since `version` was read.
  static func expectation(queue: String, id: String, version: UInt64?) -> VersionExpectation {
    VersionExpectation(names, key(queue, id), version: version)
  }

  /// Records that a task has ended.
  static func end(queue: String, id: String, at time: Timestamp, in batch: inout StorageBatch) {
    var encoder = BinaryEncoder()
    encoder.append(signed: time.microseconds)
    batch.put(names, key(queue, id), encoder.bytes)
    batch.put(used, timeKey(time) + key(queue, id), [])
  }

  /// Frees names whose tasks ended before `time`, a bounded number at once.
  func free(before time: Timestamp) async throws {
    let old = try await storage.read { snapshot -> [[UInt8]] in
      var old: [[UInt8]] = []
      try snapshot.scan(Self.used, from: nil, to: Self.timeKey(time), descending: false) { key, _ in
        old.append(key)
        return old.count < Self.freedMax
      }
      return old
    }
    guard !old.isEmpty else { return }
    var batch = StorageBatch()
    for key in old {
      batch.delete(Self.used, key)
      let name = Array(key.dropFirst(8))
      // A name that was taken again in the meantime must stay.
      let isOld = try await storage.read { snapshot in
        guard let row = try snapshot.get(Self.names, name), !row.bytes.isEmpty else { return false }
        var decoder = BinaryDecoder(row.bytes)
        return try Timestamp(microseconds: decoder.signed()) < time
      }
      if isOld { batch.delete(Self.names, name) }
    }
    try await storage.commit(batch, durability: .relaxed)
  }

  /// Stores durably whether a queue is paused.
  func setPaused(_ isPaused: Bool, queue: String) async throws {
    var batch = StorageBatch()
    if isPaused {
      batch.put(Self.paused, Array(queue.utf8), [])
    } else {
      batch.delete(Self.paused, Array(queue.utf8))
    }
    try await storage.commit(batch)
  }

  /// Returns the paused queues.
  func pausedQueues() async throws -> [String] {
    try await storage.read { snapshot in
      var queues: [String] = []
      try snapshot.scan(Self.paused, prefix: []) { key, _ in
        queues.append(String(decoding: key, as: UTF8.self))
        return true
      }
      return queues
    }
  }

  private static func key(_ queue: String, _ id: String) -> [UInt8] {
    Array(queue.utf8) + [0] + Array(id.utf8)
  }

  private static func timeKey(_ time: Timestamp) -> [UInt8] {
    withUnsafeBytes(of: (UInt64(bitPattern: time.microseconds) ^ (1 << 63)).bigEndian) { Array($0) }
  }

  private static let freedMax = 1000
}
