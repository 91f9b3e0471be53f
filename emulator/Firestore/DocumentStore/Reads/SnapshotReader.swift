import DocumentModel
import EventLog
import QueryEngine
import RuntimeSupport
import StorageEngine

/// A storage snapshot read as of a time.
struct SnapshotReader {
  let snapshot: any StorageSnapshot
  /// The time to read at; nil reads the snapshot's own state.
  let time: Timestamp?
  let overlayBytesMax: Int

  /// One document.
  func document(_ name: DocumentName) throws -> FirestoreDocument? {
    let key = DocumentKeys.key(name)
    let current = try snapshot.get(DocumentKeys.keyspace, key).map {
      try DocumentKeys.decode($0.bytes)
    }
    guard let time else { return current }
    return try PastVersions.document(key, at: time, current: current, in: snapshot)
  }

  /// The documents of a range that differ from the snapshot, as they were at the time.
  func overlay(_ range: KeyRange) throws -> [DocumentName: FirestoreDocument?] {
    guard let time else { return [:] }
    return try PastVersions.overlay(range, at: time, bytesMax: overlayBytesMax, in: snapshot)
  }

  /// Like `overlay`, but only as much as fits into `bytesMax`, with the key to continue from.
  func past(
    _ range: KeyRange,
    bytesMax: Int
  ) throws -> (versions: [PastVersions.Version], next: [UInt8]?) {
    guard let time else { return ([], nil) }
    return try PastVersions.page(range, at: time, bytesMax: bytesMax, in: snapshot)
  }
}

/// The time of the last commit, kept with the documents.
enum StoredClock {
  private static let keyspace = Keyspace("commit_clock", .few)

  /// The time of the last commit that a snapshot shows.
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

  /// The time before which the store cannot be read, because something was changed without trace.
  static func pastStart(_ snapshot: any StorageSnapshot) throws -> Timestamp? {
    guard let stored = try snapshot.get(keyspace, pastStartKey) else { return nil }
    var decoder = BinaryDecoder(stored.bytes)
    return Timestamp(microseconds: try decoder.signed())
  }

  /// Marks a batch's time as the start of the past; for a batch that keeps no before-images.
  static func writePastStart(_ time: Timestamp, to batch: inout StorageBatch) {
    var encoder = BinaryEncoder()
    encoder.append(signed: time.microseconds)
    batch.put(keyspace, pastStartKey, encoder.bytes)
  }

  private static let pastStartKey: [UInt8] = [1]
}
