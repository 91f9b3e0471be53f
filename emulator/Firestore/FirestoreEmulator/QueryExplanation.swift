import DocumentStore
import FirestoreProtos
import QueryEngine
import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The explanation of a query for its client: production's plan and the cost of this run.
struct QueryExplanation: Sendable {
  /// The number of index entries that production bills as one read of an aggregation.
  private static let entriesOfRead = 1000

  private let plan: [CompositeIndex]
  private let began = ContinuousClock.now
  private var end: ContinuousClock.Instant?
  private var returned = 0
  private var skipped = 0
  private var scanned = 0
  /// True if the results are aggregated instead of returned.
  var isOfAggregation = false

  /// Creates the explanation of a query that has not run.
  init(plan: [CompositeIndex]) { self.plan = plan }

  /// Adds a page of the results.
  mutating func add(_ page: QueryPage) {
    returned += page.documents.count
    skipped += page.skipped
    scanned = max(scanned, page.scanned)
    end = .now
  }

  /// The plan, and the cost of the query if it ran.
  var metrics: Google_Firestore_V1_ExplainMetrics {
    .with {
      $0.planSummary.indexesUsed = plan.map { index in
        .with {
          $0.fields["query_scope"] = .init(
            stringValue: index.scope == .group ? "Collection group" : "Collection"
          )
          $0.fields["properties"] = .init(stringValue: index.properties)
        }
      }
      if let end { $0.executionStats = statistics(end - began) }
    }
  }

  private func statistics(_ duration: Duration) -> Google_Firestore_V1_ExecutionStats {
    let passed = returned + skipped
    let reads =
      isOfAggregation ? (passed + Self.entriesOfRead - 1) / Self.entriesOfRead : passed
    return .with {
      $0.resultsReturned = Int64(isOfAggregation ? 1 : returned)
      $0.readOperations = Int64(max(1, reads))
      $0.executionDuration.seconds = duration.components.seconds
      $0.executionDuration.nanos = Int32(duration.components.attoseconds / 1_000_000_000)
      $0.debugStats = Self.texts([
        "index_entries_scanned": scanned, "documents_scanned": isOfAggregation ? 0 : passed,
      ])
      $0.debugStats.fields["billing_details"] = .init(
        structValue: Self.texts([
          "documents_billable": isOfAggregation ? 0 : passed,
          "index_entries_billable": isOfAggregation ? passed : 0,
          "small_ops": 0,
          "min_query_cost": reads == 0 ? 1 : 0,
        ])
      )
    }
  }

  /// Returns numbers as strings, as production does.
  private static func texts(_ numbers: [String: Int]) -> Google_Protobuf_Struct {
    Google_Protobuf_Struct(fields: numbers.mapValues { .init(stringValue: "\($0)") })
  }
}
