import StatusCodes
import StorageEngine

extension VectorCatalog {
  // MARK: - Writing

  /// Adds or replaces records, all or none.
  package func upsert(
    _ records: [VectorRecord],
    index: String,
    namespace: String
  ) async throws {
    try await whenLoaded()
    let row = VectorRows.NamespaceRow(index: index, name: namespace, filterableFields: [])
    try await retrying {
      let (dimension, version, expectation) = try withIndex(index) { index in
        (index.description.dimension, index.namespaces[namespace]?.version, index.expectation)
      }
      for record in records { try Self.check(record, dimension: dimension) }
      let added = records.reduce(0) { $0 + $1.values.count * 5 + $1.metadata.contentBytes }
      try await reserving(added) {
        try await commit(
          expecting: [expectation, row.expectation(version: version)]
        ) { batch in
          if version == nil { batch.put(row) }
          batch.put(records, index: index, namespace: namespace)
        } apply: { state, sequence in
          if version == nil { state.setNamespace(row, version: sequence) }
          state.upsert(records, index: index, namespace: namespace)
        }
      }
    }
  }

  /// Changes the records with these ids and returns their number.
  ///
  /// Each record's change is atomic: if another call has written a record in the meantime, it is
  /// read again. `change` may therefore be called more than once for a record. Unknown ids are
  /// skipped, and so are records that do not match `filter`. Throws `ABORTED` if other writes keep
  /// changing the same records.
  @discardableResult
  package func update(
    _ ids: [String],
    matching filter: MetadataFilter? = nil,
    index: String,
    namespace: String,
    _ change: @Sendable (inout VectorRecord) throws -> Void
  ) async throws -> Int {
    try await whenLoaded()
    _ = try describe(index)
    var changed = 0
    for start in stride(from: 0, to: ids.count, by: Self.updatePageMax) {
      let page = Array(ids[start..<min(start + Self.updatePageMax, ids.count)])
      changed += try await retrying {
        try await updatePage(page, filter, index, namespace, change)
      }
    }
    return changed
  }

  private func updatePage(
    _ ids: [String],
    _ filter: MetadataFilter?,
    _ index: String,
    _ namespace: String,
    _ change: (inout VectorRecord) throws -> Void
  ) async throws -> Int {
    let (dimension, expectation) = try withIndex(index) { index in
      (index.description.dimension, index.expectation)
    }
    var (changed, expected) = try await stored(ids, filter, index, namespace)
    guard !changed.isEmpty else { return 0 }
    var added = 0
    for place in changed.indices {
      added -= changed[place].metadata.contentBytes
      try change(&changed[place])
      try Self.check(changed[place], dimension: dimension)
      added += changed[place].metadata.contentBytes
    }
    expected.append(expectation)
    let records = changed
    let expectations = expected
    try await reserving(max(0, added)) {
      try await commit(expecting: expectations) { batch in
        batch.put(records, index: index, namespace: namespace)
      } apply: { state, _ in
        state.upsert(records, index: index, namespace: namespace)
      }
    }
    return records.count
  }

  /// Returns the stored records with these ids that match a filter, and the expectations that they
  /// are still unchanged.
  private func stored(
    _ ids: [String],
    _ filter: MetadataFilter?,
    _ index: String,
    _ namespace: String
  ) async throws -> (records: [VectorRecord], expected: [VersionExpectation]) {
    let keys = ids.map { VectorRows.recordKey(index, namespace, $0) }
    let stored = try await storage.read { snapshot in
      try keys.map { try snapshot.get(VectorRows.records, $0) }
    }
    var records: [VectorRecord] = []
    var expected: [VersionExpectation] = []
    for (key, value) in zip(keys, stored) {
      guard let value else { continue }
      let record = try VectorRows.row(value.bytes).record
      if let filter, !filter.matches(record.metadata) { continue }
      records.append(record)
      expected.append(VersionExpectation(VectorRows.records, key, version: value.version))
    }
    return (records, expected)
  }

  /// Removes records, a bounded number in each commit; unknown ids are ignored.
  package func remove(_ ids: [String], index: String, namespace: String) async throws {
    try await whenLoaded()
    _ = try describe(index)
    for start in stride(from: 0, to: ids.count, by: Self.removePageMax) {
      let page = Array(ids[start..<min(start + Self.removePageMax, ids.count)])
      try await retrying { try await removePage(page, [], index, namespace) }
    }
  }

