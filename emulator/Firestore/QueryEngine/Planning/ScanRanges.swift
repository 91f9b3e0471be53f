import DocumentModel
import StorageEngine

/// The ranges of document keys that a scan must read.
///
/// They are the query's key range, narrowed to the names that its filter and cursors allow.
enum ScanRanges {
  /// Returns disjoint ranges in order.
  static func ranges(of query: PreparedQuery) -> [KeyRange] {
    let whole = query.keyRange
    var ranges: [KeyRange] = []
    for disjunct in query.disjuncts {
      var range = whole
      for term in disjunct.terms where term.path.isDocumentID {
        narrow(&range, term.test, query)
      }
      narrowByCursors(&range, query)
      if query.collection == nil { narrowAcrossCollections(&range, disjunct, query) }
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
      // A single document's key is known in every scope.
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

  /// Narrows a range over several collections to the part of the tree that can contain the names.
  ///
  /// Across collections, keys are not in the order of names. The subtrees of neighboring
  /// collections of one parent are.
  private static func narrowAcrossCollections(
    _ range: inout KeyRange,
    _ disjunct: Conjunction,
    _ query: PreparedQuery
  ) {
    var bounds = NameBounds()
    for term in disjunct.terms where term.path.isDocumentID {
      guard case .range(let comparison, let value) = term.test else { continue }
      bounds.add(value, isLower: comparison.isLowerBound)
    }
    if let descending = query.nameOrderDescending {
      bounds.add(query.query.start?.values.first, isLower: !descending)
      bounds.add(query.query.end?.values.first, isLower: descending)
    }
    let database = query.query.database
    func prefix(_ path: some Sequence<String>) -> [UInt8] {
      DocumentKeys.descendantsPrefix(database, ResourcePath(Array(path)))
    }
    let lower = bounds.lower?.segments(in: database)
    let upper = bounds.upper?.segments(in: database)
    let parent = query.query.parent.segments
    // All names begin with the parent's path, followed by what both bounds share.
    var shared = parent
    if let lower, let upper {
      let common = zip(lower, upper).prefix { ResourcePath([$0]) == ResourcePath([$1]) }.map(\.0)
      if common.count > shared.count { shared = common }
    }
    guard shared.count.isMultiple(of: 2) else {
      let below = prefix(shared)
      range.startAtLeast(below)
      return range.endAtMost(keyAfter(prefix: below))
    }
    // A document whose path both bounds begin with may be a result itself, and its key is
    // elsewhere.
    guard shared.count == parent.count else {
      let below = prefix(shared.dropLast())
      range.startAtLeast(below)
      return range.endAtMost(keyAfter(prefix: below))
    }
    for (segments, isLower) in [(lower, true), (upper, false)] {
      guard let segments, segments.count > shared.count,
        segments.prefix(shared.count).elementsEqual(
          shared,
          by: { ResourcePath([$0]) == ResourcePath([$1]) }
        )
      else { continue }
      let edge = prefix(segments.prefix(shared.count + 1))
      if isLower { range.startAtLeast(edge) } else { range.endAtMost(keyAfter(prefix: edge)) }
    }
  }

  /// The tightest lower and upper names that a query implies.
  private struct NameBounds {
    var lower: DocumentName?
    var upper: DocumentName?

    mutating func add(_ value: FirestoreValue?, isLower: Bool) {
      guard case .reference(let name) = value else { return }
      if isLower {
        lower = lower.map { max($0, name) } ?? name
      } else {
        upper = upper.map { min($0, name) } ?? name
      }
    }
  }

  /// Returns the key of a name.
  ///
  /// Returns nil for a query of several collections, where keys are not in the order of names, and
  /// for a name outside the collection.
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

extension DocumentName {
  /// Returns the path's segments if the name is in a database.
  fileprivate func segments(in database: DatabaseName) -> [String]? {
    self.database == database ? path.segments : nil
  }
}
