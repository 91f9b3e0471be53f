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
  /// The maximum length of the texts of all rulesets that decided, in force or not.
  private static let textLengthMax = 1 << 20

  private var ring: [RecentDecision] = []
  private var next = 0

  /// Adds a decision; returns the displaced ones, which are best freed outside of locks.
  mutating func add(_ decision: RecentDecision) -> [RecentDecision] {
    let latest = ring.isEmpty ? nil : ring[(next + ring.count - 1) % ring.count].ruleset
    var displaced: [RecentDecision] = []
    if ring.count < Self.countMax {
      ring.append(decision)
    } else {
      displaced.append(ring[next])
      ring[next] = decision
    }
    next = (next + 1) % Self.countMax
    if let latest, latest !== decision.ruleset { displaced += removeOld() }
    return displaced
  }

  /// Removes the oldest decisions until the texts of the remaining rulesets are short enough.
  private mutating func removeOld() -> [RecentDecision] {
    var seen: Set<ObjectIdentifier> = []
    var length = 0
    let latestFirst = latestFirst
    let tooOld = latestFirst.firstIndex { decision in
      guard seen.insert(ObjectIdentifier(decision.ruleset)).inserted else { return false }
      length += decision.ruleset.textLength
      return length > Self.textLengthMax
    }
    guard let tooOld else { return [] }
    ring = latestFirst[..<tooOld].reversed()
    next = ring.count
    return Array(latestFirst[tooOld...])
  }

  var latestFirst: [RecentDecision] {
    ring.count < Self.countMax ? ring.reversed() : Array((ring[next...] + ring[..<next]).reversed())
  }
}
