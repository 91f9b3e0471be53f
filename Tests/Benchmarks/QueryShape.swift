import FirestoreProtos
import SwiftProtobuf

/// A query whose cost should depend on its result and not on the surrounding data.
enum QueryShape: String, CaseIterable, Sendable {
  case count = "count()"
  case countUpTo = "count() up to 1000"
  case sum = "sum(n)"
  case offset = "offset of the half, limit 10"
  case order = "order by n, limit 10"
  case equality = "author ==, order by n, 40 results"
  case group = "collection group, 10 results"
  case names = "all below a collection of 10"

  /// The gRPC method of the query.
  var method: String {
    switch self {
    case .count, .countUpTo, .sum: "google.firestore.v1.Firestore/RunAggregationQuery"
    default: "google.firestore.v1.Firestore/RunQuery"
    }
  }

  /// The paths of the searched documents: `count` messages and as many subcollections.
  static func paths(_ count: Int) -> [String] {
    (0..<count).flatMap { ["messages/m\($0)", "parents/p\($0)/others/x"] }
      + (0..<10).flatMap { ["parents/p\($0 * count / 10)/wanted/x", "small/s\($0)"] }
  }

  /// Builds the query over `paths(count)`.
  func query(_ count: Int, documents: String) -> Google_Firestore_V1_StructuredQuery {
    .with { query in
      query.from = [.with { $0.collectionID = "messages" }]
      switch self {
      case .count, .countUpTo, .sum: break
      case .offset:
        query.offset = Int32(count / 2)
        query.limit = .init(10)
      case .order:
        query.orderBy = [.with { $0.field.fieldPath = "n" }]
        query.limit = .init(10)
      case .equality:
        query.where.fieldFilter = .with {
          $0.field.fieldPath = "author"
          $0.op = .equal
          // Every second document is not a message, so only fifty of the hundred authors wrote any.
          $0.value.stringValue = "user-8"
        }
        query.orderBy = [.with { $0.field.fieldPath = "n" }]
        query.limit = .init(40)
      case .group:
        query.from = [
          .with {
            $0.collectionID = "wanted"
            $0.allDescendants = true
          }
        ]
      case .names:
        // The query that clients send to delete a collection with its subcollections.
        query.from = [.with { $0.allDescendants = true }]
        query.where.compositeFilter = .with {
          $0.op = .and
          $0.filters = [
            Self.bound(.greaterThanOrEqual, "\(documents)/small/\0"),
            Self.bound(.lessThan, "\(documents)/small\0/\0"),
          ]
        }
      }
    }
  }

  private static func bound(
    _ op: Google_Firestore_V1_StructuredQuery.FieldFilter.Operator,
    _ name: String
  ) -> Google_Firestore_V1_StructuredQuery.Filter {
    .with {
      $0.fieldFilter.field.fieldPath = "__name__"
      $0.fieldFilter.op = op
      $0.fieldFilter.value.referenceValue = name
    }
  }
}
