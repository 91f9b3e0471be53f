package import DocumentModel
package import Logging
import RuntimeSupport
package import StorageEngine
import Synchronization

/// Runs queries on snapshots and keeps the indexes that they need.
///
/// A query for which no index is ready scans its collections. When queries of one shape have looked
/// at more candidates without a match than an index for them costs, `run` builds it beside the
/// writers.
package final class QueryRunner: Sendable {
  let configuration: Configuration
  let logger: Logger
  let state: Mutex<State>
  let upkeep: IndexUpkeep
  /// Woken when a query asks for an index; read by `run`.
  let wakes: AsyncStream<Void>
  let wake: AsyncStream<Void>.Continuation

  /// The bounds of the runner.
  package struct Configuration: Sendable {
    /// Entries up to which the planner counts to find the cheapest index; with `indexCost` 0, the
    /// candidates above which a query asks for an index at once.
    package var scanCandidatesMax: Int
    /// What an index costs for each document of its collections, in candidates looked at.
    ///
    /// One to read the document, two to write the entry and to keep it up.
    package var indexCost: Int
    /// Automatic indexes of one collection id; each makes its commits dearer.
    package var collectionIndexesMax: Int
    /// Entries of an index's range from which on it is joined with others of the same order.
    package var joinEntriesMin: Int
    /// Indexes in all; production allows 200 composite ones to a database without billing.
    package var indexesMax: Int
    /// Fields of an automatic index; production allows 100, of up to 1 500 bytes each in a key.
    package var indexFieldsMax: Int
    /// Documents put into a growing index in one commit, so that writers wait for milliseconds.
    package var backfillDocumentsMax: Int
    /// Stored bytes read for one such commit.
    package var backfillBytesMax: Int
    /// Collections passed over for one such commit, so that no read lasts long.
    package var backfillSeeksMax: Int
    /// Entries of a removed index deleted in one commit.
    package var removalEntriesMax: Int
    /// Stored bytes that one query may hold for sorting; production allows 128 MiB.
    package var sortBytesMax: Int
    /// Candidates that queries of one shape may read without a match, in all, until an index is
    /// considered, which is then built unless it costs more.
    package var wastedCandidatesMax: Int
    /// Entries written since a query used an index after which its cost is looked at.
    package var idleWritesMax: Int
    /// The indexes that a query must do with at first, as in production; nil when it needs none.
    package var declaredIndexes: DeclaredIndexes?
    /// Indexes asked for and not yet begun; further ones are asked for again by later queries.
    package var wishesMax: Int

    /// Bounds; the defaults suit a development machine.
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
      wishesMax: Int = 64,
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
      self.wishesMax = wishesMax
      self.declaredIndexes = declaredIndexes
    }
  }

  struct State {
    var catalogue = IndexCatalogue()
    var storage: (any OrderedStorage)?
    /// The indexes asked for, in the order of asking.
    var wishes: [IndexWish] = []
    /// The numbers of removed indexes that still have entries.
    var orphans: [UInt64] = []
    /// Indexes whose writes since their last use have to be weighed.
    var suspects: Set<UInt64> = []
    /// The candidates that queries read without a match, by the index that would have spared them.
    var wasted: [IndexDefinition: WastedCandidates] = [:]
    /// The indexes that a query must do with; nil when it needs none.
    var declared: DeclaredIndexes?
    /// The composite indexes that production would have needed.
    var needed: [DatabaseName: Set<CompositeIndex>] = [:]
  }

  /// A runner without indexes; `load` reads them and `run` builds them.
  package init(configuration: Configuration = .init(), logger: Logger) {
    self.configuration = configuration
    state = Mutex(State(declared: configuration.declaredIndexes))
    self.logger = logger
    upkeep = IndexUpkeep(suspicion: configuration.idleWritesMax)
    // One wake is enough: the task it wakes looks at everything that is to be done.
    (wakes, wake) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Reads the catalogue of indexes.
  ///
  /// Call it before the first write; without it the runner works, but only scans.
  package func load(from storage: any OrderedStorage) async throws {
    let (indexes, numbers) = try await storage.read { snapshot in
      var indexes: [Index] = []
      try snapshot.scan(IndexCatalogue.keyspace, prefix: []) { key, value in
        indexes.append(try Index(rowKey: key, row: value.bytes))
        return true
      }
      return (indexes, try Self.numbersInUse(snapshot))
    }
    state.withLock { state in
      state.storage = storage
      for index in indexes { state.catalogue.insert(index) }
      for number in numbers where state.catalogue.indexes[number] == nil {
        state.catalogue.reserve(number)
        state.orphans.append(number)
      }
    }
    wake.yield()
  }

  /// Sets the indexes that queries from now on must do with.
  package func declare(_ indexes: DeclaredIndexes) { state.withLock { $0.declared = indexes } }

  /// Checks a query and makes its implied parts explicit.
  ///
  /// Throws `INVALID_ARGUMENT` in production's words, and `FAILED_PRECONDITION` for a query that
  /// the declared indexes do not serve, if there are any.
  package func prepare(_ query: Query) throws -> PreparedQuery {
    let prepared = PreparedQuery(query: query, orders: try QueryValidation(query: query).check())
    try checkIndexes(of: prepared)
    return prepared
  }

  /// The composite indexes that production would have needed for the queries so far, in order of
  /// their declarations; at most 1000 a database.
  package func neededIndexes(_ database: DatabaseName) -> [CompositeIndex] {
    let needed = state.withLock { $0.needed[database] ?? [] }
    return needed.map { ($0.json, $0) }.sorted { $0.0 < $1.0 }.map(\.1)
  }

  private func checkIndexes(of prepared: PreparedQuery) throws {
    let query = prepared.query
    let declared = state.withLock { $0.declared }
    // Most queries are by name or of one field, for which every project has what it needs.
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
  /// `body` gets the results in order, already projected, and returns false to stop. `overlay`
  /// holds documents as of an older read time, nil where there was none; it replaces what the
  /// snapshot holds under the same names, and with `sequence` documents written after that commit are
  /// not there otherwise. Throws `RESOURCE_EXHAUSTED` when a result that needs
  /// sorting is larger than memory allows.
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

  /// Goes on with a query on a later snapshot, whose newer changes `run` has been told.
  ///
  /// `body` gets further results in order and returns false to be given the next one another time.
  /// Returns when it does, when the budget is spent, or at the end. Throws as `run` does.
  package func goOn(
    with run: inout QueryRun,
    on snapshot: any StorageSnapshot,
    _ budget: inout CandidateBudget,
    _ body: (FirestoreDocument) throws -> Bool
  ) throws {
    let catalogue = state.withLock { $0.catalogue }
    func planner(_ query: PreparedQuery) -> QueryPlanner {
      QueryPlanner(query: query, snapshot: snapshot, configuration: configuration)
    }
    var hasFailed = false
    defer { note(run, planner(run.query), hasFailed: hasFailed) }
    do {
      try run.goOn(
        snapshot,
        &budget,
        isUsable: { id in catalogue.indexes[id]?.isUsable(at: snapshot.sequence) ?? false },
        plan: { rest in
          let plan = try planner(rest).plan(catalogue)
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
  /// Ask for them within a step of the store's `CommitOrder`, and hand the batch over in the same
  /// step: only there can no index appear or disappear.
  package var indexMaintainer: IndexMaintainer {
    IndexMaintainer(catalogue: state.withLock { $0.catalogue }, upkeep: upkeep) { id in
      self.state.withLock { _ = $0.suspects.insert(id) }
      self.wake.yield()
    }
  }

  /// The ids of the collections directly below a document or the root, in order.
  ///
  /// A collection is listed when any document lies in it, at any depth.
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
  /// Call it while the commit is being built. The indexes stay, empty.
  package func reset(_ database: DatabaseName, in batch: inout StorageBatch) {
    let indexes = state.withLock { Array($0.catalogue.indexes.values) }
    for index in indexes where index.definition.database == database {
      let prefix = IndexEntry.prefix(ofIndex: index.id)
      batch.deleteRange(IndexEntry.keyspace, from: prefix, to: keyAfter(prefix: prefix))
    }
  }

  /// All indexes, by collection.
  package func indexes() -> [IndexReport] {
    state.withLock { Array($0.catalogue.indexes.values) }.map { index in
      let isReady = if case .ready = index.state { true } else { false }
      return IndexReport(definition: index.definition, isReady: isReady)
    }.sorted { $0.definition.description < $1.definition.description }
  }

  /// The numbers that lead the keys of index entries; one seek for each.
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
  /// False while it is being built or removed; queries then scan.
  package var isReady: Bool
}

/// What a query cost.
package struct QueryStatistics: Sendable, Hashable {
  /// Results passed over because of the offset.
  package var skipped = 0
  /// Documents and index entries read, whether they matched or not, and collections passed over.
  package var scanned = 0
  /// Those of the index entries that were passed over without reading their documents.
  package var passedEntries = 0
  /// Results handed to the caller.
  package var returned = 0
  /// The indexes used; empty for a scan.
  package var indexes: [IndexDefinition] = []

  /// Nothing done yet.
  package init() {}
}
