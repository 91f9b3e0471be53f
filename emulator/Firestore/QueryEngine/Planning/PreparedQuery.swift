package import DocumentModel

/// A validated query with everything implied made explicit; created by `QueryRunner.prepare`.
///
/// It evaluates single documents without a store, so that listeners and query locks can apply it to
/// each change.
package struct PreparedQuery: Sendable {
  /// The query as the client sent it.
  package let query: Query
  /// The final orders: the client's, then the implied ones, then `__name__`.
  package let orders: [Query.Order]

  let condition: Condition?
  let disjuncts: [Conjunction]
  /// The part of a stored document that is decoded to evaluate it.
  let decoding: Decoding

  /// True if the decoded part of a document is exactly its result.
  let decodesResult: Bool

  /// The part of a stored document that is decoded.
  enum Decoding: Sendable {
    /// The whole document at once.
    case whole
    /// The given fields, which also suffice for the result.
    case only(FieldSelection)
    /// The given fields, and all fields if the document becomes a result.
    case first(FieldSelection)
  }

  init(query: Query, orders: [Query.Order]) {
    self.query = query
    self.orders = orders
    condition = query.filter.map(Condition.init)
    disjuncts = Conjunction.disjuncts(of: condition)
    let tested = orders.map(\.path) + FilterLeaves(query.filter).all.map(\.path)
    if let projection = query.projection, !projection.isEmpty {
      decoding = .only(FieldSelection(projection + tested))
      // The selected members of a map may all be missing; then the map is not in the result.
      decodesResult =
        projection.allSatisfy { $0.segments.count == 1 }
        && tested.allSatisfy { $0.isDocumentID || projection.contains($0) }
    } else {
      let selection = FieldSelection(tested)
      // Without tested fields, nearly every candidate becomes a result.
      decoding = selection.isEmpty ? .whole : .first(selection)
      decodesResult = true
    }
  }

  /// Returns the memory a document takes, given the size of its stored form.
  func sizeHeld(of document: FirestoreDocument, stored bytes: Int) -> Int {
    guard case .only(let selection) = decoding, selection.isEmpty else { return bytes }
    return document.name.path.segments.reduce(64) { $0 + $1.utf8.count + 16 }
  }

  /// True if every document of the query's only collection is a result, in the order of names.
  var takesAll: Bool {
    collection != nil && nameOrderDescending != nil && condition == nil && query.start == nil
      && query.end == nil
  }

  /// Returns true if a document is among the results before offset and limit.
  ///
  /// It must be in scope, have every ordered field, pass the filter and be between the cursors.
  package func matches(_ document: FirestoreDocument) -> Bool {
    matches(document, only: nil)
  }

  /// Returns true if a document is among the results, for `disjunct` if there is one.
  ///
  /// `isCovered` is true if the name is known to be in the query's collections.
  func matches(
    _ document: FirestoreDocument,
    only disjunct: Conjunction?,
    isCovered: Bool = false
  ) -> Bool {
    (isCovered || covers(document.name))
      && orders.allSatisfy { $0.path.isDocumentID || document.fields[$0.path] != nil }
      && (disjunct?.holds(for: document) ?? condition?.holds(for: document) ?? true)
      && isWithinCursors(document)
  }

  /// Returns the order of two matching documents; equal only for the same name.
  package func compare(_ left: FirestoreDocument, _ right: FirestoreDocument) -> Ordering {
    for order in orders {
      let result: Ordering
      if order.path.isDocumentID {
        // Compares like `ValueOrder` on references, without creating references.
        result = left.name < right.name ? .less : right.name < left.name ? .greater : .equal
      } else if let a = left.fields[order.path], let b = right.fields[order.path] {
        result = ValueOrder.compare(a, b)
      } else {
        continue
      }
      if result != .equal { return order.descending ? result.reversed : result }
    }
    return .equal
  }

  /// Returns the document with only the selected fields, inside their enclosing maps.
  package func project(_ document: FirestoreDocument) -> FirestoreDocument {
    guard let projection = query.projection, !projection.isEmpty else { return document }
    var projected = document
    projected.fields = [:]
    for path in projection where !path.isDocumentID {
      if let value = document.fields[path] { projected.fields.set(value, at: path) }
    }
    return projected
  }

  /// Returns true if a name is in the query's collections, whether the document exists or not.
  package func covers(_ name: DocumentName) -> Bool {
    guard name.database == query.database else { return false }
    let segments = name.path.segments
    let parentCount = query.parent.segments.count
    guard segments.count >= parentCount + 2,
      query.allDescendants || segments.count == parentCount + 2,
      name.path.isBelowOrEqual(to: query.parent)
    else { return false }
    guard let collectionID = query.collectionID else { return true }
    return name.collectionID.utf8.elementsEqual(collectionID.utf8)
  }

  /// A range of `DocumentKeys` keys that contains all results, and possibly other documents.
  ///
  /// A document outside the range never matches; inside it, `matches` decides.
  package var keyRange: KeyRange {
    if let collection {
      KeyRange(prefix: DocumentKeys.collectionPrefix(query.database, collection))
    } else {
      KeyRange(prefix: DocumentKeys.descendantsPrefix(query.database, query.parent))
    }
  }

  /// The only collection that the query reads; nil if it reads several.
  package var collection: ResourcePath? {
    guard !query.allDescendants, let collectionID = query.collectionID else { return nil }
    return query.parent.appending(collectionID)
  }

  /// A field that has one of a few values in every matching document, and the keys of those values.
  ///
  /// Nil if the filter implies no field of this kind. `equalityKey` returns the key of a document's
  /// own value.
  package var equality: (path: FieldPath, keys: Set<[UInt8]>)? {
    guard let first = disjuncts.first else { return nil }
    for path in first.equalPaths {
      let values = disjuncts.compactMap { $0.equalValue(of: path) }
      guard values.count == disjuncts.count else { continue }
      return (path, Set(values.map(Self.equalityKey)))
    }
    return nil
  }

  /// Returns the key of a value.
  ///
  /// Equal values have the same key; different values may share one.
  package static func equalityKey(_ value: FirestoreValue) -> [UInt8] {
    IndexEntry.Component(value, descending: false).bytes
  }

  /// Returns the rest of this query after `document`, the last one that was skipped or returned.
  package func continuing(
    after document: FirestoreDocument,
    skipped: Int,
    returned: Int
  ) -> PreparedQuery {
    var rest = query
    rest.orders = orders
    rest.start = Query.Cursor(
      orders.compactMap { document.value(at: $0.path) },
      before: false
    )
    rest.offset = query.offset - skipped
    rest.limit = query.limit.map { max(0, $0 - returned) }
    return PreparedQuery(query: rest, orders: orders)
  }

  /// Returns the orders of the fields that a disjunct does not bind to one value, without the name.
  func orders(beyond disjunct: Conjunction) -> [Query.Order] {
    orders.filter { !$0.path.isDocumentID && disjunct.equalValue(of: $0.path) == nil }
  }

  /// True if results are in descending order of names; nil if names are not the only order.
  var nameOrderDescending: Bool? {
    orders.count == 1 ? orders.first?.descending : nil
  }

  private func isWithinCursors(_ document: FirestoreDocument) -> Bool {
    if let start = query.start {
      let position = position(of: document, against: start)
      guard start.before ? position != .less : position == .greater else { return false }
    }
    if let end = query.end {
      let position = position(of: document, against: end)
      guard end.before ? position == .less : position != .greater else { return false }
    }
    return true
  }

  private func position(of document: FirestoreDocument, against cursor: Query.Cursor) -> Ordering {
    for (order, value) in zip(orders, cursor.values) {
      guard let own = document.value(at: order.path) else { continue }
      let result = ValueOrder.compare(own, value)
      if result != .equal { return order.descending ? result.reversed : result }
    }
    return .equal
  }
}
