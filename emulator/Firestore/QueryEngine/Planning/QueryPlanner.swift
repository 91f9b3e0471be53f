import DocumentModel
import StorageEngine

/// A planner that chooses how to run a query and suggests indexes that would serve it better.
struct QueryPlanner {
  let query: PreparedQuery
  let snapshot: any StorageSnapshot
  let configuration: QueryRunner.Configuration

  /// Returns the plan with the indexes that are ready in the snapshot.
  ///
  /// Of several usable indexes it chooses the one with the fewest entries, counted up to the number
  /// of candidates that a scan may read.
  func plan(_ catalog: IndexCatalog) throws -> QueryPlan {
    guard let collectionID = query.query.collectionID, !needsNoIndex else { return .scan }
    let indexes = catalog.indexes(query.query.database, collectionID: collectionID)
      .filter { $0.definition.scope == scope && $0.isUsable(at: snapshot.sequence) }
    guard !indexes.isEmpty else { return .scan }
    var ranges: [IndexRange] = []
    for disjunct in query.disjuncts {
      let candidates = indexes.compactMap {
        IndexRangeBuilder(query: query, disjunct: disjunct, index: $0).build()
      }
      guard let best = try cheapest(candidates) else { return .scan }
      ranges.append(best)
    }
    return .indexes(ranges)
  }

  /// Returns the indexes to build, judged after the plan has run.
  func requests(after plan: QueryPlan) -> [IndexDefinition] {
    guard !needsNoIndex, query.query.collectionID != nil else { return [] }
    let definitions =
      switch plan {
      case .scan: query.disjuncts.flatMap(firstIndexes)
      case .indexes(let ranges):
        zip(query.disjuncts, ranges)
          .filter { !$1.isExact || !$1.isOrdered || !$1.joined.isEmpty }
          .compactMap { idealIndex($0.0) }
      }
    return definitions.filter { $0.fields.count <= configuration.indexFieldsMax }
  }

  private var scope: IndexDefinition.Scope {
    query.query.allDescendants ? .group : .collection
  }

  /// True if the documents' own keys serve the query as well as any index.
  private var needsNoIndex: Bool {
    if query.disjuncts.allSatisfy({ $0.equalValue(of: .documentID) != nil }) { return true }
    return query.collection != nil && query.nameOrderDescending != nil
      && query.disjuncts.allSatisfy { $0.terms.allSatisfy(\.path.isDocumentID) }
  }

  // MARK: Choice

  private func cheapest(_ candidates: [IndexRange]) throws -> IndexRange? {
    guard candidates.count > 1 else { return candidates.first }
    // The ranges are counted up to a limit that grows until one range costs less than the limit,
    // because it ends or the query's limit is reached. The cheapest range therefore determines the
    // effort.
    var countMax = 16
    while true {
      let counts = try candidates.map { try count($0, upTo: countMax) }
      let capped = min(countMax, configuration.scanCandidatesMax)
      let costs = zip(candidates, counts).map { cost($0, $1, capped) }
      if costs.contains(where: { $0.0 < countMax }) || countMax >= configuration.scanCandidatesMax {
        let inOrder = zip(candidates, costs).sorted { $0.1 < $1.1 }
        guard let (best, cost) = inOrder.first else { return nil }
        guard cost.0 >= configuration.joinEntriesMin else { return best }
        return join(best, with: inOrder.dropFirst().map(\.0))
      }
      countMax *= 4
    }
  }

  /// Joins a range with others that narrow down the documents further.
  ///
  /// Reading more entries costs less than reading the documents that they rule out.
  private func join(_ range: IndexRange, with others: [IndexRange]) -> IndexRange {
    var result = range
    for other in others where !result.isExact && result.agrees(with: other) {
      let terms = result.terms.union(other.terms)
      guard terms.count > result.terms.count else { continue }
      result.terms = terms
      result.joined.append(other)
    }
    return result
  }

  /// Returns the cost of a range: the entries to read and, as a tiebreaker, the need to sort.
  private func cost(_ range: IndexRange, _ count: Int, _ countMax: Int) -> (Int, Int) {
    let isOrdered = range.isOrdered && query.disjuncts.count == 1
    guard isOrdered, range.isExact, let limit = query.query.limit else {
      return (count, range.isOrdered ? 0 : 1)
    }
    let (wanted, overflow) = limit.addingReportingOverflow(query.query.offset)
    return (overflow ? count : min(count, wanted), 0)
  }

  private func count(_ range: IndexRange, upTo countMax: Int) throws -> Int {
    guard !range.range.isEmpty else { return 0 }
    var count = 0
    try snapshot.scan(
      IndexEntry.keyspace,
      from: range.range.from,
      to: range.range.to,
      descending: false
    ) { _, _ in
      count += 1
      return count < countMax
    }
    return count
  }

  // MARK: Suggested indexes

  /// Returns the indexes for a disjunct that has none.
  ///
  /// If the order is by name and several can be merged, these are single-field indexes; otherwise
  /// the index made for the query.
  private func firstIndexes(_ disjunct: Conjunction) -> [IndexDefinition] {
    let singles =
      disjunct.equalPaths.map { IndexDefinition.Field($0, .ascending) }
      + disjunct.containedPaths.map { IndexDefinition.Field($0, .contains) }
    guard query.orders(beyond: disjunct).isEmpty, singles.count > 1 else {
      return [idealIndex(disjunct)].compactMap(\.self)
    }
    return singles.map { definition([$0], nameDescending: false) }
  }

  /// Returns the index whose range is exactly the disjunct's results in the query's order.
  private func idealIndex(_ disjunct: Conjunction) -> IndexDefinition? {
    let suffix = query.orders(beyond: disjunct)
    // An index serves an order and its reverse; the first field determines which one is built.
    let flips = suffix.first?.descending ?? false
    let nameDescending =
      suffix.isEmpty ? false : (query.orders.last?.descending ?? false) != flips
    let fields =
      disjunct.equalPaths.map { IndexDefinition.Field($0, .ascending) }
      + disjunct.containedPaths.prefix(1).map { IndexDefinition.Field($0, .contains) }
      + suffix.map {
        IndexDefinition.Field($0.path, $0.descending != flips ? .descending : .ascending)
      }
    guard !fields.isEmpty || scope == .group else { return nil }
    return definition(fields, nameDescending: nameDescending)
  }

  private func definition(
    _ fields: [IndexDefinition.Field],
    nameDescending: Bool
  ) -> IndexDefinition {
    IndexDefinition(
      database: query.query.database,
      collectionID: query.query.collectionID ?? "",
      scope: scope,
      fields: fields,
      nameDescending: nameDescending
    )
  }
}
