/// A parsed expression whose names are not resolved yet.
final class Syntax: Sendable {
  let kind: Kind
  let range: SourceRange
  /// The position reported for issues about the value: the operator or the method name.
  let place: SourceRange
  /// The number of nested expressions on the deepest path, including this expression.
  let depth: Int

  init(_ kind: Kind, _ range: SourceRange, at place: SourceRange? = nil) {
    self.kind = kind
    self.range = range
    self.place = place ?? range
    switch kind {
    case .and(let operands), .or(let operands):
      // The operands are as deep as they would be in nested binary operators.
      depth =
        operands.enumerated().map { place, operand in
          operand.depth + operands.count - max(place, 1)
        }.max() ?? 0
    default: depth = 1 + (kind.children.map(\.depth).max() ?? 0)
    }
  }

  indirect enum Kind: Sendable {
    case literal(RuleValue)
    case name(String)
    case list([Syntax])
    case map([(key: Syntax, value: Syntax)])
    case path([PathPart])
    case not(Syntax)
    case negative(Syntax)
    case binary(BinaryOperator, Syntax, Syntax)
    /// Two or more operands, from left to right.
    case and([Syntax])
    case or([Syntax])
    case typeTest(Syntax, String)
    case choice(Syntax, Syntax, Syntax)
    case member(Syntax, String)
    /// A call of a function or, with a receiver, of a method.
    case call(receiver: Syntax?, name: String, arguments: [Syntax])
    case index(Syntax, Syntax)
    /// A part of a list, a string or a path; either bound may be omitted.
    case slice(Syntax, from: Syntax?, to: Syntax?)

    fileprivate var children: [Syntax] {
      switch self {
      case .literal, .name: []
      case .list(let elements), .and(let elements), .or(let elements): elements
      case .map(let entries): entries.flatMap { [$0.key, $0.value] }
      case .path(let parts): parts.compactMap(\.expression)
      case .not(let operand), .negative(let operand), .typeTest(let operand, _),
        .member(let operand, _):
        [operand]
      case .binary(_, let left, let right), .index(let left, let right): [left, right]
      case .choice(let a, let b, let c): [a, b, c]
      case .slice(let a, from: let b, to: let c): [a] + [b, c].compactMap(\.self)
      case .call(let receiver, _, let arguments): [receiver].compactMap(\.self) + arguments
      }
    }
  }
}

/// A segment of a path: literal text or the value of an expression.
enum PathPart: Sendable {
  case text(String)
  case value(Syntax)

  var expression: Syntax? {
    if case .value(let expression) = self { expression } else { nil }
  }
}

/// The operators that evaluate both operands.
enum BinaryOperator: String, Sendable {
  case add = "+"
  case subtract = "-"
  case multiply = "*"
  case divide = "/"
  case remainder = "%"
  case less = "<"
  case lessOrEqual = "<="
  case greater = ">"
  case greaterOrEqual = ">="
  case equal = "=="
  case notEqual = "!="
  case isIn = "in"
}

/// A parsed rules file.
struct FileSyntax: Sendable {
  var version = 1
  var functions: [FunctionSyntax] = []
  var services: [ServiceSyntax] = []
}

struct ServiceSyntax: Sendable {
  var name: String
  var range: SourceRange
  var functions: [FunctionSyntax] = []
  var matches: [MatchSyntax] = []
}

struct MatchSyntax: Sendable {
  var path: [PatternPart]
  var range: SourceRange
  var functions: [FunctionSyntax] = []
  var matches: [MatchSyntax] = []
  var allows: [AllowSyntax] = []
}

/// A segment of a match's pattern.
enum PatternPart: Sendable, Hashable {
  case text(String)
  case capture(String, SourceRange)
  case glob(String, SourceRange)
}

struct AllowSyntax: Sendable {
  var methods: Set<AccessMethod>
  /// Words that name no method and therefore allow nothing.
  var unknownMethods: [(name: String, range: SourceRange)]
  /// The condition; nil for a rule that always allows.
  var condition: Syntax?
  var range: SourceRange
}

struct FunctionSyntax: Sendable {
  var name: String
  var parameters: [(name: String, range: SourceRange)]
  var lets: [LetSyntax]
  /// The returned expression; nil only in a file with syntax errors.
  var result: Syntax?
  /// The range of the function's name.
  var range: SourceRange
}

struct LetSyntax: Sendable {
  var name: String
  var value: Syntax
  var range: SourceRange
}

/// An action of a request on one document or object.
package enum AccessMethod: String, Sendable, CaseIterable {
  case get, list, create, update, delete

  /// Returns the methods for a word after `allow`; nil for an unknown word.
  static func named(_ word: String) -> Set<AccessMethod>? {
    switch word {
    case "read": [.get, .list]
    case "write": [.create, .update, .delete]
    default: AccessMethod(rawValue: word).map { [$0] }
    }
  }
}
