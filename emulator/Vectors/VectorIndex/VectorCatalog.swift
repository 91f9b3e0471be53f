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
  private let gate = Mutex(CommitGate())

  struct State {
    var indexes: [String: Index] = [:]
    /// The estimated size of all records in memory, in bytes.
    var bytes = 0
    /// The estimated size of the records of commits under way, in bytes.
    var reservedBytes = 0
    var loading = Loading.done
  }

  struct Index {
    var description: VectorIndexDescription
    /// The version of the description's row, which an index created later under the name never has.
    var version: UInt64
    var namespaces: [String: Namespace] = [:]

    /// The expectation of a commit that depends on this description.
    var expectation: VersionExpectation {
      let key = VectorRows.indexKey(description.name)
      return VersionExpectation(VectorRows.indexes, key, version: version)
    }
  }

  struct Namespace {
    var matrix: VectorMatrix
    var filterableFields: [String] = []
    /// The version of the namespace's row; nil if only records tell of the namespace.
    var version: UInt64?
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
      var descriptions: [(VectorIndexDescription, version: UInt64)] = []
      try snapshot.scan(VectorRows.indexes, prefix: []) { _, value in
        descriptions.append((try VectorRows.description(value.bytes), value.version))
        return true
      }
      var namespaces: [(row: VectorRows.NamespaceRow, version: UInt64)] = []
      try snapshot.scan(VectorRows.namespaces, prefix: []) { _, value in
        namespaces.append((try VectorRows.namespace(value.bytes), value.version))
        return true
      }
      return (descriptions, namespaces)
    }
    state.withLock { state in
      state.loading = .running([])
      for (description, version) in descriptions {
        state.indexes[description.name] = Index(description: description, version: version)
      }
      for (row, version) in namespaces { state.setNamespace(row, version: version) }
    }
  }

  /// Loads all records into memory, a bounded number at a time, and then resumes waiting calls.
  ///
  /// Returns the number of records that fit no index, by its name or its dimension, which are
  /// deleted. After a completed load, another call changes nothing.
  package func loadRecords() async throws -> Int {
    guard state.withLock({ if case .running = $0.loading { true } else { false } }) else {
      return 0
    }
    var dropped = 0
    do {
      var next: [UInt8]?
      repeat {
        let page = try await page(from: next)
        let misfits = state.withLock { state in
          page.rows.filter { row in
            !state.upsert(row.record, index: row.index, namespace: row.namespace)
          }
        }
        if !misfits.isEmpty {
          // Nothing else writes records until they are loaded.
          var batch = StorageBatch()
          for row in misfits {
            let key = VectorRows.recordKey(row.index, row.namespace, row.record.id)
            batch.delete(VectorRows.records, key)
          }
          try await storage.commit(batch)
          dropped += misfits.count
        }
        next = page.next
      } while next != nil
    } catch {
      finishLoading(.failed(error)) { $0.resume(throwing: error) }
      throw error
    }
    finishLoading(.done) { $0.resume() }
    return dropped
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
    // The load must not take rows that an earlier index left for rows of this one.
    try await whenLoaded()
    let key = VectorRows.indexKey(description.name)
    do {
      try await commit(
        expecting: [VersionExpectation(VectorRows.indexes, key, version: nil)]
      ) { batch in
        batch.put(VectorRows.indexes, key, VectorRows.bytes(description))
        // The deletion of an earlier index may have been interrupted.
        batch.deleteRange(VectorRows.namespaces, from: key, to: keyAfter(prefix: key))
        batch.deleteRange(VectorRows.records, from: key, to: keyAfter(prefix: key))
      } apply: { state, sequence in
        state.indexes[description.name] = Index(description: description, version: sequence)
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
    try await retrying {
      let (found, expectation) = try withIndex(name) { ($0.description, $0.expectation) }
      var description = found
      for (key, value) in tags ?? [:] { description.tags[key] = value.isEmpty ? nil : value }
      if let isProtected { description.isProtected = isProtected }
      try Self.check(description)
      let changed = description
      try await commit(expecting: [expectation]) { batch in
        batch.put(VectorRows.indexes, VectorRows.indexKey(name), VectorRows.bytes(changed))
      } apply: { state, sequence in
        state.indexes[name]?.description = changed
        state.indexes[name]?.version = sequence
      }
      return changed
    }
  }

  /// Deletes an index, and then its records, a bounded number in each commit.
  package func delete(_ name: String) async throws {
    try await remove(name, evenProtected: false)
  }

  /// Deletes all indexes with their records, including protected indexes.
  package func removeAll() async throws {
    for index in indexes() {
      do {
        try await remove(index.name, evenProtected: true)
      } catch let error as StatusError where error.statusCode == .notFound {
        continue
      }
    }
  }

  private func remove(_ name: String, evenProtected: Bool) async throws {
    try await whenLoaded()
    let key = VectorRows.indexKey(name)
    try await retrying {
      let (index, expectation) = try withIndex(name) { ($0.description, $0.expectation) }
      guard evenProtected || !index.isProtected else {
        throw StatusError(
          .permissionDenied,
          "Deletion protection is enabled for this index. Disable deletion protection before "
            + "retrying."
        )
      }
      try await commit(expecting: [expectation]) { batch in
        batch.delete(VectorRows.indexes, key)
        batch.deleteRange(VectorRows.namespaces, from: key, to: keyAfter(prefix: key))
      } apply: { state, _ in
        state.removeIndex(name)
      }
    }
    try await removeRecords(ofDeletedIndex: key)
  }

  /// Deletes the rows of an index that is no longer there.
  ///
  /// They are invisible already. After a crash the next start deletes the rest.
  private func removeRecords(ofDeletedIndex key: [UInt8]) async throws {
    while true {
      let page = try await storage.read { snapshot in
        var page: [[UInt8]] = []
        try snapshot.scanKeys(
          VectorRows.records,
          from: key,
          to: keyAfter(prefix: key),
          descending: false
        ) { record, _ in
          page.append(record)
          return page.count < Self.removePageMax
        }
        return page
      }
      if page.isEmpty { return }
      do {
        try await commit(
          expecting: [VersionExpectation(VectorRows.indexes, key, version: nil)]
        ) { batch in
          for record in page { batch.delete(VectorRows.records, record) }
        } apply: { _, _ in
        }
      } catch let error as StorageError where error.kind == .conflict {
        // The creation of another index with this name has deleted the rest.
        return
      }
    }
  }

  // MARK: - Namespaces

  /// Returns all namespaces of an index, ordered by name; the default namespace has the empty name.
  package func namespaces(index: String) async throws -> [VectorNamespace] {
    try await whenLoaded()
    let found = try withIndex(index) { index in
      index.namespaces.map { VectorNamespace(name: $0, $1) }
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
    let row = VectorRows.NamespaceRow(
      index: index,
      name: name,
      filterableFields: filterableFields
    )
    try await retrying {
      let (exists, expectation) = try withIndex(index) { index in
        (index.namespaces[name] != nil, index.expectation)
      }
      if exists { throw StatusError(.alreadyExists, "Namespace already exists") }
      try await commit(expecting: [expectation, row.expectation(version: nil)]) { batch in
        batch.put(row)
      } apply: { state, sequence in
        state.setNamespace(row, version: sequence)
      }
    }
  }

  /// Deletes a namespace with its records; throws `NOT_FOUND` if it is unknown.
  package func deleteNamespace(_ name: String, index: String) async throws {
    let key = VectorRows.namespaceKey(index, name)
    try await retrying {
      try await removeAll(index: index, namespace: name)
      let (version, expectation) = try withIndex(index) { index in
        (index.namespaces[name]?.version, index.expectation)
      }
      try await commit(
        expecting: [expectation, VersionExpectation(VectorRows.namespaces, key, version: version)]
      ) { batch in
        batch.delete(VectorRows.namespaces, key)
        batch.deleteRange(VectorRows.records, from: key, to: keyAfter(prefix: key))
      } apply: { state, _ in
        state.removeNamespace(name, index: index)
      }
    }
  }

  // MARK: - Helpers for the extensions

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

  /// Calls `body` with all indexes under the lock.
  func withIndexes<Result: Sendable>(_ body: (Dictionary<String, Index>.Values) -> Result) -> Result
  {
    state.withLock { body($0.indexes.values) }
  }

  /// Waits until the commits under way have ended, and holds back others until `openGate`.
  func closeGate() async { await pass { $0.close($1) } }

  /// Lets commits through again.
  func openGate() { resume { $0.open() } }

  private func pass(
    _ step: @Sendable (inout CommitGate, CommitGate.Waiting) -> [CommitGate.Waiting]
  ) async {
    await withCheckedContinuation { waiting in resume { step(&$0, waiting) } }
  }

  private func resume(_ step: (inout CommitGate) -> [CommitGate.Waiting]) {
    for waiting in gate.withLock({ step(&$0) }) { waiting.resume() }
  }

  /// Runs `body`, which adds records of some size, and counts them as there until it returns.
  ///
  /// Throws `RESOURCE_EXHAUSTED` if they no longer fit.
  func reserving<Result>(_ added: Int, _ body: () async throws -> Result) async throws -> Result {
    try state.withLock { state in
      let used = state.bytes + state.reservedBytes
      guard added <= 0 || used + added <= bytesMax else {
        throw StatusError(
          .resourceExhausted,
          "Vectors take \(used) of the \(bytesMax) bytes that they may; delete some before adding "
            + "more."
        )
      }
      state.reservedBytes += added
    }
    defer { state.withLock { $0.reservedBytes -= added } }
    return try await body()
  }

  /// Runs `body` again as long as other calls change what its commit expects.
  func retrying<Result>(_ body: () async throws -> Result) async throws -> Result {
    var attempt = 1
    while true {
      do {
        return try await body()
      } catch let error as StorageError where error.kind == .conflict {
        guard attempt < Self.attemptsMax else {
          throw StatusError(
            .aborted,
            "Other calls kept changing the same index, namespace or vectors; try again."
          )
        }
        attempt += 1
      }
    }
  }

  /// Commits a batch and applies it to memory in commit order, with the commit's sequence.
  ///
  /// The engine completes commits one after the other, so memory and storage have the same order.
  /// A commit that depends on an index expects its version: until the commit, the index may have
  /// been changed, deleted or created again.
  func commit(
    expecting: [VersionExpectation],
    _ build: (inout StorageBatch) -> Void,
    apply: @escaping @Sendable (inout State, _ sequence: UInt64) -> Void
  ) async throws {
    var batch = StorageBatch()
    build(&batch)
    let finished = batch
    await pass { $0.enter($1) }
    defer { resume { $0.leave() } }
    try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
      storage.submit(finished, expecting: expecting, durability: .synced) { result in
        switch result {
        case .success(let sequence):
          self.state.withLock { apply(&$0, sequence) }
          done.resume()
        case .failure(let error): done.resume(throwing: error)
        }
      }
    }
  }

  static func unknown(_ index: String) -> StatusError {
    StatusError(.notFound, "Index \(index) not found.")
  }

  /// The number of records read in one step, which limits how long a snapshot is held.
  static let loadPageMax = 1000
  /// The number of records deleted in one commit.
  static let removePageMax = 1000
  private static let attemptsMax = 10
}

extension StorageBatch {
  /// Adds a row for a namespace, so that it exists even without records.
  mutating func put(_ row: VectorRows.NamespaceRow) {
    put(VectorRows.namespaces, row.key, VectorRows.bytes(row))
  }
}

extension VectorNamespace {
  init(name: String, _ namespace: VectorCatalog.Namespace) {
    self.init(
      name: name,
      filterableFields: namespace.filterableFields,
      recordCount: namespace.matrix.count,
      bytes: namespace.matrix.bytes
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
  /// Sets the fields of a namespace and the version of its row; it keeps its records.
  mutating func setNamespace(_ row: VectorRows.NamespaceRow, version: UInt64) {
    addNamespace(row.name, index: row.index)
    indexes[row.index]?.namespaces[row.name]?.filterableFields = row.filterableFields
    indexes[row.index]?.namespaces[row.name]?.version = version
  }

  private mutating func addNamespace(_ name: String, index: String) {
    guard let dimension = indexes[index]?.description.dimension,
      indexes[index]?.namespaces[name] == nil
    else { return }
    indexes[index]?.namespaces[name] = VectorCatalog.Namespace(
      matrix: VectorMatrix(dimension: dimension)
    )
  }

  /// Adds or replaces a record; returns false for a record that does not fit an index.
  mutating func upsert(_ record: VectorRecord, index: String, namespace: String) -> Bool {
    guard indexes[index]?.description.dimension == record.values.count else { return false }
    addNamespace(namespace, index: index)
    bytes += indexes[index]?.namespaces[namespace]?.change { $0.upsert(record) } ?? 0
    return true
  }

  /// Adds or replaces the records of a commit that expected the index.
  mutating func upsert(_ records: [VectorRecord], index: String, namespace: String) {
    for record in records {
      let fits = upsert(record, index: index, namespace: namespace)
      precondition(fits, "a commit expects the index whose dimension its records have")
    }
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
