/// A query for documents of one collection, or of all collections with the same id.
///
/// ```swift
/// let adults = try await firestore.collection("users")
///   .where("age", .greaterThanOrEqual, 18)
///   .order(by: "age", descending: true)
///   .limit(20)
///   .get()
/// let users: [User] = try adults.data()
/// ```
///
/// A query is a value, and each method returns a modified copy. An invalid query throws when it
/// runs.
public struct DocumentQuery: Sendable {
  let firestore: Firestore
  private(set) var query: Query
  private(set) var failure: (any Error)?

  init(firestore: Firestore, query: Query, failure: (any Error)? = nil) {
    self.firestore = firestore
    self.query = query
    self.failure = failure
  }

  private func changed(_ change: (inout Query) throws -> Void) -> DocumentQuery {
    var copy = self
    do {
      try change(&copy.query)
    } catch {
      copy.failure = copy.failure ?? error
    }
    return copy
  }

  //MARK: Filtering and ordering

  /// Adds the condition that a field satisfies a comparison with a value.
  ///
  /// The earlier conditions still apply.
  public func `where`(
    _ field: String,
    _ relation: FilterOperator,
    _ value: some Encodable
  ) -> DocumentQuery {
    self.where(.field(field, relation, value))
  }

  /// Adds the condition that the field at a path satisfies a comparison with a value.
  ///
  /// The earlier conditions still apply.
  public func `where`(
    _ field: FieldPath,
    _ relation: FilterOperator,
    _ value: some Encodable
  ) -> DocumentQuery {
    self.where(.field(field, relation, value))
  }

  /// Adds a condition that documents must meet in addition to the earlier conditions.
  public func `where`(_ filter: QueryFilter) -> DocumentQuery {
    changed { query in
      let filter = try filter.result.get()
      switch query.filter {
      case nil: query.filter = filter
      case .and(let filters): query.filter = .and(filters + [filter])
      case let other?: query.filter = .and([other, filter])
      }
    }
  }

  /// Orders by a field, after the earlier orders.
  ///
  /// Documents without the field are left out.
  public func order(by field: String, descending: Bool = false) -> DocumentQuery {
    changed { $0.orders.append(Query.Order(try FieldPath.parse(field), descending: descending)) }
  }

  /// Orders by the field at a path, after the earlier orders.
  ///
  /// Documents without the field are left out.
  public func order(by field: FieldPath, descending: Bool = false) -> DocumentQuery {
    changed { $0.orders.append(Query.Order(field, descending: descending)) }
  }

  /// Limits the result to this many documents.
  public func limit(_ count: Int) -> DocumentQuery {
    changed { query in
      guard count >= 0 else { throw FirestoreError(.invalidArgument, "a limit is not negative") }
      query.limit = count
    }
  }

  /// Skips this many documents at the start.
  ///
  /// The server still reads each of them.
  public func offset(_ count: Int) -> DocumentQuery {
    changed { query in
      guard count >= 0 else { throw FirestoreError(.invalidArgument, "an offset is not negative") }
      query.offset = count
    }
  }

  /// Reads only these fields of the documents, or no fields if the list is empty.
  public func select(_ fields: [String]) -> DocumentQuery {
    changed { query in
      let paths = try fields.map(FieldPath.parse)
      query.projection = paths.isEmpty ? [.documentID] : paths
    }
  }

  //MARK: Cursors

  /// Starts at the documents whose ordered fields have these values.
  public func start<each T: Encodable>(at values: repeat each T) -> DocumentQuery {
    changed { $0.start = Query.Cursor(try Self.encode(repeat each values), before: true) }
  }

  /// Starts after the documents whose ordered fields have these values.
  public func start<each T: Encodable>(after values: repeat each T) -> DocumentQuery {
    changed { $0.start = Query.Cursor(try Self.encode(repeat each values), before: false) }
  }

  /// Ends with the documents whose ordered fields have these values.
  public func end<each T: Encodable>(at values: repeat each T) -> DocumentQuery {
    changed { $0.end = Query.Cursor(try Self.encode(repeat each values), before: false) }
  }

