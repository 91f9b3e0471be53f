/// An expression whose names have been resolved.
final class Expression: Sendable {
  let kind: Kind
  let range: SourceRange
  /// The index of the expression in its file, counted from 0.
  let number: Int

  init(_ kind: Kind, _ range: SourceRange, number: Int) {
    self.kind = kind
    self.range = range
    self.number = number
  }

  enum Kind: Sendable {
    case literal(RuleValue)
    case request
    case resource
    /// A wildcard of the enclosing matches, by its index among their wildcards.
    case capture(Int)
    /// A parameter or a `let` of the enclosing function, by its index.
    case local(Int)
    case unknownName(String)
    case list([Expression])
    case map([(key: Expression, value: Expression)])
    case path([Part])
    case not(Expression)
    case negative(Expression)
    case binary(BinaryOperator, Expression, Expression)
    case and([Expression])
    case or([Expression])
    case typeTest(Expression, String)
    case choice(Expression, Expression, Expression)
    case member(Expression, String)
    /// A call of a function that the file declares, by the function's index.
    case call(Int, [Expression])
    /// A call of a built-in function, such as `get`.
    case global(GlobalFunction, [Expression])
    /// A call of a function in a package, such as `math.abs`.
    case packaged(String, String, [Expression])
    case method(Expression, String, [Expression])
    case unknownFunction(String)
    case index(Expression, Expression)
    case slice(Expression, from: Expression?, to: Expression?)
  }

  enum Part: Sendable {
    case text(String)
    case value(Expression)
  }

  /// The direct subexpressions.
  var children: [Expression] {
    switch kind {
    case .literal, .request, .resource, .capture, .local, .unknownName, .unknownFunction: []
    case .list(let elements), .and(let elements), .or(let elements), .call(_, let elements),
      .global(_, let elements), .packaged(_, _, let elements):
      elements
    case .map(let entries): entries.flatMap { [$0.key, $0.value] }
    case .path(let parts):
      parts.compactMap { if case .value(let expression) = $0 { expression } else { nil } }
    case .not(let operand), .negative(let operand), .typeTest(let operand, _),
      .member(let operand, _):
      [operand]
    case .binary(_, let left, let right), .index(let left, let right): [left, right]
    case .choice(let a, let b, let c): [a, b, c]
    case .slice(let a, from: let b, to: let c): [a] + [b, c].compactMap(\.self)
    case .method(let receiver, _, let arguments): [receiver] + arguments
    }
  }
}

/// The built-in functions that belong to no package.
enum GlobalFunction: String, Sendable, CaseIterable {
  case get, exists, getAfter, existsAfter, debug, int, float, string, path
}

/// A compiled function of the file.
final class CompiledFunction: Sendable {
  let name: String
  let parameterCount: Int
  let lets: [Expression]
  let result: Expression

  init(name: String, parameterCount: Int, lets: [Expression], result: Expression) {
    self.name = name
    self.parameterCount = parameterCount
    self.lets = lets
    self.result = result
  }
}

/// A compiled match with the rules and matches inside it.
final class CompiledMatch: Sendable {
  let path: [PatternPart]
  let allows: [CompiledAllow]
  let matches: [CompiledMatch]

  init(path: [PatternPart], allows: [CompiledAllow], matches: [CompiledMatch]) {
    self.path = path
    self.allows = allows
    self.matches = matches
  }
}

/// A compiled `allow` rule.
struct CompiledAllow: Sendable {
  var methods: Set<AccessMethod>
  var condition: Expression?
  var range: SourceRange
}
