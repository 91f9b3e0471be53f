package import DocumentModel
package import FirestoreProtos
package import StatusCodes
import SwiftProtobuf

extension WireFormat {
  private typealias Structured = Google_Firestore_V1_StructuredQuery

  /// Decodes a structured query below a parent, which is `…/documents` or a document's name.
  ///
  /// It checks the form of the message; the query runner checks how its parts fit together.
  package static func query(
    _ proto: Google_Firestore_V1_StructuredQuery,
    parent: String
  ) throws(StatusError) -> Query {
    let (database, path) = try Self.parent(parent)
    let selector = try selector(proto.from)
    guard proto.offset >= 0 else { throw .invalidArgument("offset is negative") }
    guard !proto.hasLimit || proto.limit.value >= 0 else {
      throw .invalidArgument("limit is negative")
    }
    // An empty selection selects the names alone.
    var projection: [FieldPath] = []
    for field in proto.select.fields { projection.append(try fieldPath(field.fieldPath)) }
    if projection.isEmpty { projection = [.documentID] }
    for cursor in [proto.startAt, proto.endAt] {
      guard cursor.values.count <= proto.orderBy.count else {
        throw .invalidArgument("Cursor has too many values.")
      }
    }
    return Query(
      database: database,
      parent: path,
      collectionID: selector.collectionID.isEmpty ? nil : selector.collectionID,
      allDescendants: selector.allDescendants,
      filter: proto.hasWhere && !isEmptyAnd(proto.where) ? try filter(proto.where) : nil,
      orders: try orders(proto.orderBy),
      start: proto.hasStartAt ? try cursor(proto.startAt) : nil,
      end: proto.hasEndAt ? try cursor(proto.endAt) : nil,
      offset: Int(proto.offset),
      limit: proto.hasLimit ? Int(proto.limit.value) : nil,
      findNearest: proto.hasFindNearest ? try findNearest(proto.findNearest) : nil,
      projection: proto.hasSelect ? projection : nil
    )
  }

  private static func findNearest(
    _ proto: Structured.FindNearest
  ) throws(StatusError) -> FindNearest {
    guard case .vector(let vector) = try value(proto.queryVector) else {
      throw .invalidArgument("Query Value must be of type vector.")
    }
    let measure: FindNearest.Measure
    switch proto.distanceMeasure {
    case .euclidean: measure = .euclidean
    case .cosine: measure = .cosine
    case .dotProduct: measure = .dotProduct
    case .unspecified, .UNRECOGNIZED:
      throw .invalidArgument("Unknown Distance Measure.")
    }
    return FindNearest(
      field: try fieldPath(proto.vectorField.fieldPath),
      vector: vector,
      measure: measure,
      limit: Int(proto.limit.value),
      resultField: proto.distanceResultField.isEmpty ? nil : proto.distanceResultField,
      threshold: proto.hasDistanceThreshold ? proto.distanceThreshold.value : nil
    )
  }

  /// Parses the `order_by` clause of ListDocuments, such as `age desc, name`.
  package static func orders(clause: String) throws(StatusError) -> [Query.Order] {
    guard !clause.isEmpty else { return [] }
    var orders: [Query.Order] = []
    for item in clause.split(separator: ",", omittingEmptySubsequences: false) {
      let words = item.split(separator: " ")
      guard let first = words.first, words.count <= 2 else { throw invalidClause(clause) }
      let direction = words.count == 2 ? words[1].lowercased() : "asc"
      guard direction == "asc" || direction == "desc" else { throw invalidClause(clause) }
      orders.append(
        Query.Order(try fieldPath(String(first)), descending: direction == "desc")
      )
    }
    return orders
  }

