/// An expression as it is written; names are not looked up yet.
final class Syntax: Sendable {
  let kind: Kind
  let range: SourceRange
  /// Where issues about the value point: the operator of an operation, the name of a method.
  let place: SourceRange
  /// The number of expressions on the longest way down, this one included.
  let depth: Int

  init(_ kind: Kind, _ range: SourceRange, at place: SourceRange? = nil) {
    self.kind = kind
    self.range = range
    self.place = place ?? range
    switch kind {
    case .and(let operands), .or(let operands):
      // As deep as the operators between them would be, one within the other.
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
    /// Two or more operands, from the left.
    case and([Syntax])
    case or([Syntax])
    case typeTest(Syntax, String)
    case choice(Syntax, Syntax, Syntax)
    case member(Syntax, String)
    /// A call of a function or, with a receiver, of a method.
    case call(receiver: Syntax?, name: String, arguments: [Syntax])
    case index(Syntax, Syntax)
    /// A part of a list or a text; a bound may be left out.
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

/// A segment of a path: text as it stands or the value of an expression.
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

/// A rules file as it is written.
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
  /// Words that stand for no method, and so allow nothing.
  var unknownMethods: [(name: String, range: SourceRange)]
  /// Nil for a rule that always allows.
  var condition: Syntax?
  var range: SourceRange
}

struct FunctionSyntax: Sendable {
  var name: String
  var parameters: [(name: String, range: SourceRange)]
  var lets: [LetSyntax]
  /// Nil only in a file with syntax errors.
  var result: Syntax?
  /// The function's name.
  var range: SourceRange
}

struct LetSyntax: Sendable {
  var name: String
  var value: Syntax
  var range: SourceRange
}

/// What a request does with one document or object.
package enum AccessMethod: String, Sendable, CaseIterable {
  case get, list, create, update, delete

  /// The methods that a word after `allow` stands for; nil for another word.
  static func named(_ word: String) -> Set<AccessMethod>? {
    switch word {
    case "read": [.get, .list]
    case "write": [.create, .update, .delete]
    default: AccessMethod(rawValue: word).map { [$0] }
    }
  }
}