  /// Removes the records that match a filter and returns their number.
  @discardableResult
  package func remove(
    matching filter: MetadataFilter,
    index: String,
    namespace: String
  ) async throws -> Int {
    var removed = 0
    let ids = try await ids(matching: filter, index: index, namespace: namespace)
    for start in stride(from: 0, to: ids.count, by: Self.updatePageMax) {
      let page = Array(ids[start..<min(start + Self.updatePageMax, ids.count)])
      removed += try await retrying {
        let (records, expected) = try await stored(page, filter, index, namespace)
        try await removePage(records.map(\.id), expected, index, namespace)
        return records.count
      }
    }
    return removed
  }

  private func removePage(
    _ ids: [String],
    _ expected: [VersionExpectation],
    _ index: String,
    _ namespace: String
  ) async throws {
    let expectation = try withIndex(index) { $0.expectation }
    try await commit(expecting: expected + [expectation]) { batch in
      for id in ids {
        batch.delete(VectorRows.records, VectorRows.recordKey(index, namespace, id))
      }
    } apply: { state, _ in
      state.remove(ids, index: index, namespace: namespace)
    }
  }

  /// Removes all records of a namespace but keeps the namespace.
  ///
  /// Throws `NOT_FOUND` if there is no such namespace. Many records take many commits. Other calls
  /// may see a part of the records, and a crash may leave some.
  package func removeAll(index: String, namespace: String) async throws {
    try await whenLoaded()
    let ids = try withIndex(index) { $0.namespaces[namespace]?.matrix.ids }
    guard let ids else { throw StatusError(.notFound, "Namespace not found") }
    try await remove(ids, index: index, namespace: namespace)
  }

  // MARK: - Reading

  /// Returns the records with these ids, in the order of the ids; unknown ids are left out.
  package func fetch(
    _ ids: [String],
    index: String,
    namespace: String
  ) async throws -> [VectorRecord] {
    try await whenLoaded()
    return try withIndex(index) { index in
      ids.compactMap { index.namespaces[namespace]?.matrix.record($0) }
    }
  }

  /// Returns the ids of the records whose metadata matches a filter, in byte order.
  package func ids(
    matching filter: MetadataFilter,
    index: String,
    namespace: String
  ) async throws -> [String] {
    try await whenLoaded()
    let search = try withIndex(index) { $0.namespaces[namespace]?.matrix.search(filter) }
    return search?.ids().sorted() ?? []
  }

  /// Returns up to `limit` ids that start with `prefix` and follow `after`, in byte order.
  package func list(
    prefix: String,
    after: String?,
    limit: Int,
    index: String,
    namespace: String
  ) async throws -> [String] {
    _ = try describe(index)
    let start = VectorRows.idPrefixKey(index, namespace, prefix)
    var from = start
    if let after {
      let next = VectorRows.recordKey(index, namespace, after) + [0]
      if from.lexicographicallyPrecedes(next) { from = next }
    }
    let first = from
    return try await storage.read { snapshot in
      var ids: [String] = []
      try snapshot.scan(
        VectorRows.records,
        from: first,
        to: keyAfter(prefix: start),
        descending: false
      ) { _, value in
        ids.append(try VectorRows.id(value.bytes))
        return ids.count < limit
      }
      return ids
    }
  }

  /// Returns the best matches for a vector, best first.
  ///
  /// The values of the matches are left out unless `withValues` is true, because copying many of
  /// them takes longer than the search.
  package func query(
    _ values: [Float],
    filter: MetadataFilter? = nil,
    limit: Int,
    withValues: Bool = false,
    index: String,
    namespace: String
  ) async throws -> [VectorMatch] {
    try await whenLoaded()
    let (metric, search) = try withIndex(index) { index in
      try Self.check(dimension: values.count, expected: index.description.dimension)
      return (index.description.metric, index.namespaces[namespace]?.matrix.search(filter))
    }
    return await search?
      .nearest(to: values, metric: metric, limit: limit, withValues: withValues) ?? []
  }

  /// The number of records that are read, changed and written in one commit.
  ///
  /// A record may have several kilobytes.
  private static let updatePageMax = 200
}

extension StorageBatch {
  fileprivate mutating func put(_ records: [VectorRecord], index: String, namespace: String) {
    for record in records {
      put(
        VectorRows.records,
        VectorRows.recordKey(index, namespace, record.id),
        VectorRows.bytes(record, index: index, namespace: namespace)
      )
    }
  }
}