  /// Returns the message of a query; use `parent(of:)` for the name of its parent.
  package static func proto(_ query: Query) -> Google_Firestore_V1_StructuredQuery {
    .with { proto in
      proto.from = [
        .with {
          $0.collectionID = query.collectionID ?? ""
          $0.allDescendants = query.allDescendants
        }
      ]
      if let filter = query.filter { proto.where = Self.proto(filter) }
      proto.orderBy = query.orders.map { order in
        .with {
          $0.field = reference(order.path)
          $0.direction = order.descending ? .descending : .ascending
        }
      }
      if let start = query.start { proto.startAt = Self.proto(start) }
      if let end = query.end { proto.endAt = Self.proto(end) }
      proto.offset = Int32(clamping: query.offset)
      if let limit = query.limit { proto.limit = .init(Int32(clamping: limit)) }
      if let search = query.findNearest { proto.findNearest = Self.proto(search) }
      if let projection = query.projection { proto.select.fields = projection.map(reference) }
    }
  }

  private static func proto(_ search: FindNearest) -> Structured.FindNearest {
    .with { proto in
      proto.vectorField = reference(search.field)
      proto.queryVector = Self.proto(.vector(search.vector))
      proto.distanceMeasure =
        switch search.measure {
        case .euclidean: .euclidean
        case .cosine: .cosine
        case .dotProduct: .dotProduct
        }
      proto.limit = .init(Int32(clamping: search.limit))
      proto.distanceResultField = search.resultField ?? ""
      if let threshold = search.threshold { proto.distanceThreshold = .init(threshold) }
    }
  }

  /// Returns the name of a query's parent, for the request's `parent`.
  package static func parent(of query: Query) -> String {
    parent(database: query.database, path: query.parent)
  }

  private static func invalidClause(_ clause: String) -> StatusError {
    .invalidArgument("Invalid order by clause \"\(clause)\".")
  }

  /// Returns true for an AND of no filters, which every document satisfies.
  private static func isEmptyAnd(_ filter: Structured.Filter) -> Bool {
    filter.compositeFilter.op == .and && filter.compositeFilter.filters.isEmpty
  }

  /// Returns the only selector, or one for all collections below the parent if there is none.
  private static func selector(
    _ selectors: [Structured.CollectionSelector]
  ) throws(StatusError) -> Structured.CollectionSelector {
    guard selectors.count <= 1 else {
      throw .invalidArgument(
        "StructuredQuery.from cannot have more than one collection selector."
      )
    }
    guard let selector = selectors.first else { return .with { $0.allDescendants = true } }
    guard selector.collectionID.utf8.count <= ResourceID.bytesMax else {
      throw .invalidArgument("The query kind is longer than \(ResourceID.bytesMax) bytes.")
    }
    try checkCollectionID(selector.collectionID)
    return selector
  }

  private static func orders(
    _ protos: [Structured.Order]
  ) throws(StatusError) -> [Query.Order] {
    var orders: [Query.Order] = []
    for proto in protos {
      if case .UNRECOGNIZED = proto.direction {
        throw .invalidArgument("Unknown Order direction.")
      }
      orders.append(
        Query.Order(
          try fieldPath(proto.field.fieldPath),
          descending: proto.direction == .descending
        )
      )
    }
    return orders
  }

  private static func cursor(
    _ proto: Google_Firestore_V1_Cursor
  ) throws(StatusError) -> Query.Cursor {
    var values: [FirestoreValue] = []
    for member in proto.values { values.append(try value(member)) }
    return Query.Cursor(values, before: proto.before)
  }

  /// Decodes a filter recursively; the depth limit of message decoding bounds the recursion.
  private static func filter(_ proto: Structured.Filter) throws(StatusError) -> Query.Filter {
    switch proto.filterType {
    case .compositeFilter(let composite): try filter(composite)
    case .fieldFilter(let field): try filter(field)
    case .unaryFilter(let unary): try filter(unary)
    case nil: throw .invalidArgument("Unknown Filter type.")
    }
  }

  private static func filter(
    _ proto: Structured.CompositeFilter
  ) throws(StatusError) -> Query.Filter {
    guard proto.op == .and || proto.op == .or else {
      throw .invalidArgument("Unsupported CompositeFilter operator.")
    }
    guard !proto.filters.isEmpty else {
      throw .invalidArgument("Composite filter must have at least one sub-filter.")
    }
    var members: [Query.Filter] = []
    for member in proto.filters { members.append(try filter(member)) }
    return proto.op == .and ? .and(members) : .or(members)
  }

