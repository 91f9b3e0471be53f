import DocumentModel
package import Events
package import StorageEngine

/// The indexes as of one moment, for the batch that a writer builds at that moment.
package struct IndexMaintainer {
  let catalog: IndexCatalog
  let maintenanceCost: IndexMaintenanceCost
  /// Called for an index whose maintenance cost should be evaluated.
  let suspect: @Sendable (UInt64) -> Void

  /// Adds the effects of a document's change on the indexes to a batch.
  package func append(_ change: DocumentChange, to batch: inout StorageBatch) {
    let indexes = catalog.indexes(
      change.name.database,
      collectionID: change.name.collectionID
    )
    for index in indexes {
      let before = Set(change.before.map { IndexEntry.entries(of: $0, in: index) } ?? [])
      let after = Set(change.after.map { IndexEntry.entries(of: $0, in: index) } ?? [])
      let old = before.subtracting(after)
      let new = after.subtracting(before)
      for entry in old { batch.delete(IndexEntry.keyspace, entry.key) }
      for entry in new { batch.put(IndexEntry.keyspace, entry.key, entry.value) }
      if maintenanceCost.add(old.count + new.count, to: index.id) { suspect(index.id) }
    }
  }
}