  /// Ends before the documents whose ordered fields have these values.
  public func end<each T: Encodable>(before values: repeat each T) -> DocumentQuery {
    changed { $0.end = Query.Cursor(try Self.encode(repeat each values), before: true) }
  }

  /// Starts after a document, to read a large result page by page.
  ///
  /// Set the orders first, because they determine the position of the document.
  public func start(afterDocument document: DocumentSnapshot) -> DocumentQuery {
    changed { query in
      query.orders = Self.finalOrders(query)
      query.start = Query.Cursor(try Self.position(document, query.orders), before: false)
    }
  }

  /// Starts at a document.
  ///
  /// Set the orders first, because they determine its position.
  public func start(atDocument document: DocumentSnapshot) -> DocumentQuery {
    changed { query in
      query.orders = Self.finalOrders(query)
      query.start = Query.Cursor(try Self.position(document, query.orders), before: true)
    }
  }

  private static func encode<each T: Encodable>(_ values: repeat each T) throws -> [FirestoreValue]
  {
    var encoded: [FirestoreValue] = []
    for value in repeat each values { encoded.append(try ValueEncoder().encode(value)) }
    return encoded
  }

  /// Returns the orders with those that the server adds: fields with inequalities, then the name.
  static func finalOrders(_ query: Query) -> [Query.Order] {
    var orders = query.orders
    let descending = orders.last?.descending ?? false
    let inequalities = Set(query.filter.map(inequalityPaths) ?? [])
    for path in inequalities.sorted() where !orders.contains(where: { $0.path == path }) {
      orders.append(Query.Order(path, descending: descending))
    }
    if !orders.contains(where: { $0.path.isDocumentID }) {
      orders.append(Query.Order(.documentID, descending: descending))
    }
    return orders
  }

  private static func inequalityPaths(_ filter: Query.Filter) -> [FieldPath] {
    switch filter {
    case .and(let filters), .or(let filters): return filters.flatMap(inequalityPaths)
    case .field(let path, let relation, _):
      let inequalities: [Query.FieldOperator] = [
        .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual, .notEqual, .notIn,
      ]
      return inequalities.contains(relation) ? [path] : []
    case .unary(let path, let relation):
      return relation == .isNotNull || relation == .isNotNaN ? [path] : []
    }
  }

  private static func position(
    _ snapshot: DocumentSnapshot,
    _ orders: [Query.Order]
  ) throws -> [FirestoreValue] {
    guard let document = snapshot.document else {
      throw FirestoreError(.invalidArgument, "a missing document is not a position in a query")
    }
    return try orders.map { order in
      if order.path.isDocumentID { return .reference(document.name) }
      guard let value = document.fields[order.path] else {
        throw FirestoreError(
          .invalidArgument,
          "\(snapshot.reference.path) has no field \(order.path) and so no position in this query"
        )
      }
      return value
    }
  }

  // MARK: Running

  /// Reads the documents as of one moment.
  ///
  /// The whole result is held in memory. Use `limit` and `start(afterDocument:)` to read a large
  /// result in pages. Throws `FirestoreError`: `invalidArgument` for an invalid query,
  /// `failedPrecondition` for a query without the index that it needs, and the errors of
  /// `DocumentReference.get()`.
  public func get() async throws -> QuerySnapshot {
    try await firestore.calls.run(try validQuery(), of: firestore, transaction: nil)
  }

  /// Counts the documents without reading them.
  ///
  /// Throws the same errors as `get()`.
  public func count() async throws -> Int {
    try await firestore.calls.count(try validQuery(), transaction: nil)
  }

  /// Returns a sequence of the current documents and their state after every change.
  ///
  /// See `QuerySnapshots` for its behavior.
  public func snapshots() -> QuerySnapshots {
    QuerySnapshots(query: self)
  }

  func validQuery() throws -> Query {
    if let failure { throw failure }
    return query
  }
}
