import DocumentModel
import QueryEngine

/// The number of results of each query, as counted by the views.
extension ListenTable {
  /// The number of documents that matched a query as of a processed record.
  struct KnownCount: Sendable, Equatable {
    var count: Int
    var sequence: UInt64
  }

  /// The maximum number of queries without listeners whose counts are kept.
  ///
  /// It is many times the number of queries on the screens of a phone app.
  private static let formerCountsMax = 1000

  /// Returns the number of results of a query without limit, if a listener's view has counted it.
  func count(of query: Query) -> KnownCount? {
    if let id = viewIDs[.query(query)], let count = views[id]?.count {
      return KnownCount(count: count, sequence: sequence)
    }
    return formerCounts[query]
  }

  mutating func keep(_ count: Int, of query: Query) {
    formerCounts[query] = KnownCount(count: count, sequence: sequence)
    guard formerCounts.count > Self.formerCountsMax,
      let oldest = formerCounts.min(by: { $0.value.sequence < $1.value.sequence })
    else { return }
    formerCounts[oldest.key] = nil
  }

  mutating func forgetCounts(where isLost: (DatabaseName) -> Bool) {
    formerCounts = formerCounts.filter { !isLost($0.key.database) }
    for (id, view) in views where view.count != nil && isLost(view.database) {
      views[id]?.count = nil
    }
  }
}
