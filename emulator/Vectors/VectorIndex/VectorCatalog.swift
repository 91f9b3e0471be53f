import StatusCodes
package import StorageEngine
import Synchronization

/// All vector indexes, with exact in-memory search over records in the storage engine.
///
/// A write returns once it is durable and searchable. Queries see complete writes in their order.
/// The errors are `StatusError`s with Pinecone's meanings: `NOT_FOUND`, `ALREADY_EXISTS`,
/// `INVALID_ARGUMENT`, `PERMISSION_DENIED` for a protected index, and `RESOURCE_EXHAUSTED` if the
/// memory for vectors is full. Calls that need records wait until the records are loaded.
package final class VectorCatalog: Sendable {
  let storage: any OrderedStorage
  private let bytesMax: Int
  private let state = Mutex(State())

  struct State {
    var indexes: [String: Index] = [:]
    /// The estimated size of all records in memory, in bytes.
    var bytes = 0
    var loading = Loading.done
  }

  struct Index {
    var description: VectorIndexDescription
    var namespaces: [String: Namespace] = [:]
  }

  struct Namespace {
    var matrix: VectorMatrix
    var filterableFields: [String] = []
  }

  enum Loading {
    case done
    case running([CheckedContinuation<Void, any Error>])
    case failed(any Error)
  }

  /// Creates an empty catalog, which `loadIndexes` and `loadRecords` fill.
  ///
  /// `bytesMax` limits the memory for vectors; writes beyond it are rejected.
  package init(storage: any OrderedStorage, bytesMax: Int = 8 << 30) {
    self.storage = storage
    self.bytesMax = bytesMax
  }

  /// The sequence of the last commit that queries see.
  package var sequence: UInt64 { storage.sequence }

  /// The estimated size of all records in memory, in bytes.
  package var memoryBytes: Int { state.withLock { $0.bytes } }

  // MARK: - Loading

  /// Loads the descriptions of all indexes; `loadRecords` loads their records.
  package func loadIndexes() async throws {
    let (descriptions, namespaces) = try await storage.read { snapshot in
      var descriptions: [VectorIndexDescription] = []
      try snapshot.scan(VectorRows.indexes, prefix: []) { _, value in
        descriptions.append(try VectorRows.description(value.bytes))
        return true
      }
      var namespaces: [VectorRows.NamespaceRow] = []
      try snapshot.scan(VectorRows.namespaces, prefix: []) { _, value in
        namespaces.append(try VectorRows.namespace(value.bytes))
        return true
      }
      return (descriptions, namespaces)
    }
    state.withLock { state in
      state.loading = .running([])
      for description in descriptions {
        state.indexes[description.name] = Index(description: description)
      }
      for row in namespaces {
        state.addNamespace(row.name, index: row.index, filterableFields: row.filterableFields)
      }
    }
  }

  /// Loads all records into memory, a bounded number at a time, and then resumes waiting calls.
  ///
  /// After a completed load, another call changes nothing.
  package func loadRecords() async throws {
    guard state.withLock({ if case .running = $0.loading { true } else { false } }) else { return }
    do {
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
    } catch {
      finishLoading(.failed(error)) { $0.resume(throwing: error) }
      throw error
    }
    finishLoading(.done) { $0.resume() }
  }

  private func finishLoading(
    _ result: Loading,
    _ resume: (CheckedContinuation<Void, any Error>) -> Void
  ) {
    let before = state.withLock { state in
      defer { state.loading = result }
      return state.loading
    }
    guard case .running(let waiting) = before else { return }
    waiting.forEach(resume)
  }

  /// Waits until all records are in memory.
  ///
  /// The time depends on the number of records. Throws the error of a failed load.
  func whenLoaded() async throws {
    if state.withLock({ if case .done = $0.loading { true } else { false } }) { return }
    try await withCheckedThrowingContinuation { continuation in
      let ended: Result<Void, any Error>? = state.withLock { state in
        switch state.loading {
        case .done: return .success(())
        case .failed(let error): return .failure(error)
        case .running(let waiting):
          state.loading = .running(waiting + [continuation])
          return nil
        }
      }
      if let ended { continuation.resume(with: ended) }
    }
  }

  // MARK: - Indexes

  /// Returns all indexes, ordered by name.
  package func indexes() -> [VectorIndexDescription] {
    state.withLock { $0.indexes.values.map(\.description) }.sorted { $0.name < $1.name }
  }

  /// Returns the description of an index; throws `NOT_FOUND` if there is none.
  package func describe(_ name: String) throws -> VectorIndexDescription {
    try withIndex(name) { $0.description }
  }

  /// Creates an index; throws `ALREADY_EXISTS` if the name is taken.
  package func create(_ description: VectorIndexDescription) async throws {
    try Self.check(description)
    let key = VectorRows.indexKey(description.name)
    do {
      try await commit(
        expecting: [VersionExpectation(VectorRows.indexes, key, version: nil)]
      ) { batch in
        batch.put(VectorRows.indexes, key, VectorRows.bytes(description))
        // A write that raced with the deletion of an index with this name may have left rows.
        Self.deleteAll(below: key, &batch)
      } apply: { state in
        state.indexes[description.name] = Index(description: description)
      }
    } catch let error as StorageError where error.kind == .conflict {
      throw StatusError(.alreadyExists, "Resource already exists.")
    }
  }

  /// Changes the tags and the protection of an index; nil leaves them unchanged.
  ///
  /// An empty tag value removes the tag.
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

  /// Deletes an index with its records, a bounded number in each commit.
  package func delete(_ name: String) async throws {
    guard try !describe(name).isProtected else {
      throw StatusError(
        .permissionDenied,
        "Deletion protection is enabled for this index. Disable deletion protection before "
          + "retrying."
      )
    }
    try await remove(name)
  }

  /// Deletes all indexes with their records, including protected indexes.
  package func removeAll() async throws {
    for index in indexes() { try await remove(index.name) }
  }

  private func remove(_ name: String) async throws {
    try await whenLoaded()
    for namespace in try withIndex(name, { $0.namespaces.keys.sorted() }) {
      try await removeAll(index: name, namespace: namespace)
    }
    try await commit { batch in
      let key = VectorRows.indexKey(name)
      batch.delete(VectorRows.indexes, key)
      Self.deleteAll(below: key, &batch)
    } apply: { state in
      state.removeIndex(name)
    }
  }

  // MARK: - Namespaces

  /// Returns all namespaces of an index, ordered by name; the default namespace has the empty name.
  package func namespaces(index: String) async throws -> [VectorNamespace] {
    try await whenLoaded()
    return try knownNamespaces(index: index)
  }

  /// Returns the namespaces known so far without waiting for the load.
  ///
  /// Their counts still grow while records are loaded.
  package func knownNamespaces(index: String) throws -> [VectorNamespace] {
    let found = try withIndex(index) { index in
      index.namespaces.map { name, namespace in
        VectorNamespace(
          name: name,
          filterableFields: namespace.filterableFields,
          recordCount: namespace.matrix.count,
          bytes: namespace.matrix.bytes
        )
      }
    }
    return found.sorted { $0.name < $1.name }
  }

  /// Creates a namespace; throws `ALREADY_EXISTS` if there is one with this name.
  package func createNamespace(
    _ name: String,
    index: String,
    filterableFields: [String]
  ) async throws {
    try await whenLoaded()
    guard try !hasNamespace(index, name) else { throw Self.namespaceExists }
    let key = VectorRows.namespaceKey(index, name)
    do {
      try await commit(
        expecting: [VersionExpectation(VectorRows.namespaces, key, version: nil)]
      ) { batch in
        batch.put(index: index, namespace: name, filterableFields: filterableFields)
      } apply: { state in
        state.addNamespace(name, index: index, filterableFields: filterableFields)
      }
    } catch let error as StorageError where error.kind == .conflict {
      throw Self.namespaceExists
    }
  }

  /// Deletes a namespace with its records; throws `NOT_FOUND` if it is unknown.
  package func deleteNamespace(_ name: String, index: String) async throws {
    try await removeAll(index: index, namespace: name)
    try await commit { batch in
      let key = VectorRows.namespaceKey(index, name)
      batch.delete(VectorRows.namespaces, key)
      batch.deleteRange(VectorRows.records, from: key, to: keyAfter(prefix: key))
    } apply: { state in
      state.removeNamespace(name, index: index)
    }
  }

  // MARK: - Helpers for the extensions

  /// Indicates whether an index has a namespace; throws `NOT_FOUND` if there is no such index.
  func hasNamespace(_ index: String, _ name: String) throws -> Bool {
    try withIndex(index) { $0.namespaces[name] != nil }
  }

  /// Calls `body` with an index under the lock; `body` must not keep a copy of the index.
  func withIndex<Result: Sendable>(
    _ name: String,
    _ body: (inout Index) throws -> Result
  ) throws -> Result {
    try state.withLock { state in
      guard let result = try state.indexes[name]?.apply(body) else { throw Self.unknown(name) }
      return result
    }
  }

  /// Throws `RESOURCE_EXHAUSTED` if records of this size no longer fit.
  func checkMemory(for records: [VectorRecord]) throws {
    let added = records.reduce(0) { $0 + $1.values.count * 5 + $1.metadata.contentBytes }
    let used = memoryBytes
    guard used + added <= bytesMax else {
      throw StatusError(
        .resourceExhausted,
        "Vectors take \(used) of the \(bytesMax) bytes that they may; delete some before adding "
          + "more."
      )
    }
  }

  /// Commits a batch and applies it to memory in commit order.
  ///
  /// The engine completes commits one after the other, so memory and storage have the same order.
  func commit(
    expecting: [VersionExpectation] = [],
    _ build: (inout StorageBatch) -> Void,
    apply: @escaping @Sendable (inout State) -> Void
  ) async throws {
    var batch = StorageBatch()
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

  private static func deleteAll(below key: [UInt8], _ batch: inout StorageBatch) {
    batch.deleteRange(VectorRows.namespaces, from: key, to: keyAfter(prefix: key))
    batch.deleteRange(VectorRows.records, from: key, to: keyAfter(prefix: key))
  }

  static func unknown(_ index: String) -> StatusError {
    StatusError(.notFound, "Index \(index) not found.")
  }

  private static let namespaceExists = StatusError(.alreadyExists, "Namespace already exists")
  /// The number of records read in one step, which limits how long a snapshot is held.
  static let loadPageMax = 1000
}

extension StorageBatch {
  /// Adds a row for a namespace, so that it exists even without records.
  mutating func put(index: String, namespace: String, filterableFields: [String]) {
    put(
      VectorRows.namespaces,
      VectorRows.namespaceKey(index, namespace),
      VectorRows.bytes(
        VectorRows.NamespaceRow(
          index: index,
          name: namespace,
          filterableFields: filterableFields
        )
      )
    )
  }
}

extension VectorCatalog.Index {
  fileprivate mutating func apply<Result>(
    _ body: (inout VectorCatalog.Index) throws -> Result
  ) rethrows -> Result {
    try body(&self)
  }
}

extension VectorCatalog.Namespace {
  /// Changes the records and returns the growth of their size in bytes.
  fileprivate mutating func change(_ body: (inout VectorMatrix) -> Void) -> Int {
    let before = matrix.bytes
    body(&matrix)
    return matrix.bytes - before
  }
}

extension VectorCatalog.State {
  mutating func addNamespace(_ name: String, index: String, filterableFields: [String] = []) {
    guard let dimension = indexes[index]?.description.dimension,
      indexes[index]?.namespaces[name] == nil
    else { return }
    indexes[index]?.namespaces[name] = VectorCatalog.Namespace(
      matrix: VectorMatrix(dimension: dimension),
      filterableFields: filterableFields
    )
  }

  mutating func upsert(_ record: VectorRecord, index: String, namespace: String) {
    addNamespace(namespace, index: index)
    bytes += indexes[index]?.namespaces[namespace]?.change { $0.upsert(record) } ?? 0
  }

  mutating func remove(_ ids: [String], index: String, namespace: String) {
    bytes +=
      indexes[index]?.namespaces[namespace]?.change { matrix in
        for id in ids { matrix.remove(id) }
      } ?? 0
  }

  mutating func removeNamespace(_ name: String, index: String) {
    bytes -= indexes[index]?.namespaces.removeValue(forKey: name)?.matrix.bytes ?? 0
  }

  mutating func removeIndex(_ name: String) {
    let removed = indexes.removeValue(forKey: name)?.namespaces.values.map(\.matrix.bytes) ?? []
    bytes -= removed.reduce(0, +)
  }
}
