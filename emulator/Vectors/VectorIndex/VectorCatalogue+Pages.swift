import StorageEngine

/// Records of every index and namespace as storage holds them.
package struct VectorPage: Sendable {
  /// In the order of index, namespace and id.
  package var rows: [Row]
  /// Where the next page starts; nil after the last.
  package var next: [UInt8]?

  /// A record with its index and namespace.
  package struct Row: Sendable, Hashable {
    package var index: String
    package var namespace: String
    package var record: VectorRecord

    /// A record of an index and namespace.
    package init(index: String, namespace: String, record: VectorRecord) {
      self.index = index
      self.namespace = namespace
      self.record = record
    }
  }
}

/// Reading everything, a bounded part at a time.
extension VectorCatalogue {
  /// Records from the key `from` on.
  ///
  /// Each record is whole; writes between two pages may be seen.
  package func page(from: [UInt8]?) async throws -> VectorPage {
    try await storage.read { snapshot in
      var page = VectorPage(rows: [], next: nil)
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
