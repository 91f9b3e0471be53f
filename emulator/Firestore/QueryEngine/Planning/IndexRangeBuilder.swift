import DocumentModel
import StorageEngine

/// A builder that finds the part of an index that serves a disjunct of a query.
struct IndexRangeBuilder {
  let query: PreparedQuery
  let disjunct: Conjunction
  let index: Index

  private var definition: IndexDefinition { index.definition }

  /// Returns the range to read; nil if the index lacks documents or does not narrow the search.
  func build() -> IndexRange? {
    guard let bound = boundPrefix() else { return nil }
    let rest = Array(definition.fields[bound.count...])
    let required = Set(query.orders.map(\.path)).union(disjunct.equalPaths)
    guard rest.allSatisfy({ $0.kind != .contains && required.contains($0.path) }) else {
      return nil
    }
    let reversed = reversal(of: rest)
    var range = KeyRange(prefix: bound.bytes)
    var used = bound.terms
    if let first = rest.first {
      used.formUnion(narrow(&range, bound.bytes, first))
    } else {
      used.formUnion(narrowByName(&range, bound.bytes))
    }
    if let reversed { narrowByCursors(&range, bound.bytes, rest, reversed: reversed) }
    let narrows = bound.count > 0 || !used.isEmpty || definition.scope == .group
    guard reversed != nil || narrows else { return nil }
    return IndexRange(
      index: index,
      disjunct: disjunct,
      range: range,
      reversed: reversed ?? false,
      isOrdered: reversed != nil,
      terms: used,
      bound: bound.bytes,
      isBoundCut: bound.isCut,
      rest: rest
    )
  }

  private struct Bound {
    var count: Int
    var bytes: [UInt8]
    var terms: Set<Conjunction.Term>
    var isCut: Bool
  }

  /// Returns the leading fields bound to one value each; nil if an array field is not bound.
  private func boundPrefix() -> Bound? {
    var bytes: [UInt8]
    if definition.scope == .collection {
      guard let collection = query.collection else { return nil }
      bytes = IndexEntry.prefix(ofIndex: index.id, collection: collection)
    } else {
      bytes = IndexEntry.prefix(ofIndex: index.id)
    }
    var terms: Set<Conjunction.Term> = []
    var isCut = false
    for (position, field) in definition.fields.enumerated() {
      let value: FirestoreValue?
      let term: Condition.Test
      switch field.kind {
      case .contains:
        value = disjunct.containedValue(of: field.path)
        guard let value else { return nil }
        term = .containsAny([value])
      case .ascending, .descending:
        value = disjunct.equalValue(of: field.path)
        guard let value else {
          return Bound(count: position, bytes: bytes, terms: terms, isCut: isCut)
        }
        term = .oneOf([value])
      }
      guard let value else { return nil }
      let component = IndexEntry.Component(value, descending: field.kind == .descending)
      bytes += component.bytes
      isCut = isCut || component.isCut
      terms.insert(Conjunction.Term(path: field.path, test: term))
    }
    return Bound(count: definition.fields.count, bytes: bytes, terms: terms, isCut: isCut)
  }

  /// Returns true if the query's order requires reading the index backwards, false if forwards.
  ///
  /// Returns nil if the index cannot provide the order.
  private func reversal(of rest: [IndexDefinition.Field]) -> Bool? {
    var orders = query.orders.filter { disjunct.equalValue(of: $0.path) == nil }
    let nameDescending: Bool
    if orders.last?.path.isDocumentID == true, let last = orders.popLast() {
      nameDescending = last.descending
    } else {
      // At most one name is left, so either direction provides its order.
      nameDescending = definition.nameDescending
    }
    guard orders.map(\.path) == rest.map(\.path) else { return nil }
    let reversed = nameDescending != definition.nameDescending
    let agree = zip(orders, rest).allSatisfy { order, field in
      (order.descending != (field.kind == .descending)) == reversed
    }
    return agree ? reversed : nil
  }

  /// Narrows to the inequalities of the first field that is not bound.
  private func narrow(
    _ range: inout KeyRange,
    _ prefix: [UInt8],
    _ field: IndexDefinition.Field
  ) -> Set<Conjunction.Term> {
    let descending = field.kind == .descending
    var used: Set<Conjunction.Term> = []
    for term in disjunct.terms where term.path == field.path {
      guard case .range(let comparison, let operand) = term.test else { continue }
      used.insert(term)
      let component = IndexEntry.Component(operand, descending: descending)
      let tag = KeyEncoder.tag(of: ValueOrder.typeClass(operand))
      let bracket = Edge(bytes: prefix + [descending ? ~tag : tag])
      let (low, high) = Self.comparable(to: operand, in: bracket, prefix, descending: descending)
      let value = Edge(bytes: prefix + component.bytes)
      // Entries that tie with a truncated operand may be on either side of it.
      let inclusive = component.isCut || comparison.includesOperand
      if comparison.isLowerBound != descending {
        range.startAtLeast(inclusive ? value.before : value.after ?? value.before)
        range.endAtMost(high)
      } else {
        range.startAtLeast(low)
        range.endAtMost(inclusive ? value.after : value.before)
      }
    }
    return used
  }

