import DocumentModel
import DocumentStore
import FirestoreProtos
import FirestoreWire
import QueryEngine
import StatusCodes
import SwiftProtobuf

/// One aggregation of an aggregation query.
struct Aggregation: Sendable, Hashable {
  /// The maximum number of aggregations of one request in production.
  static let countMax = 5

  var alias: String
  var kind: Kind

  /// The function to compute.
  enum Kind: Sendable, Hashable {
    case count(upTo: Int64?)
    case sum(FieldPath)
    case average(FieldPath)
  }

  /// The field to aggregate; a document without it is not counted at all.
  var field: FieldPath? {
    switch kind {
    case .count: nil
    case .sum(let path), .average(let path): path
    }
  }

  /// Decodes a request's aggregations; those without an alias are named `field_1`, `field_2`, ….
  static func read(
    _ protos: [Google_Firestore_V1_StructuredAggregationQuery.Aggregation]
  ) throws(StatusError) -> [Aggregation] {
    guard !protos.isEmpty else { throw .invalidArgument("Aggregations can not be empty.") }
    guard protos.count <= countMax else {
      throw StatusError(
        .invalidArgument,
        "The maximum number of aggregations allowed in an aggregation query is \(countMax). "
          + "Received: \(protos.count)",
        details: [
          .errorInfo(
            reason: "TOO_MANY_AGGREGATIONS",
            metadata: ["actual_aggregations": "\(protos.count)", "max_aggregations": "\(countMax)"]
          )
        ]
      )
    }
    var aggregations: [Aggregation] = []
    var unnamed = 0
    for proto in protos {
      var alias = proto.alias
      if alias.isEmpty {
        unnamed += 1
        alias = "field_\(unnamed)"
      }
      guard !ResourceID.isReserved(alias) else {
        throw .invalidArgument("The property.name \"\(alias)\" is reserved.")
      }
      let bytesMax = DocumentLimits.fieldNameBytesMax
      guard alias.utf8.count <= bytesMax else {
        throw .invalidArgument("The property.name is longer than \(bytesMax) bytes.")
      }
      guard !aggregations.contains(where: { $0.alias.isIdentical(to: alias) }) else {
        throw .invalidArgument("Aggregation aliases contain duplicate alias: \(alias).")
      }
      aggregations.append(Aggregation(alias: alias, kind: try kind(proto)))
    }
    return aggregations
  }

  private static func kind(
    _ proto: Google_Firestore_V1_StructuredAggregationQuery.Aggregation
  ) throws(StatusError) -> Kind {
    switch proto.operator {
    case .count(let count):
      guard count.hasUpTo else { return .count(upTo: nil) }
      guard count.upTo.value >= 0 else {
        throw .invalidArgument(
          "The `up_to` value in a COUNT aggregation must be greater than or equal to zero."
        )
      }
      return .count(upTo: count.upTo.value)
    case .sum(let sum): return .sum(try field(sum.field))
    case .avg(let average): return .average(try field(average.field))
    case nil: throw .invalidArgument("Operator field in Aggregation is not set.")
    }
  }

  /// Decodes the field to aggregate, which must not be the document's name.
  private static func field(
    _ proto: Google_Firestore_V1_StructuredQuery.FieldReference
  ) throws(StatusError) -> FieldPath {
    let path = try WireFormat.fieldPath(proto.fieldPath)
    guard !path.isDocumentID else {
      throw .invalidArgument("Aggregations are not supported for the property: __key__")
    }
    return path
  }
}

/// The evaluation of aggregations over a query's documents.
///
/// A document counts only if it has every field that is summed or averaged, as in production's
/// indexes. If the query has a limit or an offset, these fields are also part of its order, before
/// the name.
struct AggregationEvaluation: Sendable {
  /// The query to run, with only the fields that the aggregations need.
  ///
  /// If only counts are requested, its offset skips the documents to count, so that it returns none
  /// of them.
  let baseQuery: Query
  private let aggregations: [Aggregation]
  private let fields: [FieldPath]
  private let toSkip: Int
  private var count: Int64 = 0
  private var totals: [FieldPath: Total] = [:]

  /// Creates an evaluation that has seen no document.
  ///
  /// Throws `INVALID_ARGUMENT` if a summed field would have to follow the name in an index.
  init(_ aggregations: [Aggregation], of query: Query) throws(StatusError) {
    self.aggregations = aggregations
    self.fields = Set(aggregations.compactMap(\.field)).sorted()
    let isBelow = query.allDescendants && !query.parent.segments.isEmpty
    if isBelow || query.isByName {
      // An inequality adds its field to the order, before the name.
      let ordered = query.orders.map(\.path) + query.inequalityPaths
      let behind = fields.filter { !ordered.contains($0) }
      guard behind.isEmpty else {
        throw .invalidArgument(
          "This query requires an index with fields "
            + "[\(behind.map(\.description).joined(separator: ", "))] after __name__ and Firestore does "
            + "not currently support such an index. Please try the query again with additional "
            + "ordering on those fields."
        )
      }
    }
    var base = query
    base.aggregatedFields = fields
    base.projection = fields.isEmpty ? [.documentID] : fields
    toSkip = fields.isEmpty ? base.offset : 0
    if fields.isEmpty {
      let bound = min(base.limit ?? .max, Self.upTo(aggregations) ?? .max)
      let (sum, overflow) = base.offset.addingReportingOverflow(bound)
      base.offset = overflow ? .max : sum
      base.limit = 1
    } else if base.limit != nil || base.offset > 0 {
      base.ordersByAggregatedFields = true
    }
    self.baseQuery = base
  }

  /// Returns the number of results that suffice if all counts are bounded; nil for all results.
  private static func upTo(_ aggregations: [Aggregation]) -> Int? {
    var bound: Int64 = 0
    for aggregation in aggregations {
      guard case .count(let upTo?) = aggregation.kind else { return nil }
      bound = max(bound, upTo)
    }
    return Int(clamping: bound)
  }

  /// Adds the next page of the query's results.
  mutating func add(_ page: QueryPage) {
    if fields.isEmpty {
      count += Int64(max(0, page.skipped - toSkip))
    } else {
      for document in page.documents { add(document) }
    }
  }

  private mutating func add(_ document: FirestoreDocument) {
    let values = fields.compactMap { document.fields[$0] }
    guard values.count == fields.count else { return }
    count += 1
    for (field, value) in zip(fields, values) { totals[field, default: Total()].add(value) }
  }

  /// The results by alias.
  var results: MapValue {
    var results: MapValue = [:]
    for aggregation in aggregations {
      results[aggregation.alias] =
        switch aggregation.kind {
        case .count(let bound): .integer(min(count, bound ?? .max))
        case .sum(let field): (totals[field] ?? Total()).sum
        case .average(let field): (totals[field] ?? Total()).average
        }
    }
    return results
  }

  /// The running total of one field's numbers; integers are summed exactly, regardless of size.
  private struct Total: Sendable {
    private var integers: Int128 = 0
    private var doubles = 0.0
    private var hasDoubles = false
    private var count = 0

    mutating func add(_ value: FirestoreValue) {
      switch value {
      case .integer(let number): integers += Int128(number)
      case .double(let number):
        doubles += number
        hasDoubles = true
      default: return
      }
      count += 1
    }

    var sum: FirestoreValue {
      if !hasDoubles, let whole = Int64(exactly: integers) { return .integer(whole) }
      return .double(Double(integers) + doubles)
    }

    var average: FirestoreValue {
      count == 0 ? .null : .double((Double(integers) + doubles) / Double(count))
    }
  }
}
