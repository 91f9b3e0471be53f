import DocumentModel

/// One disjunct of a filter's disjunctive normal form: tests that must all hold.
struct Conjunction: Sendable, Hashable {
  /// The tests; `oneOf` and `containsAny` have at most one value each.
  var terms: [Term] = []

  /// One test of one field.
  struct Term: Sendable, Hashable {
    var path: FieldPath
    var test: Condition.Test
  }

  /// Returns the disjuncts of a condition; validation has limited their number.
  ///
  /// A missing condition has one empty disjunct; a condition that never holds has none.
  static func disjuncts(of condition: Condition?) -> [Conjunction] {
    guard let condition else { return [Conjunction()] }
    switch condition {
    case .or(let conditions):
      return conditions.flatMap(disjuncts)
    case .and(let conditions):
      return conditions.reduce([Conjunction()]) { products, next in
        let factors = disjuncts(of: next)
        return products.flatMap { left in
          factors.map { Conjunction(terms: left.terms + $0.terms) }
        }
      }
    case .field(let path, .oneOf(let values)):
      return values.map { Conjunction(terms: [Term(path: path, test: .oneOf([$0]))]) }
    case .field(let path, .containsAny(let values)):
      return values.map { Conjunction(terms: [Term(path: path, test: .containsAny([$0]))]) }
    case .field(let path, let test):
      return [Conjunction(terms: [Term(path: path, test: test)])]
    }
  }

  /// Returns true if a document passes every test.
  func holds(for document: FirestoreDocument) -> Bool {
    terms.allSatisfy { document.value(at: $0.path).map($0.test.holds) ?? false }
  }

  /// Returns the value that a field must equal, if there is one.
  func equalValue(of path: FieldPath) -> FirestoreValue? {
    for term in terms where term.path == path {
      if case .oneOf(let values) = term.test { return values.first }
    }
    return nil
  }

  /// Returns the element that a field must contain, if there is one.
  func containedValue(of path: FieldPath) -> FirestoreValue? {
    for term in terms where term.path == path {
      if case .containsAny(let values) = term.test { return values.first }
    }
    return nil
  }

  /// The fields bound to one value, in order, without the document's name.
  var equalPaths: [FieldPath] {
    Set(
      terms.compactMap { term in
        if case .oneOf = term.test, !term.path.isDocumentID { term.path } else { nil }
      }
    ).sorted()
  }

  /// The fields that must contain a value, in order.
  var containedPaths: [FieldPath] {
    Set(
      terms.compactMap { term in
        if case .containsAny = term.test { term.path } else { nil }
      }
    ).sorted()
  }
}
