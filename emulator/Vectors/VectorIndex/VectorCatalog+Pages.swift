import StorageEngine

/// A record with its index and namespace.
package struct VectorRow: Sendable, Hashable {
  package var index: String
  package var namespace: String
  package var record: VectorRecord

  /// Creates a row from a record, its index and its namespace.
  package init(index: String, namespace: String, record: VectorRecord) {
    self.index = index
    self.namespace = namespace
    self.record = record
  }
}

/// Reading of all records in pages of bounded size.
extension VectorCatalog {
  /// Returns a page of records, starting at the key `from`.
  ///
  /// The records are ordered by index, namespace and id; `next` is nil after the last page. Each
  /// record is complete. Writes between two pages may be visible.
  func page(from: [UInt8]?) async throws -> (rows: [VectorRow], next: [UInt8]?) {
    try await storage.read { snapshot in
      var page: (rows: [VectorRow], next: [UInt8]?) = ([], nil)
      try snapshot.scan(VectorRows.records, from: from, to: nil, descending: false) { key, value in
        page.rows.append(try VectorRows.row(value.bytes))
        guard page.rows.count >= Self.loadPageMax else { return true }
        page.next = key + [0]
        return false
      }
      return page
    }
  }
}
