package import DocumentModel
package import Events
package import Identity
import InvocationContext
package import StorageEngine

/// The log of commits, whose records are written in the same batch as the documents.
///
/// The key of a record is the sequence of its commit as 8 big-endian bytes. A commit without
/// changes and occurrences has no record.
package enum CommitLog {
  /// The keyspace of the records.
  package static let keyspace = Keyspace("events", .log)

  /// The approximate maximum size of a page in bytes, which limits the memory for large commits.
  package static let pageBytesMax = 4 << 20

  private static let trimmedKeyspace = Keyspace("event_trim", .few)

  /// Adds the record of a commit to its batch and returns the record with its size in the log.
  ///
  /// The cause of the record is the cause of the calling task. The sequence of the returned record
  /// is 0 until the commit has one. If there are no changes or occurrences, nothing is added and
  /// the result is nil. The exception is a discontinuity, which always has a record.
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

  /// Returns the records that follow `sequence`, in order.
  ///
  /// The result has at most `limit` records and ends at `pageBytesMax`, but has at least one record
  /// if there is any. Throws `CorruptDataError` for bytes that are not a record.
  package static func records(
    after sequence: UInt64,
    limit: Int,
    in snapshot: any StorageSnapshot
  ) throws -> [CommitRecord] {
    try entries(after: sequence, limit: limit, in: snapshot).map(\.record)
  }

  /// Returns the record of a commit with its size; nil if it had none or has been trimmed.
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

  /// Returns the sequence of the last record; 0 if the log is empty.
  package static func lastSequence(in snapshot: any StorageSnapshot) throws -> UInt64 {
    var last: UInt64 = 0
    try snapshot.scan(keyspace, from: nil, to: nil, descending: true) { key, _ in
      last = try decode(key: key)
      return false
    }
    return last
  }

  /// Returns the sequence of the last record committed at or before a time; 0 if there is none.
  ///
  /// Records up to this sequence may have been trimmed. The search needs O(log n) reads.
  package static func sequence(
    at time: Timestamp,
    in snapshot: any StorageSnapshot
  ) throws -> UInt64 {
    // All records up to `low` are at or before the time. All records after `high` are later.
    var low: UInt64 = 0
    var high = try lastSequence(in: snapshot)
    while low < high {
      let middle = low + (high - low + 1) / 2
      var found: (sequence: UInt64, time: Timestamp)?
      // The last record up to the middle decides for all sequences between it and the middle.
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

  /// Returns the sequence and time of the last trimmed record; nil before the first trim.
  ///
  /// The history up to and including that record can no longer be read.
  package static func trimmedThrough(
    in snapshot: any StorageSnapshot
  ) throws -> (sequence: UInt64, commitTime: Timestamp)? {
    guard let stored = try snapshot.get(trimmedKeyspace, []) else { return nil }
    var decoder = BinaryDecoder(stored.bytes)
    let sequence = try decoder.number()
    return (sequence, Timestamp(microseconds: try decoder.signed()))
  }

  /// Deletes the records up to and including `record`, and stores how far the log is trimmed.
  static func trim(through record: CommitRecord, in batch: inout StorageBatch) {
    batch.deleteRange(keyspace, from: nil, to: key(record.sequence + 1))
    var encoder = BinaryEncoder()
    encoder.append(record.sequence)
    encoder.append(signed: record.commitTime.microseconds)
    batch.put(trimmedKeyspace, [], encoder.bytes)
  }

  /// Returns the records that follow `sequence`, in order: at most `limit`, and at most those that
  /// fit into a page.
  package static func entries(
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

  /// Returns the total size and number of at most `limit` records, and the last sequence.
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

  /// Returns the records that follow `sequence`, and takes those in `known` without reading them.
  ///
  /// The result is limited like that of `records(after:limit:in:)`.
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

package struct EventEntry: Sendable {
  package var record: CommitRecord
  package var bytes: Int
}
