import DocumentModel
import StorageEngine

/// The way a query finds its documents.
enum QueryPlan: Sendable {
  /// Scans documents.
  case scan
  /// Reads index entries, one range for each disjunct.
  ///
  /// If all ranges are in the query's order, they are merged; otherwise their documents are sorted.
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

/// The part of an index that contains all documents of one disjunct.
struct IndexRange: Sendable {
  var index: Index
  var disjunct: Conjunction
  var range: KeyRange
  /// True if the query reads the index backwards.
  var reversed: Bool
  /// True if reading the range yields the query's order.
  var isOrdered: Bool
  /// The tests applied by the range and by the ranges it is joined with.
  var terms: Set<Conjunction.Term>
  /// The prefix of all keys of the range: the index and the components bound to single values.
  var bound: [UInt8]
  /// True if a bound value is truncated, so that the range includes entries of other values.
  var isBoundCut: Bool
  /// The index's fields after the bound ones.
  var rest: [IndexDefinition.Field]
  /// Further ranges, in the same order, that must also contain the document.
  var joined: [IndexRange] = []

  /// True if the range applies every test of the disjunct, so that nearly all entries match.
  var isExact: Bool {
    terms.count == Set(disjunct.terms).count && !joined.contains(where: \.isBoundCut)
  }

  /// The end of the components bound to single values.
  ///
  /// Entries tie if a later component is truncated.
  var boundEnd: Int { bound.count }

  /// This range and the ranges it is joined with.
  var all: [IndexRange] { [self] + joined }

  /// Returns true if two ranges can be joined.
  ///
  /// A document's entries in both must then have the same components, in the same order, after the
  /// bound components.
  func agrees(with other: IndexRange) -> Bool {
    rest == other.rest && reversed == other.reversed && isOrdered == other.isOrdered
      && index.definition.scope == other.index.definition.scope
      && index.definition.nameDescending == other.index.definition.nameDescending
  }
}
