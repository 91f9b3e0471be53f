package import DocumentModel

/// The comparisons of a filter without its structure.
struct FilterLeaves {
  private(set) var all: [Leaf] = []
  /// True if the filter contains an OR of more than one filter.
  private(set) var hasOr = false

  /// One comparison; `comparison` is nil for a unary operator.
  struct Leaf {
    var path: FieldPath
    var comparison: Query.FieldOperator?
    var unary: Query.UnaryOperator?

    /// True if the operator excludes values.
    var isNegative: Bool {
      comparison == .notEqual || comparison == .notIn || unary == .isNotNull || unary == .isNotNaN
    }

    /// True if the operator implies an order by its field.
    var isInequality: Bool {
      switch comparison {
      case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual: true
      default: isNegative
      }
    }
  }

  /// Collects the leaves of a filter, in the client's order.
  init(_ filter: Query.Filter?) {
    if let filter { collect(filter) }
  }

  /// The fields with an inequality, in order of their paths.
  var inequalityPaths: [FieldPath] {
    Set(all.filter(\.isInequality).map(\.path)).sorted()
  }

  private mutating func collect(_ filter: Query.Filter) {
    switch filter {
    case .and(let filters):
      for filter in filters { collect(filter) }
    case .or(let filters):
      if filters.count > 1 { hasOr = true }
      for filter in filters { collect(filter) }
    case .field(let path, let comparison, _):
      all.append(Leaf(path: path, comparison: comparison))
    case .unary(let path, let unary):
      all.append(Leaf(path: path, unary: unary))
    }
  }
}

extension Query {
  /// The fields with an inequality; results are implicitly ordered by them.
  package var inequalityPaths: [FieldPath] { FilterLeaves(filter).inequalityPaths }
}

/// The size of a filter's disjunctive normal form, computed without building it.
struct NormalForm {
  /// The number of disjuncts; `in` and `array-contains-any` count as ORs of their values.
  private(set) var disjuncts = 1
  /// The maximum number of array memberships in one disjunct.
  private(set) var arrayTermsMax = 0
  /// The number of filters before they are multiplied out.
  private(set) var terms = 0

  init(_ filter: Query.Filter) {
    switch filter {
    case .and(let filters):
      for form in filters.map(NormalForm.init) {
        disjuncts = Self.bounded(disjuncts.multipliedReportingOverflow(by: form.disjuncts))
        arrayTermsMax += form.arrayTermsMax
        terms += form.terms
      }
    case .or(let filters):
      disjuncts = 0
      for form in filters.map(NormalForm.init) {
        disjuncts = Self.bounded(disjuncts.addingReportingOverflow(form.disjuncts))
        arrayTermsMax = max(arrayTermsMax, form.arrayTermsMax)
        terms += form.terms
      }
    case .field(_, .in, .array(let values)):
      disjuncts = values.count
      terms = 1
    case .field(_, .arrayContainsAny, .array(let values)):
      disjuncts = values.count
      arrayTermsMax = 1
      terms = 1
    case .field(_, .arrayContains, _):
      arrayTermsMax = 1
      terms = 1
    case .field, .unary:
      terms = 1
    }
  }

  private static func bounded(_ result: (partialValue: Int, overflow: Bool)) -> Int {
    result.overflow ? .max : result.partialValue
  }
}
