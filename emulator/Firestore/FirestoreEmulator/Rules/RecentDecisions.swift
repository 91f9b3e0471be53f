package import SecurityRules

/// A decision of the rules on one request.
package struct RecentDecision: Sendable {
  package var time: RuleTimestamp
  package var method: AccessMethod
  /// The document's path, or what a query looks for.
  package var path: String
  /// The caller: null, or a map with `uid` and `token`.
  package var auth: RuleValue
  package var decision: Decision
  /// The rules that decided.
  package var ruleset: Ruleset
}

/// The last decisions, of bounded number.
struct RecentDecisions: Sendable {
  private static let countMax = 200

  private var ring: [RecentDecision] = []
  private var next = 0

  mutating func add(_ decision: RecentDecision) {
    if ring.count < Self.countMax {
      ring.append(decision)
    } else {
      ring[next] = decision
    }
    next = (next + 1) % Self.countMax
  }

  var latestFirst: [RecentDecision] {
    ring.count < Self.countMax ? ring.reversed() : Array((ring[next...] + ring[..<next]).reversed())
  }
}
