import DocumentModel
import StorageEngine

/// A batch with the next documents to add to an index that is being built.
struct IndexChunk: Sendable {
  private(set) var batch = StorageBatch()
  /// The versions of the documents that were read.
  private(set) var expectations: [VersionExpectation] = []
  /// The key up to which the index is built after the batch; nil if it is complete.
  private(set) var through: [UInt8]?

  /// Reads at least one document, if there is one, within the given limits.
  init(
    _ index: Index,
    after through: [UInt8],
    documentsMax: Int,
    bytesMax: Int,
    seeksMax: Int,
    in snapshot: any StorageSnapshot
  ) throws {
    let database = index.definition.database
    var range = KeyRange(prefix: DocumentKeys.databasePrefix(database))
    if !through.isEmpty { range.startAtLeast(through + [0]) }
    var batch = StorageBatch()
    var expectations: [VersionExpectation] = []
    var last: [UInt8]?
    var bytes = 0
    let scan = DocumentScan(snapshot: snapshot, database: database)
    var seeks = 1
    let stopped = try scan.group(
      index.definition.collectionID,
      in: range,
      passing: {
        seeks += 1
        return seeks <= seeksMax
      }
    ) { key, value in
      let document = try DocumentKeys.decode(value.bytes)
      for entry in IndexEntry.entries(of: document, in: index) {
        batch.put(IndexEntry.keyspace, entry.key, entry.value)
      }
      expectations.append(
        VersionExpectation(DocumentKeys.keyspace, key, version: value.version)
      )
      bytes += value.bytes.count
      guard expectations.count < documentsMax, bytes < bytesMax else {
        last = key
        return false
      }
      return true
    }
    self.batch = batch
    self.expectations = expectations
    self.through = last ?? stopped
  }
}
