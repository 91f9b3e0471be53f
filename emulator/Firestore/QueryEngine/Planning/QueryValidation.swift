import DocumentModel
import StatusCodes

/// The checks that production makes before it runs a query, with production's messages.
///
/// Messages use `__key__` for what the documentation calls `__name__`, as in production. The limits
/// are those of "Query limitations" in Firestore's documentation.
struct QueryValidation {
  let query: Query

  /// The maximum number of values of one `in` or `array-contains-any`, and of a filter's disjuncts.
  static let disjunctionsMax = 30
  /// The maximum number of values of one `not-in`.
  static let notInValuesMax = 10
  /// The maximum number of fields with an inequality.
  static let inequalityFieldsMax = 10
  /// The maximum number of filters of the normal form, orders and parent together.
  static let componentsMax = 100
  /// The maximum size of a field path or of an ID.
  static let pathBytesMax = 1500
  /// The maximum size of an indexed value.
  static let indexedBytesMax = 1500
  /// The maximum number of documents that a nearest-neighbor search returns.
  static let nearestMax = 1000
  /// The maximum nesting depth of filters.
  ///
  /// It is far deeper than the wire format allows, and bounds the recursion.
  static let filterDepthMax = 100

  /// Checks the query and returns its final orders.
  func check() throws(StatusError) -> [Query.Order] {
    try checkScope()
    guard (query.limit ?? 0) >= 0 else { throw .invalidArgument("limit is negative") }
    guard query.offset >= 0 else { throw .invalidArgument("offset is negative") }
    // This check comes first because it bounds the depth of all later ones.
    if let filter = query.filter { try check(filter, depth: 1) }
    let leaves = FilterLeaves(query.filter)
    if let filter = query.filter {
      try check(leaves)
      try checkDisjunctions(filter)
    }
    try checkOrders(leaves)
    try checkCollectionless(leaves)
    try checkGroup(leaves)
    for path in query.projection ?? [] { try check(path) }
    if let search = query.findNearest { try check(search) }
    let orders = finalOrders(leaves)
    for cursor in [query.start, query.end].compactMap(\.self) { try check(cursor, orders) }
    return orders
  }

  // MARK: Scope

  private func checkScope() throws(StatusError) {
    guard query.parent.segments.count.isMultiple(of: 2) else {
      let name = "\(query.database)/documents/\(query.parent)"
      throw .invalidArgument(
        "Document parent name \"\(name)\" lacks \"/\" at index \(name.utf8.count)."
      )
    }
    for (index, id) in query.parent.segments.enumerated() {
      try check(id: id, isCollection: index.isMultiple(of: 2), kind: "Resource")
    }
    if let collectionID = query.collectionID {
      try check(id: collectionID, isCollection: true, kind: "Collection")
    }
  }

  private func check(id: String, isCollection: Bool, kind: String) throws(StatusError) {
    let reason: String
    switch ResourceID.flaw(of: id, isCollection: isCollection) {
    case nil: return
    case .isEmpty: throw .invalidArgument("\(kind) id cannot be empty.")
    case .containsSlash: reason = "it contains \"/\""
    case .isDots: reason = "it is \"\(id)\""
    case .isTooLong: reason = "it is longer than \(ResourceID.bytesMax) bytes"
    case .isReserved: reason = "it is reserved"
    }
    throw .invalidArgument("\(kind) id \"\(id)\" is invalid because \(reason).")
  }

  private func checkGroup(_ leaves: FilterLeaves) throws(StatusError) {
    guard query.allDescendants, query.collectionID != nil, !query.parent.segments.isEmpty else {
      return
    }
    let paths = leaves.all.map(\.path) + query.orders.map(\.path)
    guard paths.allSatisfy(\.isDocumentID) else {
      throw .invalidArgument("collection group queries are only allowed at the root parent")
    }
  }

  private func checkCollectionless(_ leaves: FilterLeaves) throws(StatusError) {
    guard query.collectionID == nil else { return }
    if let path = leaves.all.first(where: { !$0.path.isDocumentID })?.path {
      throw .invalidArgument("kind is required for filter: \(path)")
    }
    guard query.orders.allSatisfy({ $0.path.isDocumentID && !$0.descending }) else {
      throw .invalidArgument("kind is required for all orders except __key__ ascending")
    }
  }

  // MARK: Fields

  private func check(_ path: FieldPath) throws(StatusError) {
    if path.isDocumentID { return }
    if let reserved = path.segments.first(where: ResourceID.isReserved) {
      throw .invalidArgument("Invalid reserved name in field path \(reserved)")
    }
    guard !path.segments.contains(where: \.isEmpty) else {
      throw .invalidArgument("Invalid property path \"\(path)\": a name in it is empty.")
    }
    guard path.description.utf8.count <= Self.pathBytesMax else {
      throw .invalidArgument("The field path is longer than \(Self.pathBytesMax) bytes.")
    }
  }

  // MARK: Filters

