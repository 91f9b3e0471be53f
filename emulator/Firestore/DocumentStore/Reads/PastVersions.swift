import DocumentModel
package import EventLog
import Events
import QueryEngine
import StatusCodes
package import StorageEngine

/// The before-images of changed documents, which allow reading a snapshot as of an earlier time.
///
/// A key is the document's key followed by the time of the commit that overwrote the version, in
/// microseconds, as 8 bytes big-endian. A value is the version, or a mark that there was none.
/// Nothing is kept for a document that a commit creates: the row of the document names the commit
/// that wrote it, and the document has its create time.
package enum PastVersions {
  package static let keyspace = Keyspace("past")

  /// The maximum age of a readable time.
  package static let age: Duration = .seconds(3600)

  /// Deletes the versions that a record's commit overwrote, in the batch that deletes the record.
  package static func forget(_ record: CommitRecord, in batch: inout StorageBatch) {
    for change in record.changes {
      batch.delete(keyspace, key(DocumentKeys.key(change.name), record.commitTime))
    }
  }

  /// Stores the version that a change overwrites.
  static func keep(
    _ change: DocumentChange,
    documentKey: [UInt8],
    at commitTime: Timestamp,
    in batch: inout StorageBatch
  ) {
    // An imported document's create time is older than the commit that stored it.
    guard change.before != nil || change.after?.createTime != commitTime else { return }
    batch.put(keyspace, key(documentKey, commitTime), encode(change.before, change.name))
  }

  /// Returns true if any commit after `time` changed a document.
  static func isChanged(
    _ documentKey: [UInt8],
    after time: Timestamp,
    in snapshot: any StorageSnapshot
  ) throws -> Bool {
    try first(documentKey, after: time, in: snapshot) != nil
  }

  /// Returns the sequence number of the last commit that is visible at a time.
  ///
  /// Rows of the database with higher versions were created or changed later. The time must still
  /// be readable.
  static func sequence(
    at time: Timestamp,
    of database: DatabaseName,
    in snapshot: any StorageSnapshot
  ) throws -> UInt64 {
    // Commits without a record, or whose record was deleted, were made before the readable times.
    max(
      try CommitLog.sequence(at: time, in: snapshot),
      try CommitLog.trimmedThrough(in: snapshot)?.sequence ?? 0,
      try StoredClock.pastStart(of: database, snapshot)?.sequence ?? 0
    )
  }

  /// Returns the version of a document as of `time`, if a later commit has overwritten it.
  static func version(
    _ documentKey: [UInt8],
    at time: Timestamp,
    in snapshot: any StorageSnapshot
  ) throws -> Version? {
    guard let (key, bytes) = try first(documentKey, after: time, in: snapshot) else { return nil }
    let stored = try decode(bytes)
    return Version(
      key: documentKey[...],
      document: stored.document(at: time, overwritten: commitTime(of: key))
    )
  }

  /// Returns the documents of a key range that were changed after `time`, as they were then.
  ///
  /// Documents that were created after `time` and not changed since are not included. Reads all
  /// versions kept for the range. Throws `RESOURCE_EXHAUSTED` if they take more than `bytesMax`.
  static func overlay(
    _ range: KeyRange,
    at time: Timestamp,
    bytesMax: Int,
    in snapshot: any StorageSnapshot
  ) throws -> [DocumentName: FirestoreDocument?] {
    var overlay: [DocumentName: FirestoreDocument?] = [:]
    var bytes = 0
    var last: ArraySlice<UInt8>?
    try snapshot.scan(keyspace, from: range.from, to: range.to, descending: false) { key, value in
      let documentKey = key.dropLast(timeBytes)
      guard commitTime(of: key) > time, documentKey != last else { return true }
      last = documentKey
      bytes += value.bytes.count
      guard bytes <= bytesMax else {
        throw StatusError(
          .resourceExhausted,
          "Too much was changed since \(time) to read what a query needs; read a later time."
        )
      }
      let version = try decode(value.bytes)
      overlay[version.name] = .some(
        version.document(at: time, overwritten: commitTime(of: key))
      )
      return true
    }
    return overlay
  }

  /// An earlier state of a document; nil if it did not exist.
  struct Version: Sendable {
    var key: ArraySlice<UInt8>
    var document: FirestoreDocument?
  }

  /// Returns the documents of a range that changed after `time`, as they were then, in key order.
  ///
  /// Documents that were created after `time` and not changed since are not included. Stops once
  /// the versions take `bytesMax`; `next` is then the key to continue from.
  static func page(
    _ range: KeyRange,
    at time: Timestamp,
    bytesMax: Int,
    in snapshot: any StorageSnapshot
  ) throws -> (versions: [Version], next: [UInt8]?) {
    var versions: [Version] = []
    var next: [UInt8]?
    var bytes = 0
    try snapshot.scan(keyspace, from: range.from, to: range.to, descending: false) { key, value in
      let documentKey = key.dropLast(timeBytes)
      guard commitTime(of: key) > time, documentKey != versions.last?.key else { return true }
      guard bytes < bytesMax else {
        next = Array(documentKey)
        return false
      }
      let version = try decode(value.bytes)
      versions.append(
        Version(
          key: documentKey,
          document: version.document(at: time, overwritten: commitTime(of: key))
        )
      )
      bytes += value.bytes.count
      return true
    }
    return (versions, next)
  }

  /// Returns the name of the document that a stored version belongs to.
  static func name(_ bytes: [UInt8]) throws -> DocumentName { try decode(bytes).name }

  /// Returns the version that the first commit after `time` overwrote; nil if there was none.
  private static func first(
    _ documentKey: [UInt8],
    after time: Timestamp,
    in snapshot: any StorageSnapshot
  ) throws -> (key: [UInt8], bytes: [UInt8])? {
    var found: (key: [UInt8], bytes: [UInt8])?
    try snapshot.scan(
      keyspace,
      from: key(documentKey, Timestamp(microseconds: time.microseconds + 1)),
      to: keyAfter(prefix: documentKey),
      descending: false
    ) { key, value in
      found = (key, value.bytes)
      return false
    }
    return found
  }

  private static let timeBytes = 8
  private static let absent: UInt8 = 0

  private static func key(_ documentKey: [UInt8], _ commitTime: Timestamp) -> [UInt8] {
    var encoder = KeyEncoder(prefix: documentKey)
    encoder.append(UInt64(bitPattern: commitTime.microseconds))
    return encoder.bytes
  }

  private static func commitTime(of key: [UInt8]) -> Timestamp {
    let number = key.suffix(timeBytes).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    return Timestamp(microseconds: Int64(bitPattern: number))
  }

  /// Encodes a version or its absence.
  ///
  /// A stored document starts with its format version, which is never `absent`.
  private static func encode(_ document: FirestoreDocument?, _ name: DocumentName) -> [UInt8] {
    if let document { return DocumentKeys.encode(document) }
    var encoder = BinaryEncoder()
    encoder.append(byte: absent)
    encoder.append(name)
    return encoder.bytes
  }

  private static func decode(_ bytes: [UInt8]) throws -> Stored {
    guard bytes.first == absent else {
      let document = try DocumentKeys.decode(bytes)
      return Stored(name: document.name, document: document)
    }
    return Stored(name: try DocumentKeys.decodeName(bytes), document: nil)
  }

  private struct Stored {
    var name: DocumentName
    var document: FirestoreDocument?

    /// Returns the version as of a time before it was overwritten; nil if it did not exist yet.
    func document(at time: Timestamp, overwritten: Timestamp) -> FirestoreDocument? {
      document.flatMap { $0.wasCreated(after: time, before: overwritten) ? nil : $0 }
    }
  }
}

extension FirestoreDocument {
  /// Returns true if a document that changed at `change` was created by a commit after `time`.
  ///
  /// Imported documents may have create times later than their import; they existed at `time`.
  func wasCreated(after time: Timestamp, before change: Timestamp) -> Bool {
    createTime > time && createTime <= change
  }
}
