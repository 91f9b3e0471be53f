import DocumentModel
import StorageEngine

/// The ranges of document keys that a scan must read.
///
/// They are the query's own, narrowed to the names that its filter and cursors allow.
enum ScanRanges {
  /// Disjoint ranges in order.
  static func ranges(of query: PreparedQuery) -> [KeyRange] {
    let whole = query.keyRange
    var ranges: [KeyRange] = []
    for disjunct in query.disjuncts {
      var range = whole
      for term in disjunct.terms where term.path.isDocumentID {
        narrow(&range, term.test, query)
      }
      narrowByCursors(&range, query)
      if !range.isEmpty { ranges.append(range) }
    }
    return union(ranges)
  }

  private static func narrow(
    _ range: inout KeyRange,
    _ test: Condition.Test,
    _ query: PreparedQuery
  ) {
    switch test {
    case .oneOf(let values):
      // One document's key is known in every scope.
      guard case .reference(let name) = values.first, name.database == query.query.database,
        name.path.isDocument
      else { return }
      let key = DocumentKeys.key(name)
      range.startAtLeast(key)
      range.endAtMost(key + [0])
    case .range(let comparison, .reference(let name)):
      guard let key = key(name, query) else { return }
      switch comparison {
      case .greaterThan, .greaterThanOrEqual: range.startAtLeast(key)
      case .lessThan: range.endAtMost(key)
      case .lessThanOrEqual: range.endAtMost(key + [0])
      }
    case .range, .noneOf, .containsAny: return
    }
  }

  private static func narrowByCursors(_ range: inout KeyRange, _ query: PreparedQuery) {
    guard let descending = query.nameOrderDescending else { return }
    func key(_ cursor: Query.Cursor?) -> [UInt8]? {
      guard case .reference(let name) = cursor?.values.first else { return nil }
      return self.key(name, query)
    }
    if let start = key(query.query.start) {
      if descending { range.endAtMost(start + [0]) } else { range.startAtLeast(start) }
    }
    if let end = key(query.query.end) {
      if descending { range.startAtLeast(end) } else { range.endAtMost(end + [0]) }
    }
  }

  /// The key of a name; nil outside one collection, where keys are not in the order of names.
  private static func key(_ name: DocumentName, _ query: PreparedQuery) -> [UInt8]? {
    guard let collection = query.collection, name.database == query.query.database,
      name.collection == collection, !name.path.segments.isEmpty
    else { return nil }
    return DocumentKeys.key(name)
  }

  private static func union(_ ranges: [KeyRange]) -> [KeyRange] {
    let sorted = ranges.sorted { ValueOrder.compareBytes($0.from, $1.from) == .less }
    var result: [KeyRange] = []
    for range in sorted {
      guard let last = result.last, let end = last.to,
        ValueOrder.compareBytes(range.from, end) != .greater
      else {
        if result.isEmpty || result.last?.to != nil { result.append(range) }
        continue
      }
      if let rangeEnd = range.to, ValueOrder.compareBytes(rangeEnd, end) != .greater { continue }
      result[result.count - 1].to = range.to
    }
    return result
  }
}
