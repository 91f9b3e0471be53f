/// A request as the rules see it.
package struct RulesRequest: Sendable {
  package var method: AccessMethod
  /// The path, starting with `databases` for Firestore and with `b` for Storage.
  package var path: [PathStep]
  package var time: RuleTimestamp
  /// The user: null, or a map with `uid` and `token`.
  package var auth: RuleValue
  /// The document or object before the request; null if there is none, nil if it is undefined.
  package var resource: RuleValue?
  /// The document or object after the request; nil if it is undefined.
  package var newResource: RuleValue?
  /// The limit, offset and order of a query.
  package var query: RuleValue?
  /// The alternatives of a query's filter, each of which the rules must allow.
  package var constraints: [QueryConstraints]

  /// One segment of the requested path.
  package enum PathStep: Sendable, Hashable {
    case known(String)
    /// A single segment that a query leaves open.
    case unknown
    /// Any number of segments that a query leaves open.
    case anyStretch
  }

  /// Creates a request; only a query has constraints.
  package init(
    method: AccessMethod,
    path: [PathStep],
    time: RuleTimestamp,
    auth: RuleValue,
    resource: RuleValue? = nil,
    newResource: RuleValue? = nil,
    query: RuleValue? = nil,
    constraints: [QueryConstraints] = []
  ) {
    self.method = method
    self.path = path
    self.time = time
    self.auth = auth
    self.resource = resource
    self.newResource = newResource
    self.query = query
    self.constraints = constraints
  }
}

extension RulesRequest.PathStep {
  var text: String? { if case .known(let text) = self { text } else { nil } }
  var isKnown: Bool { text != nil }
}