  /// Returns the ends of the operand's type range, excluding NaN.
  ///
  /// NaN sorts before all other numbers, but no inequality holds for it.
  private static func comparable(
    to operand: FirestoreValue,
    in bracket: Edge,
    _ prefix: [UInt8],
    descending: Bool
  ) -> (low: [UInt8], high: [UInt8]?) {
    let nan = FirestoreValue.double(.nan)
    guard ValueOrder.typeClass(operand) == ValueOrder.typeClass(nan) else {
      return (bracket.before, bracket.after)
    }
    let edge = Edge(bytes: prefix + IndexEntry.Component(nan, descending: descending).bytes)
    return descending
      ? (bracket.before, edge.before) : (edge.after ?? bracket.before, bracket.after)
  }

  /// Narrows an index whose fields are all bound to the names in the filter.
  private func narrowByName(
    _ range: inout KeyRange,
    _ prefix: [UInt8]
  ) -> Set<Conjunction.Term> {
    if definition.scope == .group, !query.query.parent.segments.isEmpty {
      var encoder = KeyEncoder()
      encoder.append(openPath: query.query.parent)
      let parent = Edge(bytes: prefix + flipped(encoder.bytes))
      range.startAtLeast(parent.before)
      range.endAtMost(parent.after)
    }
    var used: Set<Conjunction.Term> = []
    for term in disjunct.terms where term.path.isDocumentID {
      let comparison: Condition.RangeOperator?
      let operand: FirestoreValue
      switch term.test {
      case .range(let range, let value): (comparison, operand) = (range, value)
      case .oneOf(let values):
        guard let value = values.first else { continue }
        (comparison, operand) = (nil, value)
      case .noneOf, .containsAny: continue
      }
      guard let bytes = nameBytes(operand) else { continue }
      used.insert(term)
      let edge = Edge(bytes: prefix + bytes)
      guard let comparison else {
        range.startAtLeast(edge.before)
        range.endAtMost(edge.after)
        continue
      }
      let inclusive = comparison.includesOperand
      if comparison.isLowerBound != definition.nameDescending {
        range.startAtLeast(inclusive ? edge.before : edge.after ?? edge.before)
      } else {
        range.endAtMost(inclusive ? edge.after : edge.before)
      }
    }
    return used
  }

  /// Narrows an index in the query's order to the part between the cursors.
  ///
  /// If a cursor cannot be applied exactly, the bound stays wider; `matches` decides.
  private func narrowByCursors(
    _ range: inout KeyRange,
    _ prefix: [UInt8],
    _ rest: [IndexDefinition.Field],
    reversed: Bool
  ) {
    if let start = query.query.start {
      let (edge, isExact) = self.edge(start, prefix, rest)
      if reversed {
        range.endAtMost(isExact && !start.before ? edge.before : edge.after)
      } else {
        range.startAtLeast(isExact && !start.before ? edge.after ?? edge.before : edge.before)
      }
    }
    if let end = query.query.end {
      let (edge, isExact) = self.edge(end, prefix, rest)
      if reversed {
        range.startAtLeast(isExact && end.before ? edge.after ?? edge.before : edge.before)
      } else {
        range.endAtMost(isExact && end.before ? edge.before : edge.after)
      }
    }
  }

  private func edge(
    _ cursor: Query.Cursor,
    _ prefix: [UInt8],
    _ rest: [IndexDefinition.Field]
  ) -> (Edge, isExact: Bool) {
    var bytes = prefix
    var fields = rest[...]
    for (order, value) in zip(query.orders, cursor.values) {
      if let bound = disjunct.equalValue(of: order.path) {
        guard ValueOrder.areEqual(bound, value) else { return (Edge(bytes: bytes), false) }
      } else if order.path.isDocumentID {
        guard let name = nameBytes(value) else { return (Edge(bytes: bytes), false) }
        bytes += name
      } else if let field = fields.popFirst() {
        let component = IndexEntry.Component(value, descending: field.kind == .descending)
        bytes += component.bytes
        if component.isCut { return (Edge(bytes: bytes), false) }
      }
    }
    return (Edge(bytes: bytes), true)
  }

  /// Returns a name as the index stores it; nil for a name outside the index.
  private func nameBytes(_ value: FirestoreValue) -> [UInt8]? {
    guard case .reference(let name) = value, name.database == query.query.database,
      name.path.isDocument
    else { return nil }
    if let collection = query.collection, name.collection != collection { return nil }
    return IndexEntry.nameComponent(of: name, definition).bytes
  }

  private func flipped(_ bytes: [UInt8]) -> [UInt8] {
    definition.nameDescending ? bytes.map { ~$0 } : bytes
  }

  /// The positions before and after all keys that start with some bytes.
  private struct Edge {
    var bytes: [UInt8]
    var before: [UInt8] { bytes }
    var after: [UInt8]? { keyAfter(prefix: bytes) }
  }
}

extension Condition.RangeOperator {
  var includesOperand: Bool { self == .lessThanOrEqual || self == .greaterThanOrEqual }
  var isLowerBound: Bool { self == .greaterThan || self == .greaterThanOrEqual }
}
