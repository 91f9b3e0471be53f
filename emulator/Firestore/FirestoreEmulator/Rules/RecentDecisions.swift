import DocumentModel
package import SecurityRules

/// A decision of the security rules on one request.
package struct RecentDecision: Sendable {
  /// The subject of a request.
  ///
  /// Most decisions are never displayed, so a document's name is formatted only on demand.
  enum Subject: Sendable {
    case document(DocumentName)
    /// The formatted title of a query, kept instead of the query because filters can be large.
    case query(String, DatabaseName)
  }

  package var time: RuleTimestamp
  package var method: AccessMethod
  var subject: Subject
  /// The caller: null, or a map with `uid` and `token`.
  package var auth: RuleValue
  package var decision: Decision
  /// The ruleset that decided.
  package var ruleset: Ruleset

  /// The document's path, or the target of a query.
  package var path: String {
    let (text, database) =
      switch subject {
      case .document(let name): (name.path.description, name.database)
      case .query(let title, let database): (title, database)
      }
    let isDefault = database == DatabaseName(project: database.project)
    return isDefault ? text : "\(text) in database \(database.database)"
  }
}

/// A bounded list of the latest decisions.
struct RecentDecisions: Sendable {
  private static let countMax = 200

  private var ring: [RecentDecision] = []
  private var next = 0

  /// Adds a decision; returns the displaced one, which is best freed outside of locks.
  mutating func add(_ decision: RecentDecision) -> RecentDecision? {
    var displaced: RecentDecision?
    if ring.count < Self.countMax {
      ring.append(decision)
    } else {
      displaced = ring[next]
      ring[next] = decision
    }
    next = (next + 1) % Self.countMax
    return displaced
  }

  var latestFirst: [RecentDecision] {
    ring.count < Self.countMax ? ring.reversed() : Array((ring[next...] + ring[..<next]).reversed())
  }
}
