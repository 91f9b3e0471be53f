package import DatabaseModel
package import DatabaseRules
package import DocumentModel
import FlowControl
package import JSONText
import Synchronization

/// A decision of the rules on one request.
package struct RecentDatabaseDecision: Sendable {
  package var time: Timestamp
  package var instance: String
  /// `read` or `write`.
  package var method: String
  /// The node, or the first location of a write.
  package var path: DatabasePath
  /// The variable `auth` of the rules.
  package var auth: JSONValue
  package var decision: DatabaseDecision
  /// The name of the file with the rules.
  package var file: String
}

/// The latest decisions of the rules of all instances.
final class DecisionLog: Sendable {
  /// The maximum number of decisions that are kept.
  private static let countMax = 200

  private let recent = Mutex(RecentElements<RecentDatabaseDecision>(countMax: countMax))

  func add(_ decision: RecentDatabaseDecision) {
    recent.withLock { $0.append(decision) }
  }

  /// The decisions, most recent first.
  var latestFirst: [RecentDatabaseDecision] { recent.withLock { $0.reversed() } }
}
