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
    let dimension = try describe(index).dimension
    for record in records { try Self.check(record, dimension: dimension) }
    try checkMemory(for: records)
    let isNew = try !hasNamespace(index, namespace)
    try await commit { batch in
      if isNew { batch.put(index: index, namespace: namespace, filterableFields: []) }
      batch.put(records, index: index, namespace: namespace)
    } apply: { state in
      for record in records { state.upsert(record, index: index, namespace: namespace) }
    }
  }

  /// Changes the records with these ids and returns their number.
  ///
  /// Each record's change is atomic: if another call has written a record in the meantime, it is
  /// read again. `change` may therefore be called more than once for a record. Unknown ids are
  /// skipped. Throws `ABORTED` if other writes keep changing the same records.
  @discardableResult
  package func update(
    _ ids: [String],
    index: String,
    namespace: String,
    _ change: @Sendable (inout VectorRecord) throws -> Void
  ) async throws -> Int {
    try await whenLoaded()
    let dimension = try describe(index).dimension
    var changed = 0
    for start in stride(from: 0, to: ids.count, by: Self.updatePageMax) {
      let page = Array(ids[start..<min(start + Self.updatePageMax, ids.count)])
      var attempt = 1
      while true {
        do {
          changed += try await updatePage(page, index, namespace, dimension, change)
          break
        } catch let error as StorageError where error.kind == .conflict {
          guard attempt < Self.updateAttemptsMax else {
            throw StatusError(
              .aborted,
              "Other writes kept changing the same vectors; try the update again."
            )
          }
          attempt += 1
        }
      }
    }
    return changed
  }

  private func updatePage(
    _ ids: [String],
    _ index: String,
    _ namespace: String,
    _ dimension: Int,
    _ change: (inout VectorRecord) throws -> Void
  ) async throws -> Int {
    let keys = ids.map { VectorRows.recordKey(index, namespace, $0) }
    let stored = try await storage.read { snapshot in
      try keys.map { try snapshot.get(VectorRows.records, $0) }
    }
    var records: [VectorRecord] = []
    var expected: [VersionExpectation] = []
    for (key, value) in zip(keys, stored) {
      guard let value else { continue }
      var record = try VectorRows.row(value.bytes).record
      try change(&record)
      try Self.check(record, dimension: dimension)
      records.append(record)
      expected.append(VersionExpectation(VectorRows.records, key, version: value.version))
    }
    guard !records.isEmpty else { return 0 }
    let changed = records
    try await commit(expecting: expected) { batch in
      batch.put(changed, index: index, namespace: namespace)
    } apply: { state in
      for record in changed { state.upsert(record, index: index, namespace: namespace) }
    }
    return changed.count
  }

  /// Removes records, a bounded number in each commit; unknown ids are ignored.
  package func remove(_ ids: [String], index: String, namespace: String) async throws {
    try await whenLoaded()
    _ = try describe(index)
    for start in stride(from: 0, to: ids.count, by: Self.removePageMax) {
      let page = Array(ids[start..<min(start + Self.removePageMax, ids.count)])
      try await commit { batch in
        for id in page {
          batch.delete(VectorRows.records, VectorRows.recordKey(index, namespace, id))
        }
      } apply: { state in
        state.remove(page, index: index, namespace: namespace)
      }
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
    return try search(filter, index: index, namespace: namespace)?.ids().sorted() ?? []
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
    let description = try describe(index)
    try Self.check(dimension: values.count, expected: description.dimension)
    return try await search(filter, index: index, namespace: namespace)?
      .nearest(to: values, metric: description.metric, limit: limit, withValues: withValues) ?? []
  }

  private func search(
    _ filter: MetadataFilter?,
    index: String,
    namespace: String
  ) throws -> VectorSearch? {
    try withIndex(index) { $0.namespaces[namespace]?.matrix.search(filter) }
  }

  /// The number of records that are read, changed and written in one commit.
  ///
  /// A record may have several kilobytes.
  private static let updatePageMax = 200
  private static let updateAttemptsMax = 10
  private static let removePageMax = 1000
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
