import DocumentModel
package import EventLog
import Events
import QueryEngine
import RuntimeSupport
package import StorageEngine

/// The before-images of changed documents, by which a snapshot can be read as of an earlier time.
///
/// A key is the document's key and the time of the commit that overwrote the version, in
/// microseconds, 8 bytes big-endian. A value is the version, or says that there was none.
package enum PastVersions {
  /// Where the versions are.
  package static let keyspace = Keyspace("past")

  /// How far back reads may go.
  package static let age: Duration = .seconds(3600)

  /// Deletes the versions that a record's commit overwrote, in the batch that deletes the record.
  package static func forget(_ record: CommitRecord, in batch: inout StorageBatch) {
    for change in record.changes {
      batch.delete(keyspace, key(DocumentKeys.key(change.name), record.commitTime))
    }
  }

  /// Keeps the version that a change overwrites.
  static func keep(
    _ change: DocumentChange,
    documentKey: [UInt8],
    at commitTime: Timestamp,
    in batch: inout StorageBatch
  ) {
    batch.put(keyspace, key(documentKey, commitTime), encode(change.before, change.name))
  }

  /// Whether any commit after `time` changed a document.
  static func isChanged(
    _ documentKey: [UInt8],
    after time: Timestamp,
    in snapshot: any StorageSnapshot
  ) throws -> Bool {
    try first(documentKey, after: time, in: snapshot) != nil
  }

  /// The document as of `time`; `current` is what the snapshot holds.
  static func document(
    _ documentKey: [UInt8],
    at time: Timestamp,
    current: FirestoreDocument?,
    in snapshot: any StorageSnapshot
  ) throws -> FirestoreDocument? {
    guard let bytes = try first(documentKey, after: time, in: snapshot) else { return current }
    return try decode(bytes).document
  }

  /// The documents of a range of keys that were changed after `time`, as they were then.
  ///
  /// Reads all versions kept for the range. Throws `RESOURCE_EXHAUSTED` when they take more than
  /// `bytesMax`.
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
      overlay[version.name] = .some(version.document)
      return true
    }
    return overlay
  }

  /// A document as it was.
  struct Version: Sendable {
    var key: ArraySlice<UInt8>
    var document: FirestoreDocument?
  }

  /// The documents of a range that were changed after `time`, as they were then, in order of keys.
  ///
  /// Stops once they take `bytesMax`; `next` is then the key to continue from.
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
      versions.append(Version(key: documentKey, document: try decode(value.bytes).document))
      bytes += value.bytes.count
      return true
    }
    return (versions, next)
  }

  /// The name of the document that a stored version belongs to.
  static func name(_ bytes: [UInt8]) throws -> DocumentName { try decode(bytes).name }

  /// The version that the first commit after `time` overwrote, or nil when there was none.
  private static func first(
    _ documentKey: [UInt8],
    after time: Timestamp,
    in snapshot: any StorageSnapshot
  ) throws -> [UInt8]? {
    var bytes: [UInt8]?
    try snapshot.scan(
      keyspace,
      from: key(documentKey, Timestamp(microseconds: time.microseconds + 1)),
      to: keyAfter(prefix: documentKey),
      descending: false
    ) { _, value in
      bytes = value.bytes
      return false
    }
    return bytes
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

  /// A stored document starts with its version, which is never `absent`.
  private static func encode(_ document: FirestoreDocument?, _ name: DocumentName) -> [UInt8] {
    if let document { return DocumentKeys.encode(document) }
    var encoder = BinaryEncoder()
    encoder.append(byte: absent)
    encoder.append(name)
    return encoder.bytes
  }

  private static func decode(
    _ bytes: [UInt8]
  ) throws -> (name: DocumentName, document: FirestoreDocument?) {
    guard bytes.first == absent else {
      let document = try DocumentKeys.decode(bytes)
      return (document.name, document)
    }
    return (try DocumentKeys.decodeName(bytes), nil)
  }
}
