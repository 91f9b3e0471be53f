package import DocumentModel
import EventLog
import QueryEngine
package import StorageEngine
import Synchronization

/// Reading a whole database, a bounded part at a time.
extension DocumentDatabase {
  /// Returns the time of the latest state, for use with `page`.
  package func readTime() async throws -> Timestamp {
    try await readStorage { _ in }.time
  }

  /// Returns the result of `body` for a view of the storage, and the time of that view.
  ///
  /// With that time, `page` returns the documents of the same view.
  package func readStorage<Result: Sendable>(
    _ body: (any StorageSnapshot) throws -> Result
  ) async throws -> (result: Result, time: Timestamp) {
    let read = try await readLatest { try body($0.snapshot) }
    return (read.answer, read.readTime)
  }

  /// Returns the databases of a project that have documents or past versions, in order.
  package func databases(of project: String) async throws -> [DatabaseName] {
    let prefix = DocumentKeys.projectPrefix(project)
    return try await storage.read { snapshot in
      var found: [DatabaseName] = []
      for keyspace in [DocumentKeys.keyspace, PastVersions.keyspace] {
        var from: [UInt8]? = prefix
        while let start = from {
          from = nil
          try snapshot.scan(
            keyspace,
            from: start,
            to: keyAfter(prefix: prefix),
            descending: false
          ) { _, value in
            let database =
              keyspace == DocumentKeys.keyspace
              ? try DocumentKeys.decodeName(value.bytes).database
              : try PastVersions.name(value.bytes).database
            if !found.contains(database) { found.append(database) }
            from = keyAfter(prefix: DocumentKeys.databasePrefix(database))
            return false
          }
        }
      }
      return found.sorted { "\($0)" < "\($1)" }
    }
  }

  /// Returns documents of a database as they were at `time`, starting at the key `from`.
  ///
  /// The documents are in the order of their keys; `next` is the key at which the next page starts,
  /// and nil for the last page. Writes made between pages are not seen. Throws
  /// `FAILED_PRECONDITION` once the past is no longer kept: after an hour, after very many writes,
  /// or after a reset or an import.
  package func page(
    of database: DatabaseName,
    from: [UInt8]?,
    at time: Timestamp
  ) async throws -> (documents: [FirestoreDocument], next: [UInt8]?) {
    let configuration = configuration
    return try await read(ReadSet(), database, at: .readTime(time)) { reader in
      var range = KeyRange(prefix: DocumentKeys.databasePrefix(database))
      if let from { range.startAtLeast(from) }
      var end: [UInt8]?
      let past = try reader.versions(range, bytesMax: configuration.queryPageBytesMax)
      if let next = past.next {
        end = next
        range.endAtMost(next)
      }
      var merge = PageMerge(past: past.versions)
      var bytes = 0
      try reader.snapshot.scan(
        DocumentKeys.keyspace,
        from: range.from,
        to: range.to,
        descending: false
      ) { key, value in
        merge.add(key, reader.existed(value) ? try DocumentKeys.decode(value.bytes) : nil)
        bytes += value.bytes.count
        guard
          merge.documents.count >= configuration.queryPageDocumentsMax
            || bytes >= configuration.queryPageBytesMax
        else { return true }
        end = keyAfter(prefix: key)
        return false
      }
      merge.finish(before: end)
      return (merge.documents, end)
    }.answer
  }
}

/// A merge that replaces a snapshot's documents by their older versions, in the order of keys.
private struct PageMerge {
  private(set) var documents: [FirestoreDocument] = []
  private var past: ArraySlice<PastVersions.Version>

  init(past: [PastVersions.Version]) {
    self.past = past[...]
  }

  /// Adds the snapshot's next document, or nil for a document that did not exist at that time.
  mutating func add(_ key: [UInt8], _ document: FirestoreDocument?) {
    finish(before: key)
    if let version = past.first, version.key.elementsEqual(key) {
      past.removeFirst()
      if let before = version.document { documents.append(before) }
    } else if let document {
      documents.append(document)
    }
  }

  /// Adds the versions below a key, or all remaining ones if it is nil.
  mutating func finish(before key: [UInt8]?) {
    while let version = past.first {
      if let key, ValueOrder.compareBytes(version.key, key) != .less { return }
      past.removeFirst()
      if let before = version.document { documents.append(before) }
    }
  }
}