  private func check(_ filter: Query.Filter, depth: Int) throws(StatusError) {
    guard depth <= Self.filterDepthMax else {
      throw .invalidArgument("The filter is nested deeper than \(Self.filterDepthMax) levels.")
    }
    switch filter {
    case .and(let filters), .or(let filters):
      guard !filters.isEmpty else {
        throw .invalidArgument("Composite filter must have at least one sub-filter.")
      }
      for filter in filters { try check(filter, depth: depth + 1) }
    case .unary(let path, _):
      try check(path)
      guard !path.isDocumentID else {
        throw .invalidArgument("__key__ filter value must be a Key")
      }
    case .field(let path, let comparison, let operand):
      try check(path)
      try check(operand, of: comparison)
      if path.isDocumentID {
        try checkName(operand, of: comparison)
      } else if !operands(operand, of: comparison).allSatisfy(Self.isIndexed) {
        throw .invalidArgument("value for \(path) is too large to be used in a query")
      }
    }
  }

  private func check(
    _ operand: FirestoreValue,
    of comparison: Query.FieldOperator
  ) throws(StatusError) {
    guard let valuesMax = comparison.valuesMax else { return }
    guard case .array(let values) = operand else {
      throw .invalidArgument("'\(comparison.protoName)' requires an ArrayValue.")
    }
    guard !values.isEmpty else {
      throw .invalidArgument("'\(comparison.protoName)' requires an non-empty ArrayValue.")
    }
    guard values.count <= valuesMax else {
      throw .invalidArgument(
        "'\(comparison.protoName)' supports up to \(valuesMax) comparison values."
      )
    }
  }

  /// Returns the single values that an operator compares with.
  private func operands(
    _ operand: FirestoreValue,
    of comparison: Query.FieldOperator
  ) -> [FirestoreValue] {
    if comparison.valuesMax != nil, case .array(let values) = operand { return values }
    return [operand]
  }

  /// Returns true if production's indexes hold the complete value.
  private static func isIndexed(_ value: FirestoreValue) -> Bool {
    indexedSize(value) <= indexedBytesMax
  }

  private static func indexedSize(_ value: FirestoreValue) -> Int {
    switch value {
    case .string(let text): text.utf8.count + 1
    case .bytes(let bytes): bytes.count
    case .array(let elements): elements.reduce(0) { $0 + indexedSize($1) }
    case .map(let fields): fields.reduce(0) { $0 + $1.key.utf8.count + 1 + indexedSize($1.value) }
    case .vector(let elements): elements.count * MemoryLayout<Double>.size
    case .reference(let name): name.description.utf8.count
    default: 0
    }
  }

  private func checkName(
    _ operand: FirestoreValue,
    of comparison: Query.FieldOperator
  ) throws(StatusError) {
    if comparison == .arrayContains || comparison == .arrayContainsAny {
      throw .invalidArgument("the name __key__ is reserved")
    }
    for operand in operands(operand, of: comparison) {
      guard case .reference(let name) = operand else {
        throw .invalidArgument("__key__ filter value must be a Key")
      }
      guard name.database == query.database else {
        throw .invalidArgument(
          "The request was for database '\(query.database)' but was attempting to access database "
            + "'\(name.database)'"
        )
      }
    }
  }

  private func check(_ leaves: FilterLeaves) throws(StatusError) {
    guard leaves.all.count(where: \.isNegative) <= 1 else {
      throw .invalidArgument(
        "Only a single 'NOT_EQUAL', 'NOT_IN', 'IS_NOT_NAN', or 'IS_NOT_NULL' filter allowed per "
          + "query."
      )
    }
    let isDisjunctive =
      leaves.hasOr
      || leaves.all.contains { $0.comparison == .in || $0.comparison == .arrayContainsAny }
    guard !isDisjunctive || !leaves.all.contains(where: { $0.comparison == .notIn }) else {
      throw .invalidArgument(
        "'NOT_IN' cannot be used in the same query with 'IN', 'ARRAY_CONTAINS_ANY' or 'OR'."
      )
    }
    let inequalities = leaves.inequalityPaths
    guard inequalities.count <= Self.inequalityFieldsMax else {
      let list = inequalities.map(\.description).joined(separator: ", ")
      throw .invalidArgument(
        "The query contains \(inequalities.count) distinct inequality fields: [\(list)]. A query "
          + "may not have more than \(Self.inequalityFieldsMax) distinct inequality fields."
      )
    }
    let bindsName = leaves.all.contains {
      $0.path.isDocumentID && ($0.comparison == .equal || $0.comparison == .in)
    }
    guard !bindsName || inequalities.isEmpty || inequalities.contains(.documentID) else {
      throw .invalidArgument(
        "Equality on key is not allowed if there are other inequality fields and key does not "
          + "appear in inequalities."
      )
    }
  }

