import DocumentModel
import StorageEngine

/// How a query finds its documents.
enum QueryPlan: Sendable {
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
    case .indexes(let ranges): Set(ranges.flatMap(\.all).map(\.index.id))
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
struct IndexRange: Sendable {
  var index: Index
  var disjunct: Conjunction
  var range: KeyRange
  /// Whether the query reads the index backwards.
  var reversed: Bool
  /// Whether reading the range gives the query's order.
  var isOrdered: Bool
  /// The tests that went into the range and into those that it is joined with.
  var terms: Set<Conjunction.Term>
  /// What all keys of the range start with: the index, and the components bound to single values.
  var bound: [UInt8]
  /// Whether a bound value is cut, so that entries of other values are in the range.
  var isBoundCut: Bool
  /// The index's fields after the bound ones.
  var rest: [IndexDefinition.Field]
  /// Further ranges, in the same order, that a document must be in as well.
  var joined: [IndexRange] = []

  /// Whether every test of the disjunct went into the range, so that nearly all entries match.
  var isExact: Bool {
    terms.count == Set(disjunct.terms).count && !joined.contains(where: \.isBoundCut)
  }

  /// Where the components bound to single values end; a cut component after it makes entries tie.
  var boundEnd: Int { bound.count }

  /// This range and those that it is joined with.
  var all: [IndexRange] { [self] + joined }

  /// Whether what follows the bound components is the same in both ranges' entries of a document,
  /// in the same order, so that the ranges can be joined.
  func agrees(with other: IndexRange) -> Bool {
    rest == other.rest && reversed == other.reversed && isOrdered == other.isOrdered
      && index.definition.scope == other.index.definition.scope
      && index.definition.nameDescending == other.index.definition.nameDescending
  }
}
