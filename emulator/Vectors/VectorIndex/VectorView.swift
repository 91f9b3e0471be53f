/// All indexes with their records, as they were at one moment.
///
/// It shares the vectors in memory with the catalog, until one of them is changed.
package struct VectorView: Sendable {
  /// The indexes and their namespaces, both ordered by name.
  package let indexes: [Index]

  /// An index with its namespaces.
  package struct Index: Sendable {
    package let description: VectorIndexDescription
    package let namespaces: [VectorNamespace]
    fileprivate let records: [VectorSearch]
  }

  /// Calls `body` for all records, ordered by index, namespace and id.
  package func forEachRow(_ body: (VectorRow) throws -> Void) rethrows {
    for index in indexes {
      for (namespace, records) in zip(index.namespaces, index.records) {
        try records.forEachRecord { record in
          try body(
            VectorRow(index: index.description.name, namespace: namespace.name, record: record)
          )
        }
      }
    }
  }
}

extension VectorCatalog {
  /// Runs `body` while no change of the indexes or their records is under way, and passes it a view
  /// of them.
  ///
  /// A view of the storage that `body` opens shows the same indexes and records. Changes wait until
  /// `body` returns, so it must be short.
  package func withView<Result>(
    _ body: (VectorView) async throws -> Result
  ) async throws -> Result {
    try await whenLoaded()
    await closeGate()
    defer { openGate() }
    return try await body(view())
  }

  private func view() -> VectorView {
    let indexes = withIndexes { indexes in
      indexes.map { index in
        let namespaces = index.namespaces.sorted { $0.key < $1.key }
        return VectorView.Index(
          description: index.description,
          namespaces: namespaces.map { VectorNamespace(name: $0.key, $0.value) },
          records: namespaces.map(\.value.matrix.allRows)
        )
      }
    }
    return VectorView(indexes: indexes.sorted { $0.description.name < $1.description.name })
  }
}
