package import DocumentModel
package import Logging
import StatusCodes
package import StorageEngine
import Synchronization

/// A query runner that runs queries on snapshots and maintains the indexes they need.
///
/// A query for which no index is ready scans its collections. Once queries of one shape have
/// examined more candidates without a match than an index for them would cost, `run` builds that
/// index concurrently with writers.
package final class QueryRunner: Sendable {
  let configuration: Configuration
  let logger: Logger
  let state: Mutex<State>
  let maintenanceCost: IndexMaintenanceCost
  /// Signaled when a query requests an index; read by `run`.
  let wakes: AsyncStream<Void>
  let wake: AsyncStream<Void>.Continuation

  /// The limits of the runner.
  package struct Configuration: Sendable {
    /// The maximum number of index entries that the planner counts to find the cheapest index.
    ///
    /// With `indexCost` 0, also the number of candidates above which a query requests an index at
    /// once.
    package var scanCandidatesMax: Int
    /// The cost of an index per document of its collections, in candidates examined.
    ///
    /// One for reading the document, two for writing and maintaining the entry.
    package var indexCost: Int
    /// The maximum number of automatic indexes of one collection ID; each makes commits slower.
    package var collectionIndexesMax: Int
    /// The number of entries from which an index range is joined with others of the same order.
    package var joinEntriesMin: Int
    /// The maximum number of indexes in total.
    ///
    /// Production allows 200 composite indexes per database without billing.
    package var indexesMax: Int
    /// The maximum number of fields of an automatic index.
    ///
    /// Production allows 100, of up to 1500 bytes each in a key.
    package var indexFieldsMax: Int
    /// The maximum number of documents added to an index in one commit.
    ///
    /// It is small enough that writers wait only milliseconds.
    package var backfillDocumentsMax: Int
    /// The maximum number of stored bytes read to build an index in one commit.
    package var backfillBytesMax: Int
    /// The maximum number of collections skipped to build an index in one commit.
    ///
    /// It keeps the read short.
    package var backfillSeeksMax: Int
    /// The maximum number of entries of a removed index deleted in one commit.
    package var removalEntriesMax: Int
    /// The maximum stored size of documents that one query sorts; production allows 128 MiB.
    package var sortBytesMax: Int
    /// The number of candidates without a match after which an index is considered.
    ///
    /// They are counted over all queries of one shape. The index is built unless it costs more.
    package var wastedCandidatesMax: Int
    /// The entries written since an index was last used after which its cost is evaluated.
    package var idleWritesMax: Int
    /// The indexes to which queries are initially restricted; nil for no restriction.
    ///
    /// A query that needs another index is refused, as in production.
    package var declaredIndexes: DeclaredIndexes?
    /// The maximum number of requested indexes not yet started; later queries repeat the rest.
    package var requestsMax: Int

    /// Creates limits; the defaults suit a development machine.
    package init(
      scanCandidatesMax: Int = 1000,
      indexCost: Int = 3,
      collectionIndexesMax: Int = 32,
      joinEntriesMin: Int = 32,
      indexesMax: Int = 200,
      indexFieldsMax: Int = 32,
      backfillDocumentsMax: Int = 500,
      backfillBytesMax: Int = 4 << 20,
      backfillSeeksMax: Int = 2000,
      removalEntriesMax: Int = 5000,
      sortBytesMax: Int = 128 << 20,
      wastedCandidatesMax: Int = 10_000,
      idleWritesMax: Int = 10_000,
      requestsMax: Int = 64,
      declaredIndexes: DeclaredIndexes? = nil
    ) {
      self.scanCandidatesMax = scanCandidatesMax
      self.indexCost = indexCost
      self.collectionIndexesMax = collectionIndexesMax
      self.joinEntriesMin = joinEntriesMin
      self.indexesMax = indexesMax
      self.indexFieldsMax = indexFieldsMax
      self.backfillDocumentsMax = backfillDocumentsMax
      self.backfillBytesMax = backfillBytesMax
      self.backfillSeeksMax = backfillSeeksMax
      self.removalEntriesMax = removalEntriesMax
      self.sortBytesMax = sortBytesMax
      self.wastedCandidatesMax = wastedCandidatesMax
      self.idleWritesMax = idleWritesMax
      self.requestsMax = requestsMax
      self.declaredIndexes = declaredIndexes
    }
  }

  struct State {
    var catalog = IndexCatalog()
    var storage: (any OrderedStorage)?
    /// The requested indexes, in the order of the requests.
    var requests: [IndexRequest] = []
    /// The IDs of removed indexes that still have entries.
    var orphans: [UInt64] = []
    /// The indexes whose writes since their last use have to be weighed.
    var suspects: Set<UInt64> = []
    /// The candidates that queries read without a match, by the index that would have avoided them.
    var wasted: [IndexDefinition: WastedCandidates] = [:]
    /// The indexes to which queries are restricted; nil for no restriction.
    var declared: DeclaredIndexes?
    /// The composite indexes that production would have needed.
    var needed: [DatabaseName: Set<CompositeIndex>] = [:]
  }

  /// Creates a runner without indexes; `load` reads them and `run` builds them.
  package init(configuration: Configuration = .init(), logger: Logger) {
    self.configuration = configuration
    state = Mutex(State(declared: configuration.declaredIndexes))
    self.logger = logger
    maintenanceCost = IndexMaintenanceCost(evaluationInterval: configuration.idleWritesMax)
    // One signal is enough: the task it wakes looks for all pending work.
    (wakes, wake) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Reads the catalog of indexes.
  ///
  /// Must be called before the first write. Without it, queries only scan.
  package func load(from storage: any OrderedStorage) async throws {
    let (indexes, numbers) = try await storage.read { snapshot in
      var indexes: [Index] = []
      try snapshot.scan(IndexCatalog.keyspace, prefix: []) { key, value in
        indexes.append(try Index(rowKey: key, row: value.bytes))
        return true
      }
      return (indexes, try Self.numbersInUse(snapshot))
    }
    state.withLock { state in
      state.storage = storage
      for index in indexes { state.catalog.insert(index) }
      for number in numbers where state.catalog.indexes[number] == nil {
        state.catalog.reserve(number)
        state.orphans.append(number)
      }
    }
    wake.yield()
  }

  /// Restricts later queries to declared indexes.
  package func declare(_ indexes: DeclaredIndexes) { state.withLock { $0.declared = indexes } }

  /// Validates a query and makes its implied parts explicit.
  ///
  /// Throws `INVALID_ARGUMENT` with production's messages, and `FAILED_PRECONDITION` for a query
  /// that the declared indexes, if any, do not serve.
  package func prepare(_ query: Query) throws -> PreparedQuery {
    let prepared = PreparedQuery(query: query, orders: try QueryValidation(query: query).check())
    try checkIndexes(of: prepared)
    return prepared
  }

  /// Returns the composite indexes that production would have needed for the queries so far.
  ///
  /// They are in order of their declarations, at most 1000 per database.
  package func neededIndexes(_ database: DatabaseName) -> [CompositeIndex] {
    let needed = state.withLock { $0.needed[database] ?? [] }
    return needed.map { ($0.json, $0) }.sorted { $0.0 < $1.0 }.map(\.1)
  }

  private func checkIndexes(of prepared: PreparedQuery) throws {
    let query = prepared.query
    let declared = state.withLock { $0.declared }
    // Most queries are by name or by one field, for which every project has the indexes.
    guard
      declared != nil || query.filter != nil || query.orders.count > 1 || query.allDescendants
        || query.findNearest != nil || !query.aggregatedFields.isEmpty
        || query.orders.contains(where: { $0.path.isDocumentID && $0.descending })
    else { return }
    for need in IndexNeed.all(of: prepared) {
      let isServed = declared?.serve(need) ?? true
      if need.isComposite || !isServed {
        let index = need.composite
        state.withLock { state in
          guard state.needed[query.database, default: []].count < Self.neededMax else { return }
          state.needed[query.database, default: []].insert(index)
        }
      }
      guard isServed else {
        throw MissingIndexError(
          database: query.database,
          index: need.composite,
          hasManyRanges: FilterLeaves(query.filter).inequalityPaths.count > 1
        )
      }
    }
  }

  private static let neededMax = 1000

  /// Runs a query on one snapshot.
  ///
  /// `body` receives the results in order, already projected, and returns false to stop. `overlay`
  /// contains documents as of an older read time, or nil for those that did not exist; it replaces
  /// the snapshot's documents of the same names. With `sequence`, other documents written after
  /// that commit are treated as missing. Throws `RESOURCE_EXHAUSTED` if a result that needs sorting
  /// exceeds the memory limit.
  package func run(
    _ query: PreparedQuery,
    on snapshot: any StorageSnapshot,
    at sequence: UInt64? = nil,
    overlay: [DocumentName: FirestoreDocument?] = [:],
    _ body: (FirestoreDocument) throws -> Bool
  ) throws -> QueryStatistics {
    var run = QueryRun(query, at: sequence)
    run.add(older: overlay)
    var budget = CandidateBudget.unlimited
    try goOn(with: &run, on: snapshot, &budget, body)
    return run.statistics
  }

  /// Continues a query on a later snapshot, whose newer changes must have been added to `run`.
  ///
  /// `body` receives further results in order and returns false to pause. Returns when `body` does,
  /// when the budget is spent, or at the end. Throws the same errors as `run`.
  package func goOn(
    with run: inout QueryRun,
    on snapshot: any StorageSnapshot,
    _ budget: inout CandidateBudget,
    _ body: (FirestoreDocument) throws -> Bool
  ) throws {
    let catalog = state.withLock { $0.catalog }
    func planner(_ query: PreparedQuery) -> QueryPlanner {
      QueryPlanner(query: query, snapshot: snapshot, configuration: configuration)
    }
    var hasFailed = false
    defer { note(run, planner(run.query), hasFailed: hasFailed) }
    do {
      try run.goOn(
        snapshot,
        &budget,
        isUsable: { id in catalog.indexes[id]?.isUsable(at: snapshot.sequence) ?? false },
        plan: { rest in
          let plan = try planner(rest).plan(catalog)
          return QueryExecution(rest, plan, sortBytesMax: configuration.sortBytesMax)
        },
        body
      )
    } catch let error as StatusError where error.statusCode == .resourceExhausted {
      hasFailed = true
      throw error
    }
  }

  /// The current indexes, for a commit that is being built.
  ///
  /// Read them within a step of the store's `CommitOrder`, and submit the batch in the same step:
  /// only then can no index appear or disappear in between.
  package var indexMaintainer: IndexMaintainer {
    IndexMaintainer(catalog: state.withLock { $0.catalog }, maintenanceCost: maintenanceCost) {
      id in
      self.state.withLock { _ = $0.suspects.insert(id) }
      self.wake.yield()
    }
  }

  /// Returns the IDs of the collections directly below a document or the root, in order.
  ///
  /// A collection is listed if it contains a document at any depth.
  package func listCollectionIDs(
    _ database: DatabaseName,
    parent: ResourcePath,
    after: String?,
    limit: Int,
    on snapshot: any StorageSnapshot
  ) throws -> [String] {
    guard limit > 0 else { return [] }
    var ids: [String] = []
    let scan = DocumentScan(snapshot: snapshot, database: database)
    try scan.collectionIDs(below: parent, after: after) { id in
      ids.append(id)
      return ids.count < limit
    }
    return ids
  }

  /// Adds the removal of a database's index entries to a batch that removes its documents.
  ///
  /// Must be called while the commit is being built. The indexes remain, empty.
  package func reset(_ database: DatabaseName, in batch: inout StorageBatch) {
    let indexes = state.withLock { Array($0.catalog.indexes.values) }
    for index in indexes where index.definition.database == database {
      let prefix = IndexEntry.prefix(ofIndex: index.id)
      batch.deleteRange(IndexEntry.keyspace, from: prefix, to: keyAfter(prefix: prefix))
    }
  }

  /// Returns all indexes, sorted by collection.
  package func indexes() -> [IndexReport] {
    state.withLock { Array($0.catalog.indexes.values) }.map { index in
      let isReady = if case .ready = index.state { true } else { false }
      return IndexReport(definition: index.definition, isReady: isReady)
    }.sorted { $0.definition.description < $1.definition.description }
  }

  /// Returns the IDs at the start of index entries' keys, with one seek per ID.
  private static func numbersInUse(_ snapshot: any StorageSnapshot) throws -> [UInt64] {
    var numbers: [UInt64] = []
    var from: [UInt8]? = []
    while let start = from {
      from = nil
      try snapshot.scan(
        IndexEntry.keyspace,
        from: start,
        to: nil,
        descending: false
      ) { key, _ in
        let number = Index.number(key[...])
        numbers.append(number)
        from = keyAfter(prefix: IndexEntry.prefix(ofIndex: number))
        return false
      }
    }
    return numbers
  }

}

/// An index as `hearth indexes` shows it.
package struct IndexReport: Sendable, Hashable {
  package var definition: IndexDefinition
  /// False while the index is being built or removed; queries then scan.
  package var isReady: Bool
}

/// The cost of a query.
package struct QueryStatistics: Sendable, Hashable {
  /// The number of results skipped because of the offset.
  package var skipped = 0
  /// The number of documents and index entries read, matching or not, and of collections skipped.
  package var scanned = 0
  /// The number of index entries in `scanned` that were skipped without reading their documents.
  package var passedEntries = 0
  /// The number of results returned to the caller.
  package var returned = 0
  /// The indexes used; empty for a scan.
  package var indexes: [IndexDefinition] = []

  package init() {}
}
