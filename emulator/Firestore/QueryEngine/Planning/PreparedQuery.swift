package import DocumentModel

/// A checked query with everything implied made explicit; made by `QueryRunner.prepare`.
///
/// It decides about single documents without a store, so that listeners and query locks can ask it
/// about each change.
package struct PreparedQuery: Sendable {
  /// The query as the client sent it.
  package let query: Query
  /// The final orders: the client's, then those implied, then `__name__`.
  package let orders: [Query.Order]

  let condition: Condition?
  let disjuncts: [Conjunction]
  /// How much of a stored document is decoded to decide about it.
  let decoding: Decoding

  /// Whether what is decoded of a document is what the result shows.
  let decodesResult: Bool

  /// How much of a stored document is decoded.
  enum Decoding: Sendable {
    /// All of it at once.
    case whole
    /// The given fields, which also suffice for the result.
    case only(FieldSelection)
    /// The given fields, and all of them if the document becomes a result.
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
      // Of a map, the members that are selected may all be missing; then it is not in the result.
      decodesResult =
        projection.allSatisfy { $0.segments.count == 1 }
        && tested.allSatisfy { $0.isDocumentID || projection.contains($0) }
    } else {
      let selection = FieldSelection(tested)
      // Without tested fields nearly every candidate is a result.
      decoding = selection.isEmpty ? .whole : .first(selection)
      decodesResult = true
    }
  }

  /// What a document takes in memory, whose stored form has so many bytes.
  func sizeHeld(of document: FirestoreDocument, stored bytes: Int) -> Int {
    guard case .only(let selection) = decoding, selection.isEmpty else { return bytes }
    return document.name.path.segments.reduce(64) { $0 + $1.utf8.count + 16 }
  }

  /// Whether every document of the query's one collection is among the results, in order of names.
  var takesAll: Bool {
    collection != nil && nameOrderDescending != nil && condition == nil && query.start == nil
      && query.end == nil
  }

  /// Whether a document is among the results before offset and limit.
  ///
  /// It is in scope, has every ordered field, passes the filter and lies between the cursors.
  package func matches(_ document: FirestoreDocument) -> Bool {
    matches(document, only: nil)
  }

  /// Whether a document is among the results, because of `disjunct` when there is one.
  ///
  /// `isCovered` says that the name is known to be in the query's collections.
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

  /// The order of two documents that match; equal only for one and the same name.
  package func compare(_ left: FirestoreDocument, _ right: FirestoreDocument) -> Ordering {
    for order in orders {
      let result: Ordering
      if order.path.isDocumentID {
        // As `ValueOrder` compares references, without making them.
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

  /// The document with the selected fields only, inside the maps that enclose them.
  package func project(_ document: FirestoreDocument) -> FirestoreDocument {
    guard let projection = query.projection, !projection.isEmpty else { return document }
    var projected = document
    projected.fields = [:]
    for path in projection where !path.isDocumentID {
      if let value = document.fields[path] { projected.fields.set(value, at: path) }
    }
    return projected
  }

  /// Whether a document of this name, existing or not, is in the query's collections.
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

  /// A range of `DocumentKeys` keys that contains all results, and perhaps other documents.
  ///
  /// A document outside the range never matches; inside it, ask `matches`.
  package var keyRange: KeyRange {
    if let collection {
      KeyRange(prefix: DocumentKeys.collectionPrefix(query.database, collection))
    } else {
      KeyRange(prefix: DocumentKeys.descendantsPrefix(query.database, query.parent))
    }
  }

  /// The one collection that the query reads, or nil when it reads several.
  package var collection: ResourcePath? {
    guard !query.allDescendants, let collectionID = query.collectionID else { return nil }
    return query.parent.appending(collectionID)
  }

  /// A field that has one of a few values in every document that matches, as keys of those values.
  ///
  /// Nil when the filter does not say so. `equalityKey` gives a document's own key.
  package var equality: (path: FieldPath, keys: Set<[UInt8]>)? {
    guard let first = disjuncts.first else { return nil }
    for path in first.equalPaths {
      let values = disjuncts.compactMap { $0.equalValue(of: path) }
      guard values.count == disjuncts.count else { continue }
      return (path, Set(values.map(Self.equalityKey)))
    }
    return nil
  }

  /// The key of a value, the same for all values that are equal to it, and perhaps for others.
  package static func equalityKey(_ value: FirestoreValue) -> [UInt8] {
    IndexEntry.Component(value, descending: false).bytes
  }

  /// The rest of this query after `document`, the last that was passed over or returned.
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

  /// The orders of the fields that a disjunct does not bind to one value, without the name's.
  func orders(beyond disjunct: Conjunction) -> [Query.Order] {
    orders.filter { !$0.path.isDocumentID && disjunct.equalValue(of: $0.path) == nil }
  }

  /// Whether results come in descending order of names; nil when names are not the only order.
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
