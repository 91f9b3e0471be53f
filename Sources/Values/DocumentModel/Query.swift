/// A structured query over one collection or a collection group, as a client sent it.
///
/// `orders` holds only the orders that the client sent; the query runner adds those implied by
/// inequalities and by the document's name.
package struct Query: Sendable, Hashable {
  package var database: DatabaseName
  /// The document below which the query looks; empty for the database's root.
  package var parent: ResourcePath
  /// The collections' id; nil stands for every collection and needs `allDescendants`.
  package var collectionID: String?
  /// Whether collections at any depth below the parent count, not only its own.
  package var allDescendants: Bool
  package var filter: Filter?
  package var orders: [Order]
  package var start: Cursor?
  package var end: Cursor?
  package var offset: Int
  package var limit: Int?
  /// A search among the documents that filter, orders and cursors leave, before offset and limit.
  package var findNearest: FindNearest?
  /// The fields to return; nil for all, `[.documentID]` for the name alone.
  package var projection: [FieldPath]?
  /// The fields of `sum` and `avg`, which an index of the query has to hold.
  package var aggregatedFields: [FieldPath] = []
  /// Whether results must have those fields, and are ordered by them before their names.
  ///
  /// Production does so when a query has an offset or a limit.
  package var ordersByAggregatedFields = false

  /// A query for everything in a collection.
  package init(
    database: DatabaseName,
    parent: ResourcePath = ResourcePath(),
    collectionID: String?,
    allDescendants: Bool = false,
    filter: Filter? = nil,
    orders: [Order] = [],
    start: Cursor? = nil,
    end: Cursor? = nil,
    offset: Int = 0,
    limit: Int? = nil,
    findNearest: FindNearest? = nil,
    projection: [FieldPath]? = nil
  ) {
    self.database = database
    self.parent = parent
    self.collectionID = collectionID
    self.allDescendants = allDescendants
    self.filter = filter
    self.orders = orders
    self.start = start
    self.end = end
    self.offset = offset
    self.limit = limit
    self.findNearest = findNearest
    self.projection = projection
  }

  /// Whether a filter or an order names the documents' names.
  package var isByName: Bool {
    orders.contains { $0.path.isDocumentID } || filter?.paths.contains { $0.isDocumentID } == true
  }

  /// A condition on a document.
  package indirect enum Filter: Sendable, Hashable {
    case and([Filter])
    case or([Filter])
    case field(FieldPath, FieldOperator, FirestoreValue)
    case unary(FieldPath, UnaryOperator)

    /// The fields that it compares.
    fileprivate var paths: [FieldPath] {
      switch self {
      case .and(let filters), .or(let filters): filters.flatMap(\.paths)
      case .field(let path, _, _), .unary(let path, _): [path]
      }
    }
  }

  /// Operators with an operand, which is an array for `in`, `notIn` and `arrayContainsAny`.
  package enum FieldOperator: Sendable, Hashable, CaseIterable {
    case lessThan, lessThanOrEqual, greaterThan, greaterThanOrEqual, equal, notEqual
    case arrayContains, `in`, arrayContainsAny, notIn
  }

  /// Operators without an operand.
  package enum UnaryOperator: Sendable, Hashable, CaseIterable {
    case isNull, isNaN, isNotNull, isNotNaN
  }

  /// One field to order by.
  package struct Order: Sendable, Hashable {
    package var path: FieldPath
    package var descending: Bool

    /// An order, ascending unless told otherwise.
    package init(_ path: FieldPath, descending: Bool = false) {
      self.path = path
      self.descending = descending
    }
  }

  /// A position in the ordered results: values for a prefix of the final orders.
  package struct Cursor: Sendable, Hashable {
    package var values: [FirestoreValue]
    /// Whether the position lies before the documents that equal the values, or after them.
    package var before: Bool

    /// A position before or after the documents that equal `values`.
    package init(_ values: [FirestoreValue], before: Bool) {
      self.values = values
      self.before = before
    }
  }
}
