/// A structured query over one collection or a collection group, as a client sent it.
///
/// `orders` holds only the orders that the client sent. The query runner adds the orders implied by
/// inequalities and by the document's name.
package struct Query: Sendable, Hashable {
  package var database: DatabaseName
  /// The document below which the query searches; empty for the database's root.
  package var parent: ResourcePath
  /// The collection id; nil selects every collection and requires `allDescendants`.
  package var collectionID: String?
  /// True if the query covers collections at any depth below `parent`, not only its own.
  package var allDescendants: Bool
  package var filter: Filter?
  package var orders: [Order]
  package var start: Cursor?
  package var end: Cursor?
  package var offset: Int
  package var limit: Int?
  /// A vector search among the documents that match the filter, orders and cursors.
  ///
  /// It runs before offset and limit are applied.
  package var findNearest: FindNearest?
  /// The fields to return; nil for all fields, `[.documentID]` for the name alone.
  package var projection: [FieldPath]?
  /// The fields of `sum` and `avg`, which an index for the query must contain.
  package var aggregatedFields: [FieldPath] = []
  /// True if results must have the aggregated fields and are ordered by them before their names.
  ///
  /// Production does so when a query has an offset or a limit.
  package var ordersByAggregatedFields = false

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

  /// True if a filter or an order refers to document names.
  package var isByName: Bool {
    orders.contains { $0.path.isDocumentID } || filter?.paths.contains { $0.isDocumentID } == true
  }

  /// A condition on a document.
  package indirect enum Filter: Sendable, Hashable {
    case and([Filter])
    case or([Filter])
    case field(FieldPath, FieldOperator, FirestoreValue)
    case unary(FieldPath, UnaryOperator)

    /// The fields that the filter compares.
    fileprivate var paths: [FieldPath] {
      switch self {
      case .and(let filters), .or(let filters): filters.flatMap(\.paths)
      case .field(let path, _, _), .unary(let path, _): [path]
      }
    }
  }

  /// An operator with an operand: an array for `in`, `notIn` and `arrayContainsAny`.
  package enum FieldOperator: Sendable, Hashable, CaseIterable {
    case lessThan, lessThanOrEqual, greaterThan, greaterThanOrEqual, equal, notEqual
    case arrayContains, `in`, arrayContainsAny, notIn
  }

  /// An operator without an operand.
  package enum UnaryOperator: Sendable, Hashable, CaseIterable {
    case isNull, isNaN, isNotNull, isNotNaN
  }

  /// A field to order by.
  package struct Order: Sendable, Hashable {
    package var path: FieldPath
    package var descending: Bool

    /// Creates an order, ascending by default.
    package init(_ path: FieldPath, descending: Bool = false) {
      self.path = path
      self.descending = descending
    }
  }

  /// A position in the ordered results: values for a prefix of the final orders.
  package struct Cursor: Sendable, Hashable {
    package var values: [FirestoreValue]
    /// True if the position is before the documents that equal the values, false if after them.
    package var before: Bool

    /// Creates a position before or after the documents that equal `values`.
    package init(_ values: [FirestoreValue], before: Bool) {
      self.values = values
      self.before = before
    }
  }
}
