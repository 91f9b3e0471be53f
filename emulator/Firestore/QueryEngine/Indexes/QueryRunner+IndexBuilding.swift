import DocumentModel
import Logging
import StorageEngine
import Synchronization

extension QueryRunner {
  /// Builds the indexes that queries request, until the task is cancelled or the store closes.
  ///
  /// Must run at most once per runner.
  package func run(in order: any CommitOrder) async throws {
    for await _ in wakes {
      do {
        try await buildIndexes(in: order)
      } catch let error as StorageError {
        // The failed work is retried at the next request; queries scan in the meantime.
        logger.debug(
          "An index could not be built.",
          metadata: ["error": "\(error)"]
        )
        if error.kind == .closed { return }
      } catch is CancellationError {
        return
      }
    }
  }

  /// Builds all requested indexes; returns when nothing is left, or after `commitsMax` commits.
  ///
  /// Called by `run`, or by a test instead of `run`; calls must not overlap.
  package func buildIndexes(in order: any CommitOrder, commitsMax: Int = .max) async throws {
    guard let storage = state.withLock({ $0.storage }) else { return }
    var documentsMax = configuration.backfillDocumentsMax
    for _ in 0..<commitsMax {
      try Task.checkCancellation()
      switch state.withLock({ $0.nextJob(configuration) }) {
      case nil: return
      case .clear(let id): try await clear(id, storage)
      case .evaluateCost(let id): try await evaluateCost(id, storage, order)
      case .evaluateRequest(let request): try await evaluateRequest(request, storage)
      case .remove(let index): try await remove(index, storage, order)
      case .register(let definition): try await register(definition, storage, order)
      case .extend(let index):
        do {
          try await extend(index, documentsMax: documentsMax, storage, order)
          documentsMax = min(documentsMax * 2, configuration.backfillDocumentsMax)
        } catch let error as StorageError where error.kind == .conflict {
          // A writer changed a document first. Smaller batches are less likely to collide.
          documentsMax = max(1, documentsMax / 4)
        }
      }
    }
  }

  // MARK: Steps

  /// Makes writers maintain an index, starting with the commit that records it.
  private func register(
    _ definition: IndexDefinition,
    _ storage: any OrderedStorage,
    _ order: any CommitOrder
  ) async throws {
    var added: UInt64?
    do {
      _ = try await submit(to: storage, order) { state in
        guard state.catalog.index(definition) == nil else { return nil }
        let index = state.catalog.add(definition)
        state.wasted[definition] = nil
        added = index.id
        var batch = StorageBatch()
        batch.put(IndexCatalog.keyspace, index.rowKey, index.row)
        return (batch, [])
      }
      logger.debug("An index is being built.", metadata: ["index": "\(definition)"])
    } catch {
      if let added { forget(added, order) }
      throw error
    }
  }

  /// Adds the next documents to an index, or finds that none are left.
  ///
  /// The commit expects each document to be in the version that was read, so it never undoes a
  /// writer's entry.
  private func extend(
    _ index: Index,
    documentsMax: Int,
    _ storage: any OrderedStorage,
    _ order: any CommitOrder
  ) async throws {
    guard case .building(let through) = index.state else { return }
    let configuration = configuration
    let chunk = try await storage.read { snapshot in
      try IndexChunk(
        index,
        after: through,
        documentsMax: documentsMax,
        bytesMax: configuration.backfillBytesMax,
        seeksMax: configuration.backfillSeeksMax,
        in: snapshot
      )
    }
    let sequence = try await submit(to: storage, order) { state in
      guard state.catalog.indexes[index.id]?.state == index.state else { return nil }
      var batch = chunk.batch
      var grown = index
      grown.state = chunk.through.map { .building(through: $0) } ?? .ready(since: 0)
      batch.put(IndexCatalog.keyspace, grown.rowKey, grown.row)
      return (batch, chunk.expectations)
    }
    guard let sequence else { return }
    state.withLock { state in
      state.catalog.setState(
        chunk.through.map { .building(through: $0) } ?? .ready(since: sequence),
        of: index.id
      )
    }
    if chunk.through == nil {
      logger.debug("An index is ready.", metadata: ["index": "\(index.definition)"])
    }
  }

