import DocumentModel
import EventLog
import QueryEngine
import StorageEngine

/// A reader of a storage snapshot as of a time.
struct SnapshotReader {
  let snapshot: any StorageSnapshot
  /// The moment to read at; nil reads the snapshot's own state.
  let past: Moment?
  let overlayBytesMax: Int

  struct Moment {
    var time: Timestamp
    /// The sequence number of the last commit visible at the time.
    var sequence: UInt64
  }

  /// Creates a reader of the snapshot's own state.
  init(_ snapshot: any StorageSnapshot) {
    self.snapshot = snapshot
    past = nil
    overlayBytesMax = 0
  }

  /// Creates a reader of single documents at a kept time whose last commit is known.
  init(_ snapshot: any StorageSnapshot, at time: Timestamp, _ sequence: UInt64) {
    self.snapshot = snapshot
    past = Moment(time: time, sequence: sequence)
    overlayBytesMax = 0
  }

  /// Creates a reader of a database's state at a time that is still kept.
  init(
    _ snapshot: any StorageSnapshot,
    of database: DatabaseName,
    at time: Timestamp,
    overlayBytesMax: Int
  ) throws {
    self.snapshot = snapshot
    past = Moment(
      time: time,
      sequence: try PastVersions.sequence(at: time, of: database, in: snapshot)
    )
    self.overlayBytesMax = overlayBytesMax
  }

  func document(_ name: DocumentName) throws -> FirestoreDocument? {
    let key = DocumentKeys.key(name)
    if let past, let version = try PastVersions.version(key, at: past.time, in: snapshot) {
      return version.document
    }
    guard let stored = try snapshot.get(DocumentKeys.keyspace, key), existed(stored) else {
      return nil
    }
    return try DocumentKeys.decode(stored.bytes)
  }

  /// Returns true if a stored document that was not changed since existed at the reader's time.
  func existed(_ stored: StoredValue) -> Bool {
    past.map { stored.version <= $0.sequence } ?? true
  }

  /// Returns the documents of a range that were changed since the reader's time, as they were then.
  ///
  /// For all other documents, use `existed`.
  func overlay(_ range: KeyRange) throws -> [DocumentName: FirestoreDocument?] {
    guard let past else { return [:] }
    return try PastVersions.overlay(range, at: past.time, bytesMax: overlayBytesMax, in: snapshot)
  }

  /// Returns the part of `overlay` that fits into `bytesMax`, with the key to continue from.
  func versions(
    _ range: KeyRange,
    bytesMax: Int
  ) throws -> (versions: [PastVersions.Version], next: [UInt8]?) {
    guard let past else { return ([], nil) }
    return try PastVersions.page(range, at: past.time, bytesMax: bytesMax, in: snapshot)
  }
}

/// The times stored with the documents: last commit, bound of read times, start of the past.
enum StoredClock {
  private static let keyspace = Keyspace("commit_clock", .few)

  /// Returns the time of the last commit that a snapshot shows.
  static func read(_ snapshot: any StorageSnapshot) throws -> Timestamp {
    guard let stored = try snapshot.get(keyspace, []) else { return Timestamp(microseconds: 0) }
    var decoder = BinaryDecoder(stored.bytes)
    return Timestamp(microseconds: try decoder.signed())
  }

  /// Adds the commit's own time to its batch.
  static func write(_ time: Timestamp, to batch: inout StorageBatch) {
    var encoder = BinaryEncoder()
    encoder.append(signed: time.microseconds)
    batch.put(keyspace, [], encoder.bytes)
  }

  /// Returns the bound of the read times: every commit of a later run has a later time.
  static func bound(_ snapshot: any StorageSnapshot) throws -> Timestamp {
    guard let stored = try snapshot.get(keyspace, boundKey) else {
      return Timestamp(microseconds: 0)
    }
    var decoder = BinaryDecoder(stored.bytes)
    return Timestamp(microseconds: try decoder.signed())
  }

  /// Adds a bound of the read times to a batch; it must not be below the stored one.
  static func writeBound(_ bound: Timestamp, to batch: inout StorageBatch) {
    var encoder = BinaryEncoder()
    encoder.append(signed: bound.microseconds)
    batch.put(keyspace, boundKey, encoder.bytes)
  }

  /// Returns the commit before which a database cannot be read, because it kept no before-images.
  static func pastStart(
    of database: DatabaseName,
    _ snapshot: any StorageSnapshot
  ) throws -> (sequence: UInt64, time: Timestamp)? {
    var start: (sequence: UInt64, time: Timestamp)?
    // The first layout had one mark for all databases.
    for key in [pastStartPrefix, pastStartKey(database)] {
      guard let stored = try snapshot.get(keyspace, key),
        stored.version > start?.sequence ?? 0
      else { continue }
      var decoder = BinaryDecoder(stored.bytes)
      start = (stored.version, Timestamp(microseconds: try decoder.signed()))
    }
    return start
  }

  /// Marks a batch's time as the start of a database's readable past.
  ///
  /// Use it for a batch that keeps no before-images.
  static func writePastStart(
    of database: DatabaseName,
    _ time: Timestamp,
    to batch: inout StorageBatch
  ) {
    var encoder = BinaryEncoder()
    encoder.append(signed: time.microseconds)
    batch.put(keyspace, pastStartKey(database), encoder.bytes)
  }

  private static let pastStartPrefix: [UInt8] = [1]
  private static let boundKey: [UInt8] = [2]

  private static func pastStartKey(_ database: DatabaseName) -> [UInt8] {
    pastStartPrefix + DocumentKeys.databasePrefix(database)
  }
}
