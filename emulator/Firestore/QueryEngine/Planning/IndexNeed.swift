import DocumentModel

/// The indexes that production needs to serve one disjunct of a query.
///
/// An index serves it alone if it begins with the fields bound to values, in any order, and
/// continues with the query's order or its reverse. Several indexes serve it together if each
/// begins with some of the bound fields, all have the same order, and together they have all bound
/// fields. The source is "Index types" and "Take advantage of index merging" in Firestore's
/// documentation.
package struct IndexNeed: Sendable, Hashable {
  let collectionID: String
  let scope: IndexDefinition.Scope
  /// The fields bound to one value.
  let equal: [FieldPath]
  /// The arrays that must contain a value.
  let contained: [FieldPath]
  /// The orders of the other fields, ending with aggregated fields.
  let orders: [Query.Order]
  let nameDescending: Bool
  /// The vector field of a search with its dimension.
  let vector: CompositeIndex.Field?

  /// Returns the needs of a query's disjuncts; none for a query of all collections.
  package static func all(of query: PreparedQuery) -> [IndexNeed] {
    guard let collectionID = query.query.collectionID else { return [] }
    var needs: [IndexNeed] = []
    for disjunct in query.disjuncts {
      let need = IndexNeed(query, disjunct, collectionID)
      if !needs.contains(need) { needs.append(need) }
    }
    return needs
  }

  private init(_ query: PreparedQuery, _ disjunct: Conjunction, _ collectionID: String) {
    self.collectionID = collectionID
    scope = query.query.allDescendants ? .group : .collection
    equal = disjunct.equalPaths
    contained = disjunct.containedPaths
    let orders = query.orders(beyond: disjunct)
    let descending = query.orders.last?.descending ?? false
    let summed = query.query.aggregatedFields.filter { path in
      disjunct.equalValue(of: path) == nil && !orders.contains { $0.path == path }
    }
    self.orders = orders + summed.map { Query.Order($0, descending: descending) }
    nameDescending = query.orders.last?.descending ?? false
    vector = query.query.findNearest.map {
      CompositeIndex.Field($0.field, .vector(dimension: $0.vector.count))
    }
  }

  /// The indexes that production reads to serve this need.
  ///
  /// These are the automatic single-field indexes of the bound fields, if they suffice. Otherwise
  /// it is the index that serves the need alone.
  package var used: [CompositeIndex] {
    if !isComposite, !bound.isEmpty { return bound.map { index([$0], []) } }
    return [composite]
  }

  /// The index that serves this need alone.
  package var composite: CompositeIndex {
    guard let vector else { return index(bound, orders) }
    return CompositeIndex(collectionID: collectionID, scope: scope, fields: bound + [vector])
  }

  /// True if production has no index for this need unless one is declared.
  package var isComposite: Bool {
    if vector != nil { return true }
    if equal.isEmpty && contained.isEmpty && orders.isEmpty { return nameDescending }
    if scope == .group { return true }
    guard let last = orders.last else { return nameDescending }
    return orders.count > 1 || !bound.isEmpty || last.descending != nameDescending
  }

  /// The fields bound to values.
  var bound: [CompositeIndex.Field] {
    equal.map { .init($0, .ascending) } + contained.map { .init($0, .contains) }
  }

  private func index(
    _ bound: [CompositeIndex.Field],
    _ orders: [Query.Order]
  ) -> CompositeIndex {
    CompositeIndex(
      collectionID: collectionID,
      scope: scope,
      fields: bound + orders.map { .init($0.path, $0.descending ? .descending : .ascending) },
      nameDescending: nameDescending
    )
  }
}