  /// Removes an index whose maintenance has cost more than building it again would cost.
  private func evaluateCost(
    _ id: UInt64,
    _ storage: any OrderedStorage,
    _ order: any CommitOrder
  ) async throws {
    let index = state.withLock { state in
      state.suspects.remove(id)
      return state.catalog.indexes[id]
    }
    guard let index, case .ready = index.state else { return }
    let cost = maintenanceCost.cost(of: id)
    guard cost >= configuration.idleWritesMax else { return }
    let entries = try await storage.read { snapshot in
      var count = 0
      let prefix = IndexEntry.prefix(ofIndex: id)
      try snapshot.scanKeys(
        IndexEntry.keyspace,
        from: prefix,
        to: keyAfter(prefix: prefix),
        descending: false
      ) { _, _ in
        count += 1
        return count < cost
      }
      return count
    }
    if entries < cost { try await remove(index, storage, order) }
  }

  /// Takes an index out of use and out of the catalog; `clear` later deletes its entries.
  ///
  /// Writers maintain it until its row is gone, so that a failure leaves a complete index.
  private func remove(
    _ index: Index,
    _ storage: any OrderedStorage,
    _ order: any CommitOrder
  ) async throws {
    do {
      _ = try await submit(to: storage, order) { state in
        state.catalog.setState(.leaving, of: index.id)
        var batch = StorageBatch()
        batch.delete(IndexCatalog.keyspace, index.rowKey)
        return (batch, [])
      }
    } catch {
      state.withLock { $0.catalog.setState(index.state, of: index.id) }
      throw error
    }
    forget(index.id, order)
    logger.debug("An index was removed.", metadata: ["index": "\(index.definition)"])
  }

  /// Stops maintaining an index whose row is not in the store.
  private func forget(_ id: UInt64, _ order: any CommitOrder) {
    order.alone {
      state.withLock { state in
        state.catalog.remove(id)
        state.orphans.append(id)
      }
    }
    maintenanceCost.reset(id)
  }

  /// Deletes some entries of an index that is no longer in the catalog.
  private func clear(_ id: UInt64, _ storage: any OrderedStorage) async throws {
    let prefix = IndexEntry.prefix(ofIndex: id)
    let entriesMax = configuration.removalEntriesMax
    let last = try await storage.read { snapshot in
      var count = 0
      var last: [UInt8]?
      try snapshot.scan(IndexEntry.keyspace, prefix: prefix) { key, _ in
        count += 1
        last = key
        return count < entriesMax
      }
      return last
    }
    guard let last else {
      state.withLock { $0.orphans.removeAll { $0 == id } }
      return
    }
    var batch = StorageBatch()
    batch.deleteRange(IndexEntry.keyspace, from: prefix, to: last + [0])
    try await storage.commit(batch, durability: .relaxed)
  }

  /// Decides and submits in one step of the commit order, then waits for the commit.
  ///
  /// Returns nil if `decide` finds nothing to do. The commits have relaxed durability: after a
  /// crash the store shows an earlier consistent state of the index, and building continues from
  /// there.
  private func submit(
    to storage: any OrderedStorage,
    _ order: any CommitOrder,
    _ decide: (inout State) -> (StorageBatch, [VersionExpectation])?
  ) async throws -> UInt64? {
    try await withCheckedThrowingContinuation { continuation in
      order.alone {
        let decision = state.withLock { state in decide(&state) }
        guard let (batch, expectations) = decision else {
          continuation.resume(returning: nil)
          return
        }
        storage.submit(batch, expecting: expectations, durability: .relaxed) { result in
          continuation.resume(with: result.map(Optional.some))
        }
      }
    }
  }
}

extension QueryRunner.State {
  /// One step of the background work, which runs concurrently with writers.
  enum Job {
    case clear(UInt64)
    case evaluateCost(UInt64)
    case evaluateRequest(IndexRequest)
    case remove(Index)
    case register(IndexDefinition)
    case extend(Index)
  }

  /// Returns the next step; nil if all work is done.
  ///
  /// Indexes being built are finished before others are started.
  mutating func nextJob(_ configuration: QueryRunner.Configuration) -> Job? {
    if let id = orphans.first { return .clear(id) }
    if let id = suspects.first { return .evaluateCost(id) }
    if let index = catalog.building.first { return .extend(index) }
    guard let request = requests.first else { return nil }
    if request.wasted != nil { return .evaluateRequest(request) }
    let definition = request.definition
    if catalog.index(definition) == nil {
      let others = catalog.indexes(definition.database, collectionID: definition.collectionID)
      if others.count >= configuration.collectionIndexesMax,
        let least = catalog.leastUsed(of: others)
      {
        return .remove(least)
      }
    }
    if catalog.index(definition) == nil, catalog.indexes.count >= configuration.indexesMax {
      if let least = catalog.leastUsed { return .remove(least) }
      // The limit leaves no room for any index.
      requests.removeAll()
      return nil
    }
    requests.removeFirst()
    return .register(definition)
  }
}
