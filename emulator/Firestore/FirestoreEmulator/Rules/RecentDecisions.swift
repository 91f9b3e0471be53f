import DocumentModel
package import SecurityRules

/// A decision of the rules on one request.
package struct RecentDecision: Sendable {
  /// What a request is about; most decisions are never shown, so a name is put into words later.
  enum Subject: Sendable {
    case document(DocumentName)
    /// A query in words, because its filters could hold much that nobody needs any more.
    case query(String, DatabaseName)
  }

  package var time: RuleTimestamp
  package var method: AccessMethod
  var subject: Subject
  /// The caller: null, or a map with `uid` and `token`.
  package var auth: RuleValue
  package var decision: Decision
  /// The rules that decided.
  package var ruleset: Ruleset

  /// The document's path, or what a query looks for.
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

/// The last decisions, of bounded number.
struct RecentDecisions: Sendable {
  private static let countMax = 200

  private var ring: [RecentDecision] = []
  private var next = 0

  /// Adds a decision; returns the one that it displaces, which is best freed without a lock.
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