  private static func filter(_ proto: Structured.FieldFilter) throws(StatusError) -> Query.Filter {
    let path = try fieldPath(proto.field.fieldPath)
    guard let fieldOperator = fieldOperators.first(where: { $0.proto == proto.op }) else {
      throw .invalidArgument("Unknown FieldFilter operator.")
    }
    guard let listName = fieldOperator.listName else {
      return .field(path, fieldOperator.model, try value(proto.value))
    }
    guard case .arrayValue(let array) = proto.value.valueType else {
      throw .invalidArgument("'\(listName)' requires an ArrayValue.")
    }
    guard !array.values.isEmpty else {
      throw .invalidArgument("'\(listName)' requires an non-empty ArrayValue.")
    }
    // Each member is a separate operand, so a member may be an array.
    var operands: [FirestoreValue] = []
    for member in array.values { operands.append(try value(member)) }
    return .field(path, fieldOperator.model, .array(operands))
  }

  private static func filter(_ proto: Structured.UnaryFilter) throws(StatusError) -> Query.Filter {
    guard case .field(let field) = proto.operandType else {
      throw .invalidArgument("Unsupported UnaryFilter operand type (non-FIELD).")
    }
    let path = try fieldPath(field.fieldPath)
    switch proto.op {
    case .isNull: return .unary(path, .isNull)
    case .isNan: return .unary(path, .isNaN)
    case .isNotNull: return .unary(path, .isNotNull)
    case .isNotNan: return .unary(path, .isNotNaN)
    default: throw .invalidArgument("Unknown UnaryFilter operator.")
    }
  }

  private struct FieldOperator {
    var proto: Structured.FieldFilter.Operator
    var model: Query.FieldOperator
    /// The operator's name in error messages, if its operand is a list.
    var listName: String?
  }

  private static let fieldOperators: [FieldOperator] = [
    FieldOperator(proto: .lessThan, model: .lessThan),
    FieldOperator(proto: .lessThanOrEqual, model: .lessThanOrEqual),
    FieldOperator(proto: .greaterThan, model: .greaterThan),
    FieldOperator(proto: .greaterThanOrEqual, model: .greaterThanOrEqual),
    FieldOperator(proto: .equal, model: .equal),
    FieldOperator(proto: .notEqual, model: .notEqual),
    FieldOperator(proto: .arrayContains, model: .arrayContains),
    FieldOperator(proto: .in, model: .in, listName: "IN"),
    FieldOperator(
      proto: .arrayContainsAny,
      model: .arrayContainsAny,
      listName: "ARRAY_CONTAINS_ANY"
    ),
    FieldOperator(proto: .notIn, model: .notIn, listName: "NOT_IN"),
  ]

  private static func reference(_ path: FieldPath) -> Structured.FieldReference {
    .with { $0.fieldPath = path.description }
  }

  private static func proto(_ cursor: Query.Cursor) -> Google_Firestore_V1_Cursor {
    .with {
      $0.values = cursor.values.map { proto($0) }
      $0.before = cursor.before
    }
  }

  private static func proto(_ filter: Query.Filter) -> Structured.Filter {
    .with { proto in
      switch filter {
      case .and(let members): proto.compositeFilter = composite(.and, members)
      case .or(let members): proto.compositeFilter = composite(.or, members)
      case .field(let path, let fieldOperator, let operand):
        proto.fieldFilter = .with {
          $0.field = reference(path)
          $0.op = fieldOperators.first { $0.model == fieldOperator }?.proto ?? .unspecified
          $0.value = Self.proto(operand)
        }
      case .unary(let path, let unaryOperator):
        proto.unaryFilter = .with {
          $0.field = reference(path)
          switch unaryOperator {
          case .isNull: $0.op = .isNull
          case .isNaN: $0.op = .isNan
          case .isNotNull: $0.op = .isNotNull
          case .isNotNaN: $0.op = .isNotNan
          }
        }
      }
    }
  }

  private static func composite(
    _ op: Structured.CompositeFilter.Operator,
    _ members: [Query.Filter]
  ) -> Structured.CompositeFilter {
    .with {
      $0.op = op
      $0.filters = members.map { proto($0) }
    }
  }
}
