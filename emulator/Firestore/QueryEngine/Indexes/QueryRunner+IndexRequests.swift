import DocumentModel
import StorageEngine
import Synchronization

/// An index requested by queries.
struct IndexRequest: Sendable, Hashable {
  var definition: IndexDefinition
  /// The candidates read without a match for lack of the index; nil to build it at any cost.
  var wasted: Int?
}

/// The cost so far of lacking one index.
struct WastedCandidates: Sendable, Hashable {
  private(set) var sum = 0
  /// The sum at which the index is considered next.
  private(set) var considered: Int

  init(considered: Int) { self.considered = considered }

  /// Adds candidates; returns true if the index should be considered now.
  ///
  /// Considering an index counts its collection, so the sum must grow by a quarter before the next
  /// time.
  mutating func add(_ candidates: Int) -> Bool {
    sum += candidates
    guard sum > considered else { return false }
    considered = sum + sum / 4
    return true
  }
}

extension QueryRunner {
  /// Records the indexes that a query used and the cost of the indexes it lacked.
  ///
  /// A query whose result was too large to sort requests its index at any cost. Otherwise an index
  /// is requested once its lack has cost enough, over all queries of the same shape, to consider
  /// it.
  func note(_ run: QueryRun, _ planner: QueryPlanner, hasFailed: Bool) {
    let statistics = run.statistics
    let unmatched = Self.unmatched(statistics)
    let isFree =
      configuration.indexCost == 0 && statistics.scanned > configuration.scanCandidatesMax
    // The total cost is known only at the end, and most of it must have produced no match.
    let isWasteful =
      run.isEnded && unmatched >= Self.wasteMin
      && unmatched > statistics.skipped + statistics.returned
    let asksAtOnce = hasFailed || isFree
    let requests = asksAtOnce || isWasteful ? planner.requests(after: run.plan) : []
    for id in run.plan.indexIDs { maintenanceCost.reset(id) }
    let wakes = state.withLock { state in
      for id in run.plan.indexIDs { state.catalog.markUsed(id) }
      guard state.storage != nil else { return false }
      var added = false
      for definition in requests where state.catalog.index(definition) == nil {
        let atAnyCost = asksAtOnce || state.declared?.contains(definition) ?? false
        guard
          let request = state.request(definition, atAnyCost: atAnyCost, unmatched, configuration)
        else {
          continue
        }
        state.requests.append(request)
        added = true
      }
      return added
    }
    if wakes { wake.yield() }
  }

  /// Returns the number of candidates that an index would have saved a query.
  private static func unmatched(_ statistics: QueryStatistics) -> Int {
    let entries = statistics.passedEntries
    return statistics.scanned - entries + entries / CandidateBudget.keysPerCandidate
      - statistics.skipped - statistics.returned
  }

  /// The number of candidates without a match below which they are ignored.
  private static let wasteMin = 50

  /// Decides whether the cost of lacking an index justifies building it.
  ///
  /// Counts the documents of its collections, up to the number that would make the index too
  /// expensive.
  func evaluateRequest(_ request: IndexRequest, _ storage: any OrderedStorage) async throws {
    guard let known = request.wasted else { return }
    // More queries may have run since it was requested.
    let wasted = state.withLock { max(known, $0.wasted[request.definition]?.sum ?? 0) }
    let documentsMax = wasted / max(1, configuration.indexCost)
    let isWorthIt =
      try await count(request.definition, upTo: documentsMax + 1, storage) <= documentsMax
    state.withLock { state in
      guard let index = state.requests.firstIndex(of: request) else { return }
      if isWorthIt {
        state.requests[index].wasted = nil
      } else {
        state.requests.remove(at: index)
      }
    }
  }

  /// Counts the documents of an index's collections up to a limit.
  private func count(
    _ definition: IndexDefinition,
    upTo countMax: Int,
    _ storage: any OrderedStorage
  ) async throws -> Int {
    var counted = 0
    var next: [UInt8]? = DocumentKeys.databasePrefix(definition.database)
    while let from = next, counted < countMax {
      try Task.checkCancellation()
      let keysMax = min(countMax - counted, Self.countedKeysMax)
      let seeksMax = configuration.backfillSeeksMax
      let (keys, rest) = try await storage.read { snapshot in
        var range = KeyRange(prefix: DocumentKeys.databasePrefix(definition.database))
        range.startAtLeast(from)
        var (keys, seeks) = (0, 1)
        var last: [UInt8]?
        let stopped = try DocumentScan(snapshot: snapshot, database: definition.database).groupKeys(
          definition.collectionID,
          in: range,
          passing: {
            seeks += 1
            return seeks <= seeksMax
          }
        ) { key, _ in
          keys += 1
          guard keys < keysMax else {
            last = key
            return false
          }
          return true
        }
        return (keys, last.map { $0 + [0] } ?? stopped)
      }
      counted += keys
      next = rest
    }
    return counted
  }

  /// The maximum number of keys counted in one read of the store, which takes some milliseconds.
  private static let countedKeysMax = 20_000
}

extension QueryRunner.State {
  /// The maximum number of query shapes whose wasted candidates are recorded.
  private static let wastedMax = 256

  /// Returns the request for an index.
  ///
  /// Returns nil if it has been requested already or is not to be considered yet.
  fileprivate mutating func request(
    _ definition: IndexDefinition,
    atAnyCost: Bool,
    _ unmatched: Int,
    _ configuration: QueryRunner.Configuration
  ) -> IndexRequest? {
    let isOpen =
      requests.count < configuration.requestsMax
      && !requests.contains { $0.definition == definition }
    if atAnyCost { return isOpen ? IndexRequest(definition: definition) : nil }
    if wasted.index(forKey: definition) == nil, wasted.count >= Self.wastedMax {
      let least = wasted.min { $0.value.sum < $1.value.sum }
      if let least { wasted[least.key] = nil }
    }
    var waste =
      wasted[definition] ?? WastedCandidates(considered: configuration.wastedCandidatesMax)
    defer { wasted[definition] = waste }
    guard waste.add(unmatched), isOpen else { return nil }
    return IndexRequest(definition: definition, wasted: waste.sum)
  }
}