  private func checkDisjunctions(_ filter: Query.Filter) throws(StatusError) {
    let form = NormalForm(filter)
    guard form.disjuncts <= Self.disjunctionsMax else {
      throw .invalidArgument(
        "Too many disjunctions after normalization. Result had \(form.disjuncts) disjunctions "
          + "which is more than the maximum of \(Self.disjunctionsMax)"
      )
    }
    guard form.arrayTermsMax <= 1 else {
      throw .invalidArgument(
        "A maximum of 1 'ARRAY_CONTAINS' filter is allowed per disjunction."
      )
    }
    let ancestor = query.parent.segments.isEmpty ? 0 : 1
    guard form.terms + query.orders.count + ancestor <= Self.componentsMax else {
      throw .invalidArgument(
        "The query may not have more than \(Self.componentsMax) filters + sort orders + ancestor "
          + "total. Currently there are \(form.terms) filters, \(query.orders.count) sort orders, "
          + "and \(ancestor == 0 ? "no" : "one") ancestor filter."
      )
    }
  }

  private func check(_ search: FindNearest) throws(StatusError) {
    try check(search.field)
    guard !search.field.isDocumentID else {
      throw .invalidArgument("FindNearest cannot use the property: __key__")
    }
    if let name = search.resultField {
      guard !ResourceID.isReserved(name) else {
        throw .invalidArgument("The distanceResultField.property.name \"\(name)\" is reserved.")
      }
      try check(FieldPath([name]))
    }
    guard (1...Self.nearestMax).contains(search.limit) else {
      throw .invalidArgument(
        "FindNearest.limit must be a positive integer of no more than \(Self.nearestMax)"
      )
    }
    guard search.threshold?.isFinite != false else {
      throw .invalidArgument("distanceThreshold must be a finite number.")
    }
    guard query.limit == nil else {
      throw .invalidArgument("A query limit cannot be used with FindNearest")
    }
    guard query.offset == 0 else {
      throw .invalidArgument("A query offset cannot be used with FindNearest")
    }
    guard query.start == nil, query.end == nil else {
      throw .invalidArgument("A cursor cannot be used with FindNearest")
    }
  }

  // MARK: Orders and cursors

  private func checkOrders(_ leaves: FilterLeaves) throws(StatusError) {
    var seen: Set<FieldPath> = []
    for order in query.orders {
      try check(order.path)
      guard seen.insert(order.path).inserted else {
        throw .invalidArgument("order by clause cannot contain duplicate fields \(order.path)")
      }
    }
    let inequalities = leaves.inequalityPaths
    if let nameIndex = query.orders.firstIndex(where: { $0.path.isDocumentID }),
      nameIndex < query.orders.count - 1
        || inequalities.contains(where: { !$0.isDocumentID && !seen.contains($0) })
    {
      throw .invalidArgument("order by clause cannot contain more fields after the key")
    }
  }

  private func finalOrders(_ leaves: FilterLeaves) -> [Query.Order] {
    var orders = query.orders
    let descending = orders.last?.descending ?? false
    func append(_ path: FieldPath) {
      guard !orders.contains(where: { $0.path == path }) else { return }
      orders.append(Query.Order(path, descending: descending))
    }
    for path in leaves.inequalityPaths where !path.isDocumentID { append(path) }
    if query.ordersByAggregatedFields { query.aggregatedFields.forEach(append) }
    append(.documentID)
    return orders
  }

  private func check(
    _ cursor: Query.Cursor,
    _ orders: [Query.Order]
  ) throws(StatusError) {
    guard cursor.values.count <= orders.count else {
      throw .invalidArgument("Cursor has too many values.")
    }
    for (order, value) in zip(orders, cursor.values) where order.path.isDocumentID {
      guard case .reference(let name) = value else {
        throw .invalidArgument("Cursor __key__ value is not a document reference.")
      }
      guard name.path.isDocument else {
        throw .invalidArgument(
          "Document parent name \"\(name)\" lacks \"/\" at index "
            + "\(name.description.utf8.count)."
        )
      }
      guard name.database == query.database else {
        throw .invalidArgument("The cursor key is in a different database than the query")
      }
    }
  }
}

extension Query.FieldOperator {
  /// The maximum number of values; nil if the operator takes a single value.
  fileprivate var valuesMax: Int? {
    switch self {
    case .in, .arrayContainsAny: QueryValidation.disjunctionsMax
    case .notIn: QueryValidation.notInValuesMax
    default: nil
    }
  }

  /// The operator's name in messages.
  fileprivate var protoName: String {
    switch self {
    case .lessThan: "LESS_THAN"
    case .lessThanOrEqual: "LESS_THAN_OR_EQUAL"
    case .greaterThan: "GREATER_THAN"
    case .greaterThanOrEqual: "GREATER_THAN_OR_EQUAL"
    case .equal: "EQUAL"
    case .notEqual: "NOT_EQUAL"
    case .arrayContains: "ARRAY_CONTAINS"
    case .in: "IN"
    case .arrayContainsAny: "ARRAY_CONTAINS_ANY"
    case .notIn: "NOT_IN"
    }
  }
}
