import LinearRegex

/// A checked expression of a rule.
struct Expression: Sendable {
  indirect enum Kind: Sendable {
    case literal(RuleValue)
    case variable(Variable)
    /// The key of a `$` variable, by its index among those of the level.
    case capture(Int)
    case query(QueryMember)
    /// A member of `auth` or of a value in it.
    case member(Expression, String)
    case element(Expression, Expression)
    case length(Expression)
    case snapshotCall(SnapshotMethod, Expression, [Expression])
    case textCall(TextMethod, Expression, [Expression])
    case matches(Expression, LinearPattern)
    case not(Expression)
    case negative(Expression)
    case arithmetic(Arithmetic, Expression, Expression)
    case comparison(Comparison, Expression, Expression)
    case equality(isEqual: Bool, Expression, Expression)
    case and([Expression])
    case or([Expression])
    case choice(Expression, Expression, Expression)
    /// A literal that only `matches` takes.
    case pattern(LinearPattern)
    /// A list that only `hasChildren` takes.
    case list([Expression])
  }

  enum Variable: String, Sendable {
    case auth, now, root, data, newData, query
  }

  enum QueryMember: String, Sendable {
    case orderByKey, orderByValue, orderByPriority, orderByChild
    case startAt, endAt, equalTo, limitToFirst, limitToLast

    var type: StaticType {
      switch self {
      case .orderByKey, .orderByValue, .orderByPriority: .boolean
      case .orderByChild: .string
      case .startAt, .endAt, .equalTo: .primitive
      case .limitToFirst, .limitToLast: .number
      }
    }
  }

  enum SnapshotMethod: String, Sendable {
    case val, child, parent, hasChild, hasChildren, exists, getPriority
    case isNumber, isString, isBoolean

    var parameterCount: Int { self == .child || self == .hasChild ? 1 : 0 }

    var type: StaticType {
      switch self {
      case .val, .getPriority: .primitive
      case .child, .parent: .snapshot
      default: .boolean
      }
    }
  }

  enum TextMethod: String, Sendable {
    case contains, beginsWith, endsWith, replace, toLowerCase, toUpperCase, matches

    var parameterCount: Int {
      switch self {
      case .toLowerCase, .toUpperCase: 0
      case .replace: 2
      default: 1
      }
    }

    var type: StaticType {
      switch self {
      case .replace, .toLowerCase, .toUpperCase: .string
      default: .boolean
      }
    }
  }

  enum Arithmetic: String, Sendable {
    case plus = "+"
    case minus = "-"
    case times = "*"
    case divided = "/"
    case remainder = "%"
  }

  enum Comparison: String, Sendable {
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
  }

  let kind: Kind
  let type: StaticType
  /// The place in the rule's text.
  let range: Range<Int>
  /// The number of the expression in the file, by which coverage counts it.
  let number: Int
  /// The number of expressions on the longest way down.
  let depth: Int
  /// The maximum work of an evaluation, without that on strings.
  let weight: Int

  init(_ kind: Kind, type: StaticType, range: Range<Int>, number: Int = -1) {
    self.kind = kind
    self.type = type
    self.range = range
    self.number = number
    let children = Self.children(of: kind)
    depth = 1 + (children.map(\.depth).max() ?? 0)
    var weight = 1 + children.reduce(0) { $0 + $1.weight }
    if case .snapshotCall(_, _, let arguments) = kind {
      weight += DatabaseRulesLimits.lookWork * max(1, arguments.count)
    }
    self.weight = weight
  }

  var isLiteral: Bool { if case .literal = kind { true } else { false } }

  /// The expressions in the order in which they are evaluated.
  var children: [Expression] { Self.children(of: kind) }

  private static func children(of kind: Kind) -> [Expression] {
    switch kind {
    case .literal, .variable, .capture, .query, .pattern: []
    case .member(let object, _), .length(let object), .matches(let object, _): [object]
    case .not(let operand), .negative(let operand): [operand]
    case .element(let left, let right), .arithmetic(_, let left, let right),
      .comparison(_, let left, let right), .equality(_, let left, let right):
      [left, right]
    case .snapshotCall(_, let object, let arguments), .textCall(_, let object, let arguments):
      [object] + arguments
    case .and(let operands), .or(let operands), .list(let operands): operands
    case .choice(let condition, let first, let second): [condition, first, second]
    }
  }
}

/// The type of an expression, as far as it is known before the evaluation.
enum StaticType: String, Sendable {
  case boolean, number, string, null, query
  case snapshot = "snapshot"
  case pattern = "regular expression"
  case list = "array"
  /// A leaf of the database of an unknown type, or null.
  case primitive
  /// Anything in `auth`.
  case any

  /// True if only the evaluation shows the type.
  var isOpen: Bool { self == .any || self == .primitive }

  func isOne(of types: StaticType...) -> Bool { isOpen || types.contains(self) }

  /// True for the types that `val()` can have.
  var isPrimitive: Bool {
    switch self {
    case .boolean, .number, .string, .null, .primitive: true
    default: false
    }
  }
}

/// An error in an expression, with its place in the rule's text.
struct ExpressionError: Error {
  var offset: Int
  var message: String
}
