package import DocumentModel

/// A reference implementation of queries that filters, sorts and cuts all documents.
///
/// It shares nothing with the engine except the order of values.
package struct ReferenceEvaluator {
  package let query: Query

  /// Creates an evaluator for a valid query.
  package init(query: Query) { self.query = query }

  /// Returns the query's results among all documents of a database.
  package func results(_ documents: some Collection<FirestoreDocument>) -> [FirestoreDocument] {
    let orders = orders
    let sorted =
      documents
      .filter { document in
        isInScope(document.name)
          && orders.allSatisfy { value(document, $0.path) != nil }
          && (query.filter.map { holds($0, document) } ?? true)
      }
      .filter { document in
        if let start = query.start {
          let side = compare(document, start.values, orders)
          if side < 0 || (side == 0 && !start.before) { return false }
        }
        if let end = query.end {
          let side = compare(document, end.values, orders)
          if side > 0 || (side == 0 && end.before) { return false }
        }
        return true
      }
      .sorted { left, right in
        for order in orders {
          guard let a = value(left, order.path), let b = value(right, order.path) else { continue }
          let side = ValueOrder.compare(a, b).rawValue * (order.descending ? -1 : 1)
          if side != 0 { return side < 0 }
        }
        return false
      }
    return sorted.dropFirst(query.offset).prefix(query.limit ?? .max).map { $0 }
  }

  /// Returns the documents nearest to a vector among the query's results.
  ///
  /// Nil if the search asks for the cosine distance of a zero-length vector.
  package func nearest(
    _ search: FindNearest,
    among documents: some Collection<FirestoreDocument>
  ) -> [FirestoreDocument]? {
    var found: [(document: FirestoreDocument, distance: Double, rank: Double)] = []
    for document in results(documents) {
      guard case .vector(let other) = value(document, search.field),
        other.count == search.vector.count
      else { continue }
      let pairs = Array(zip(search.vector, other))
      let product = pairs.map { $0 * $1 }.reduce(0, +)
      var distance = product
      if search.measure == .euclidean {
        distance = pairs.map { ($0 - $1) * ($0 - $1) }.reduce(0, +).squareRoot()
      } else if search.measure == .cosine {
        let lengths = [search.vector, other].map { $0.map { $0 * $0 }.reduce(0, +).squareRoot() }
        if lengths.contains(0) { return nil }
        distance = 1 - product / (lengths[0] * lengths[1])
      }
      let isMost = search.measure == .dotProduct
      if let threshold = search.threshold, isMost ? distance < threshold : distance > threshold {
        continue
      }
      found.append((document, distance, isMost ? -distance : distance))
    }
    return
      found
      .sorted { $0.rank == $1.rank ? $0.document.name < $1.document.name : $0.rank < $1.rank }
      .prefix(search.limit)
      .map { document, distance, _ in
        var document = document
        if let name = search.resultField { document.fields[name] = .double(distance) }
        return document
      }
  }

  /// The effective orders: explicit ones, then inequality fields by path, then the name.
  package var orders: [Query.Order] {
    var orders = query.orders
    let descending = orders.last?.descending ?? false
    var inequalities: Set<FieldPath> = []
    func visit(_ filter: Query.Filter) {
      switch filter {
      case .and(let filters), .or(let filters): filters.forEach(visit)
      case .field(let path, let comparison, _):
        let ranges: [Query.FieldOperator] = [
          .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual, .notEqual, .notIn,
        ]
        if ranges.contains(comparison) { inequalities.insert(path) }
      case .unary(let path, let unary):
        if unary == .isNotNull || unary == .isNotNaN { inequalities.insert(path) }
      }
    }
    if let filter = query.filter { visit(filter) }
    for path in inequalities.sorted() + [.documentID]
    where path == .documentID || !path.isDocumentID {
      if !orders.contains(where: { $0.path == path }) {
        orders.append(Query.Order(path, descending: descending))
      }
    }
    // The name was among the inequality fields but still comes last.
    if let index = orders.firstIndex(where: { $0.path.isDocumentID }), query.orders.count <= index {
      orders.append(orders.remove(at: index))
    }
    return orders
  }

  private func isInScope(_ name: DocumentName) -> Bool {
    let depth = query.parent.segments.count
    guard name.database == query.database,
      ResourcePath(Array(name.path.segments.prefix(depth))) == query.parent,
      name.path.segments.count > depth
    else { return false }
    if !query.allDescendants, name.path.segments.count != depth + 2 { return false }
    return query.collectionID
      .map { $0.isIdentical(to: name.path.segments[name.path.segments.count - 2]) } ?? true
  }

  private func value(_ document: FirestoreDocument, _ path: FieldPath) -> FirestoreValue? {
    if path.isDocumentID { return .reference(document.name) }
    var current: FirestoreValue = .map(document.fields)
    for segment in path.segments {
      guard case .map(let fields) = current, let next = fields[segment] else { return nil }
      current = next
    }
    return current
  }

  private func compare(
    _ document: FirestoreDocument,
    _ values: [FirestoreValue],
    _ orders: [Query.Order]
  ) -> Int {
    for (order, operand) in zip(orders, values) {
      guard let own = value(document, order.path) else { continue }
      let side = ValueOrder.compare(own, operand).rawValue * (order.descending ? -1 : 1)
      if side != 0 { return side }
    }
    return 0
  }

  private func holds(_ filter: Query.Filter, _ document: FirestoreDocument) -> Bool {
    switch filter {
    case .and(let filters): return filters.allSatisfy { holds($0, document) }
    case .or(let filters): return filters.contains { holds($0, document) }
    case .unary(let path, let unary):
      guard let value = value(document, path) else { return false }
      switch unary {
      case .isNull: return value == .null
      case .isNotNull: return value != .null
      case .isNaN: return isNaN(value)
      case .isNotNaN: return value != .null && !isNaN(value)
      }
    case .field(let path, let comparison, let operand):
      guard let value = value(document, path) else { return false }
      return holds(value, comparison, operand)
    }
  }

  private func holds(
    _ value: FirestoreValue,
    _ comparison: Query.FieldOperator,
    _ operand: FirestoreValue
  ) -> Bool {
    func equals(_ other: FirestoreValue) -> Bool { ValueOrder.compare(value, other) == .equal }
    let operands: [FirestoreValue] = if case .array(let list) = operand { list } else { [] }
    let elements: [FirestoreValue] = if case .array(let list) = value { list } else { [] }
    func shares(_ wanted: [FirestoreValue]) -> Bool {
      elements.contains { element in
        wanted.contains {
          $0 != .null && !isNaN($0) && ValueOrder.compare($0, element) == .equal
        }
      }
    }
    let comparable =
      operand != .null && !isNaN(operand) && !isNaN(value)
      && ValueOrder.typeClass(value) == ValueOrder.typeClass(operand)
    let side = ValueOrder.compare(value, operand).rawValue
    switch comparison {
    case .equal: return operand != .null && !isNaN(operand) && equals(operand)
    case .notEqual:
      return value != .null && operand != .null && (isNaN(operand) || !equals(operand))
    case .lessThan: return comparable && side < 0
    case .lessThanOrEqual: return comparable && side <= 0
    case .greaterThan: return comparable && side > 0
    case .greaterThanOrEqual: return comparable && side >= 0
    case .in: return value != .null && !isNaN(value) && operands.contains(where: equals)
    case .notIn:
      return value != .null && !operands.contains(.null)
        && !operands.contains { !isNaN($0) && equals($0) }
    case .arrayContains: return shares([operand])
    case .arrayContainsAny: return shares(operands)
    }
  }

  private func isNaN(_ value: FirestoreValue) -> Bool {
    if case .double(let number) = value { number.isNaN } else { false }
  }
}
