import DocumentModel
import StorageEngine

/// How a query finds its documents.
enum QueryPlan {
  /// Walks documents.
  case scan
  /// Reads index entries: one range for each disjunct.
  ///
  /// When all ranges are in the query's order, they are merged; otherwise their documents are
  /// sorted.
  case indexes([IndexRange])

  var indexIDs: Set<UInt64> {
    switch self {
    case .scan: []
    case .indexes(let ranges): Set(ranges.map(\.index.id))
    }
  }

  var isOrdered: Bool {
    switch self {
    case .scan: false
    case .indexes(let ranges): ranges.allSatisfy(\.isOrdered)
    }
  }
}

/// The part of an index that holds all documents of one disjunct.
struct IndexRange {
  var index: Index
  var disjunct: Conjunction
  var range: KeyRange
  /// Whether the query reads the index backwards.
  var reversed: Bool
  /// Whether reading the range gives the query's order.
  var isOrdered: Bool
  /// Whether every test of the disjunct went into the range, so that nearly all entries match.
  var isExact: Bool
  /// Where the components bound to single values end; a cut component after it makes entries tie.
  var boundEnd: Int
}
