import DocumentModel
import SecurityRules

/// One alternative of a query's filter, in the form evaluated by security rules.
struct QueryAlternative {
  var path: [RulesRequest.PathStep]
  var constraints: QueryConstraints

  /// Returns the alternatives of a query; validation has limited their number.
  static func all(of query: Query) -> [QueryAlternative] {
    let open = openPath(query)
    return alternatives(query.filter).map { terms in
      var path = open
      for term in terms {
        if case .name(let name) = term { path = RulePath(name).segments.map { .known($0) } }
      }
      let predicates = terms.compactMap { term -> QueryConstraints.Predicate? in
        if case .field(let predicate) = term { predicate } else { nil }
      }
      return QueryAlternative(path: path, constraints: QueryConstraints(predicates))
    }
  }

  /// Returns the common pattern of the paths of all documents that the query could find.
  private static func openPath(_ query: Query) -> [RulesRequest.PathStep] {
    var path: [RulesRequest.PathStep] = ["databases", query.database.database, "documents"].map {
      .known($0)
    }
    path += query.parent.segments.map { .known($0) }
    if query.allDescendants { path.append(.anyStretch) }
    return path + [query.collectionID.map { .known($0) } ?? .unknown, .unknown]
  }

  private enum Term {
    case field(QueryConstraints.Predicate)
    /// Only this document matches.
    case name(DocumentName)
    /// A condition that proves nothing.
    case nothing
  }

  private static func alternatives(_ filter: Query.Filter?) -> [[Term]] {
    switch filter {
    case nil: return [[]]
    case .and(let filters):
      return filters.reduce([[]]) { products, filter in
        let factors = alternatives(filter)
        return products.flatMap { left in factors.map { left + $0 } }
      }
    case .or(let filters): return filters.flatMap(alternatives)
    case .unary(let path, let test):
      switch test {
      case .isNull: return [[term(path, .equal, .null)]]
      case .isNaN: return [[term(path, .equal, .float(.nan))]]
      case .isNotNull: return [[term(path, .notEqual, .null)]]
      case .isNotNaN: return [[term(path, .notEqual, .float(.nan))]]
      }
    case .field(let path, let test, let value):
      if path.isDocumentID { return names(test, value).map { [$0] } }
      switch test {
      case .in, .arrayContainsAny:
        guard case .array(let values) = value else { return [[.nothing]] }
        let each: QueryConstraints.Predicate.Test = test == .in ? .equal : .contains
        return values.map { [term(path, each, RuleValue($0))] }
      case .notIn: return [[term(path, .notIn, RuleValue(value))]]
      case .equal: return [[term(path, .equal, RuleValue(value))]]
      case .notEqual: return [[term(path, .notEqual, RuleValue(value))]]
      case .lessThan: return [[term(path, .less, RuleValue(value))]]
      case .lessThanOrEqual: return [[term(path, .lessOrEqual, RuleValue(value))]]
      case .greaterThan: return [[term(path, .greater, RuleValue(value))]]
      case .greaterThanOrEqual: return [[term(path, .greaterOrEqual, RuleValue(value))]]
      case .arrayContains: return [[term(path, .contains, RuleValue(value))]]
      }
    }
  }

  private static func term(
    _ path: FieldPath,
    _ test: QueryConstraints.Predicate.Test,
    _ value: RuleValue
  ) -> Term {
    .field(QueryConstraints.Predicate(path: path.segments, test: test, value: value))
  }

  private static func names(_ test: Query.FieldOperator, _ value: FirestoreValue) -> [Term] {
    switch (test, value) {
    case (.equal, .reference(let name)): return [.name(name)]
    case (.in, .array(let values)):
      return values.map { value in
        if case .reference(let name) = value { .name(name) } else { .nothing }
      }
    default: return [.nothing]
    }
  }
}
