package import DocumentModel
package import Events
package import Identity
import RuntimeSupport
package import StorageEngine

/// The log of commits, written in the batch of the documents themselves.
///
/// A record's key is its commit's sequence, 8 bytes big-endian; a commit in which nothing happens
/// leaves no record.
package enum CommitLog {
  /// Where the records are.
  package static let keyspace = Keyspace("events", .log)

  /// The most bytes, roughly, of one page, so that a page of large commits stays small in memory.
  package static let pageBytesMax = 4 << 20

  private static let trimmedKeyspace = Keyspace("event_trim", .few)

  /// Adds the record of a commit to its batch, unless it is for events and nothing happened in the
  /// commit.
  ///
  /// The record's cause is the calling task's cause. Returns the record with its size in the log, or
  /// nil when nothing happened; its sequence is 0 until the commit has one.
  @discardableResult
  package static func append(
    _ changes: [DocumentChange],
    _ occurrences: [Occurrence] = [],
    commitTime: Timestamp,
    database: DatabaseName,
    auth: AuthContext,
    purpose: CommitRecord.Purpose = .events,
    to batch: inout StorageBatch
  ) -> EventEntry? {
    guard !changes.isEmpty || !occurrences.isEmpty || purpose == .discontinuity else { return nil }
    let record = CommitRecord(
      sequence: 0,
      commitTime: commitTime,
      database: database,
      changes: changes,
      occurrences: occurrences,
      auth: auth,
      cause: EventCause.current,
      purpose: purpose
    )
    let encoded = record.encoded
    batch.putAtSequence(keyspace, encoded)
    return EventEntry(record: record, bytes: keyBytes + encoded.count)
  }

  /// The records that follow `sequence`, in order.
  ///
  /// Returns at most `limit` records and stops at `pageBytesMax`, but returns at least one if there
  /// is one. Throws `CorruptDataError` for bytes that are not a record.
  package static func records(
    after sequence: UInt64,
    limit: Int,
    in snapshot: any StorageSnapshot
  ) throws -> [CommitRecord] {
    try entries(after: sequence, limit: limit, in: snapshot).map(\.record)
  }

  /// The record of a commit with its size; nil when it had none, or has been trimmed.
  package static func entry(
    _ sequence: UInt64,
    in snapshot: any StorageSnapshot
  ) throws -> EventEntry? {
    let key = key(sequence)
    return try snapshot.get(keyspace, key).map { stored in
      EventEntry(
        record: try CommitRecord(sequence: sequence, encoded: stored.bytes),
        bytes: keyBytes + stored.bytes.count
      )
    }
  }

  /// The last record's sequence, or 0 when the log is empty.
  package static func lastSequence(in snapshot: any StorageSnapshot) throws -> UInt64 {
    var last: UInt64 = 0
    try snapshot.scan(keyspace, from: nil, to: nil, descending: true) { key, _ in
      last = try decode(key: key)
      return false
    }
    return last
  }

  /// The sequence of the last record whose commit was not after a time; 0 when there is none.
  ///
  /// Records up to it may have been trimmed. Costs O(log n) reads.
  package static func sequence(
    at time: Timestamp,
    in snapshot: any StorageSnapshot
  ) throws -> UInt64 {
    // Everything up to `low` is early enough, everything after `high` too late.
    var low: UInt64 = 0
    var high = try lastSequence(in: snapshot)
    while low < high {
      let middle = low + (high - low + 1) / 2
      var found: (sequence: UInt64, time: Timestamp)?
      // The last record up to the middle stands for all places down to it.
      try snapshot.scan(keyspace, from: nil, to: key(middle + 1), descending: true) { key, value in
        found = (try decode(key: key), try CommitRecord.commitTime(encoded: value.bytes))
        return false
      }
      guard let found, found.sequence > low else {
        low = middle
        continue
      }
      if found.time <= time { low = middle } else { high = found.sequence - 1 }
    }
    return low
  }

  /// The sequence and time of the last record trimmed; nil before the first trim.
  ///
  /// The past up to and including that record can no longer be read.
  package static func trimmedThrough(
    in snapshot: any StorageSnapshot
  ) throws -> (sequence: UInt64, commitTime: Timestamp)? {
    guard let stored = try snapshot.get(trimmedKeyspace, []) else { return nil }
    var decoder = BinaryDecoder(stored.bytes)
    let sequence = try decoder.number()
    return (sequence, Timestamp(microseconds: try decoder.signed()))
  }

  /// Deletes the records up to `record` and notes how far the log is trimmed.
  static func trim(through record: CommitRecord, in batch: inout StorageBatch) {
    batch.deleteRange(keyspace, from: nil, to: key(record.sequence + 1))
    var encoder = BinaryEncoder()
    encoder.append(record.sequence)
    encoder.append(signed: record.commitTime.microseconds)
    batch.put(trimmedKeyspace, [], encoder.bytes)
  }

  static func entries(
    after sequence: UInt64,
    limit: Int,
    in snapshot: any StorageSnapshot
  ) throws -> [EventEntry] {
    var entries: [EventEntry] = []
    guard limit > 0, sequence < .max else { return entries }
    var bytes = 0
    try snapshot.scan(keyspace, from: key(sequence + 1), to: nil, descending: false) { key, value in
      let record = try CommitRecord(sequence: try decode(key: key), encoded: value.bytes)
      entries.append(EventEntry(record: record, bytes: key.count + value.bytes.count))
      bytes += value.bytes.count
      return entries.count < limit && bytes < pageBytesMax
    }
    return entries
  }

  /// The total size of at most `limit` records after `sequence`, and the last record's sequence.
  static func measure(
    after sequence: UInt64,
    limit: Int,
    in snapshot: any StorageSnapshot
  ) throws -> (bytes: Int, count: Int, last: UInt64) {
    var result = (bytes: 0, count: 0, last: sequence)
    guard limit > 0, sequence < .max else { return result }
    try snapshot.scan(keyspace, from: key(sequence + 1), to: nil, descending: false) { key, value in
      result = (
        result.bytes + key.count + value.bytes.count, result.count + 1, try decode(key: key)
      )
      return result.count < limit
    }
    return result
  }

  /// The records that follow `sequence`, of which `known` need not be read; bounded as `records` is.
  static func entries(
    after sequence: UInt64,
    limit: Int,
    knowing known: [UInt64: EventEntry],
    in snapshot: any StorageSnapshot
  ) throws -> [EventEntry] {
    guard !known.isEmpty else { return try entries(after: sequence, limit: limit, in: snapshot) }
    var sequences: [UInt64] = []
    try snapshot.scanKeys(keyspace, from: key(sequence + 1), to: nil, descending: false) { key, _ in
      sequences.append(try decode(key: key))
      return sequences.count < limit
    }
    var entries: [EventEntry] = []
    var bytes = 0
    for sequence in sequences where bytes < pageBytesMax {
      guard let entry = try known[sequence] ?? entry(sequence, in: snapshot) else { continue }
      entries.append(entry)
      bytes += entry.bytes
    }
    return entries
  }

  private static let keyBytes = 8

  private static func key(_ sequence: UInt64) -> [UInt8] {
    StorageBatch.Operation.key(prefix: [], sequence: sequence)
  }

  private static func decode(key: [UInt8]) throws(CorruptDataError) -> UInt64 {
    guard key.count == keyBytes else { throw CorruptDataError("the key of an event record") }
    return key.reduce(0) { $0 << 8 | UInt64($1) }
  }
}

/// A record with its size in the log.
package struct EventEntry: Sendable {
  package var record: CommitRecord
  package var bytes: Int
}
