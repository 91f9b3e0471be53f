import RuntimeSupport
package import StorageEngine
import Synchronization

/// All vector indexes: exact search in memory over records that the storage engine keeps.
///
/// A write returns once it is durable and searchable; queries see whole writes in their order.
/// Errors are `StatusError`s in Pinecone's sense: `NOT_FOUND`, `ALREADY_EXISTS`,
/// `INVALID_ARGUMENT`, `PERMISSION_DENIED` for a protected index.
package final class VectorCatalogue: Sendable {
  let storage: any StorageEngine
  private let state = Mutex(State())

  fileprivate struct State {
    var indexes: [String: Index] = [:]
  }

  fileprivate struct Index {
    var description: VectorIndexDescription
    var namespaces: [String: VectorMatrix] = [:]
  }

  /// An empty catalogue; `load` fills it.
  package init(storage: any StorageEngine) {
    self.storage = storage
  }

  /// Reads every index and record into memory, a bounded number of records at a time.
  package func load() async throws {
    let descriptions = try await storage.read { snapshot in
      var found: [VectorIndexDescription] = []
      try snapshot.scan(VectorRows.indexes, prefix: []) { _, value in
        found.append(try VectorRows.description(value.bytes))
        return true
      }
      return found
    }
    state.withLock { state in
      for description in descriptions {
        state.indexes[description.name] = Index(description: description)
      }
    }
    var next: [UInt8]?
    repeat {
      let page = try await page(from: next)
      state.withLock { state in
        for row in page.rows {
          state.upsert(row.record, index: row.index, namespace: row.namespace)
        }
      }
      next = page.next
    } while next != nil
  }

  // MARK: - Indexes

  /// All indexes by name.
  package func indexes() -> [VectorIndexDescription] {
    state.withLock { $0.indexes.values.map(\.description) }.sorted { $0.name < $1.name }
  }

  /// One index.
  package func describe(_ name: String) throws -> VectorIndexDescription {
    try state.withLock { try $0.index(name).description }
  }

  /// Creates an index; `ALREADY_EXISTS` when the name is taken.
  package func create(_ description: VectorIndexDescription) async throws {
    try Self.check(description)
    let key = VectorRows.indexKey(description.name)
    do {
      try await commit(
        expecting: [VersionExpectation(VectorRows.indexes, key, version: nil)]
      ) { batch in
        batch.put(VectorRows.indexes, key, VectorRows.bytes(description))
        // A write that raced with the deletion of an index of this name may have left rows.
        batch.deleteRange(VectorRows.records, from: key, to: keyAfter(prefix: key))
      } apply: { state in
        state.indexes[description.name] = Index(description: description)
      }
    } catch let error as StorageError where error.kind == .conflict {
      throw StatusError(.alreadyExists, "Index \(description.name) already exists.")
    }
  }

  /// Changes tags and protection; nil leaves them, an empty tag value removes the tag.
  package func configure(
    _ name: String,
    tags: [String: String]?,
    isProtected: Bool?
  ) async throws -> VectorIndexDescription {
    var description = try describe(name)
    for (key, value) in tags ?? [:] { description.tags[key] = value.isEmpty ? nil : value }
    if let isProtected { description.isProtected = isProtected }
    try Self.check(description)
    let changed = description
    try await commit { batch in
      batch.put(VectorRows.indexes, VectorRows.indexKey(name), VectorRows.bytes(changed))
    } apply: { state in
      state.indexes[name]?.description = changed
    }
    return changed
  }

  /// Deletes an index with its records.
  package func delete(_ name: String) async throws {
    guard try !describe(name).isProtected else {
      throw StatusError(
        .permissionDenied,
        "Deletion protection is enabled for index \(name); disable it before deleting."
      )
    }
    try await commit { batch in
      batch.delete(VectorRows.indexes, VectorRows.indexKey(name))
      let prefix = VectorRows.indexKey(name)
      batch.deleteRange(VectorRows.records, from: prefix, to: keyAfter(prefix: prefix))
    } apply: { state in
      state.indexes[name] = nil
    }
  }

  /// Deletes every index with its records, protected ones too.
  package func removeAll() async throws {
    try await commit { batch in
      batch.deleteRange(VectorRows.indexes, from: nil, to: nil)
      batch.deleteRange(VectorRows.records, from: nil, to: nil)
    } apply: { state in
      state.indexes = [:]
    }
  }

  // MARK: - Records

  /// Adds or replaces records, all or none.
  package func upsert(
    _ records: [VectorRecord],
    index: String,
    namespace: String
  ) async throws {
    let dimension = try describe(index).dimension
    for record in records { try Self.check(record, dimension: dimension) }
    try await commit { batch in
      for record in records {
        batch.put(
          VectorRows.records,
          VectorRows.recordKey(index, namespace, record.id),
          VectorRows.bytes(record, index: index, namespace: namespace)
        )
      }
    } apply: { state in
      for record in records { state.upsert(record, index: index, namespace: namespace) }
    }
  }

  /// Removes records; unknown ids are no error.
  package func remove(_ ids: [String], index: String, namespace: String) async throws {
    _ = try describe(index)
    try await commit { batch in
      for id in ids {
        batch.delete(VectorRows.records, VectorRows.recordKey(index, namespace, id))
      }
    } apply: { state in
      for id in ids { state.indexes[index]?.namespaces[namespace]?.remove(id) }
    }
  }

  /// Removes a whole namespace; an unknown one is `NOT_FOUND`.
  package func removeAll(index: String, namespace: String) async throws {
    _ = try matrix(index, namespace, orThrow: true)
    try await commit { batch in
      let prefix = VectorRows.namespaceKey(index, namespace)
      batch.deleteRange(VectorRows.records, from: prefix, to: keyAfter(prefix: prefix))
    } apply: { state in
      state.indexes[index]?.namespaces[namespace] = nil
    }
  }

  /// The records with these ids, in the order of the ids; unknown ones are left out.
  package func fetch(
    _ ids: [String],
    index: String,
    namespace: String
  ) throws -> [VectorRecord] {
    let matrix = try matrix(index, namespace)
    return ids.compactMap { matrix?.record($0) }
  }

  /// The ids of the records whose metadata passes a filter, sorted.
  package func ids(
    matching filter: MetadataFilter,
    index: String,
    namespace: String
  ) throws -> [String] {
    try (matrix(index, namespace)?.ids(matching: filter) ?? []).sorted()
  }

  /// Up to `limit` ids that start with `prefix` and come after `after`, in bytewise order.
  package func list(
    prefix: String,
    after: String?,
    limit: Int,
    index: String,
    namespace: String
  ) throws -> [String] {
    let all = try matrix(index, namespace).map { Array($0.ids) } ?? []
    let wanted = all.filter { id in id.hasPrefix(prefix) && (after.map { id > $0 } ?? true) }
    return Array(wanted.sorted().prefix(limit))
  }

  /// The best matches for a vector, best first.
  package func query(
    _ values: [Float],
    filter: MetadataFilter?,
    limit: Int,
    index: String,
    namespace: String
  ) throws -> [VectorMatch] {
    let description = try describe(index)
    try Self.check(dimension: values.count, expected: description.dimension)
    return try matrix(index, namespace)?.nearest(
      to: values,
      metric: description.metric,
      filter: filter,
      limit: limit
    ) ?? []
  }

  /// The number of records in each namespace of an index.
  package func counts(index: String) throws -> [String: Int] {
    try state.withLock { try $0.index(index).namespaces.mapValues(\.count) }
  }

  // MARK: - Private

  /// A copy that shares its rows; nil when nothing was ever written to the namespace.
  private func matrix(
    _ index: String,
    _ namespace: String,
    orThrow: Bool = false
  ) throws -> VectorMatrix? {
    let matrix = try state.withLock { try $0.index(index).namespaces[namespace] }
    if matrix == nil, orThrow { throw StatusError(.notFound, "Namespace not found") }
    return matrix
  }

  /// Commits a batch and applies it to memory in the order of the commits.
  ///
  /// The engine completes commits one after the other, which is what keeps memory and storage in
  /// the same order.
  private func commit(
    expecting: [VersionExpectation] = [],
    _ build: (inout WriteBatch) -> Void,
    apply: @escaping @Sendable (inout State) -> Void
  ) async throws {
    var batch = WriteBatch()
    build(&batch)
    let finished = batch
    try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
      storage.submit(finished, expecting: expecting, durability: .synced) { result in
        switch result {
        case .success:
          self.state.withLock { apply(&$0) }
          done.resume()
        case .failure(let error): done.resume(throwing: error)
        }
      }
    }
  }

  /// Refuses a description that no index can have.
  package static func check(_ description: VectorIndexDescription) throws {
    let name = description.name.utf8
    let isName = name.allSatisfy { (97...122).contains($0) || (48...57).contains($0) || $0 == 45 }
    guard isName, (1...45).contains(name.count), name.first != 45, name.last != 45 else {
      throw StatusError.invalidArgument(
        "Invalid index name \"\(description.name)\": use 1 to 45 of a-z, 0-9 and -, "
          + "with no - at either end."
      )
    }
    guard (1...20_000).contains(description.dimension) else {
      throw StatusError.invalidArgument(
        "Dimension \(description.dimension) is not between 1 and 20000."
      )
    }
    guard description.tags.count <= 20,
      description.tags.allSatisfy({ $0.utf8.count <= 80 && $1.utf8.count <= 120 })
    else {
      throw StatusError.invalidArgument(
        "An index has at most 20 tags; a key has at most 80 and a value 120 characters."
      )
    }
  }

  /// Refuses a record that an index of that dimension cannot hold.
  package static func check(_ record: VectorRecord, dimension: Int) throws {
    let id = record.id.utf8
    guard (1...512).contains(id.count), id.allSatisfy({ $0 != 0 && $0 < 128 }) else {
      throw StatusError.invalidArgument("A vector's id is 1 to 512 ASCII characters.")
    }
    try check(dimension: record.values.count, expected: dimension)
    guard record.values.contains(where: { $0 != 0 }) else {
      throw StatusError.invalidArgument(
        "Dense vectors must contain at least one non-zero value: \(record.id)"
      )
    }
    guard record.values.allSatisfy(\.isFinite) else {
      throw StatusError.invalidArgument("Vector \(record.id) has a value that is not a number.")
    }
  }

  private static func check(dimension: Int, expected: Int) throws {
    guard dimension == expected else {
      throw StatusError.invalidArgument(
        "Vector dimension \(dimension) does not match the dimension of the index \(expected)"
      )
    }
  }

  /// Records read in one go; bounds the time a snapshot is held.
  static let loadPageMax = 1000
}

extension VectorCatalogue.State {
  fileprivate func index(_ name: String) throws -> VectorCatalogue.Index {
    guard let index = indexes[name] else {
      throw StatusError(.notFound, "Index \(name) not found; POST /indexes creates it.")
    }
    return index
  }

  fileprivate mutating func upsert(_ record: VectorRecord, index: String, namespace: String) {
    guard let dimension = indexes[index]?.description.dimension else { return }
    indexes[index]?.namespaces[namespace, default: VectorMatrix(dimension: dimension)]
      .upsert(record)
  }
}
