package import DatabaseModel

/// The result of rules for one request, with its reasons.
package struct DatabaseDecision: Sendable, Hashable {
  package var isAllowed: Bool
  /// The results of the rules that decided, in the order of their evaluation.
  ///
  /// They are the rules that could grant the access, up to the first that does, and the `.validate`
  /// that refused. Results beyond a maximum are left out.
  package var answers: [Answer] = []

  /// The maximum number of results that a decision keeps.
  static let answersMax = 20

  /// The result of one rule.
  package struct Answer: Sendable, Hashable {
    package var kind: DatabaseRuleKind
    /// The path of the rule in the file, such as `/chats/$id`.
    package var rulePath: String
    /// The path of the node at which it was evaluated.
    package var path: DatabasePath
    package var line: Int
    package var column: Int
    /// The expression as it is written.
    package var text: String
    package var outcome: Outcome
    /// The deciding parts of the expression if it refuses and the request was refused.
    package var reasons: [Reason] = []
  }

  /// The result of an expression.
  package enum Outcome: Sendable, Hashable {
    case isTrue, isFalse
    case failed(String)
  }

  /// A part of an expression that made it false or made it fail.
  package struct Reason: Sendable, Hashable {
    /// The part as it is written.
    package var text: String
    /// The subexpressions and their values, as a rule would write them.
    package var operands: [Operand]
    /// The reason why the part has no value; nil if it has one.
    package var failure: String?
  }

  /// A subexpression with its value.
  package struct Operand: Sendable, Hashable {
    package var text: String
    package var value: String
  }

  package init(isAllowed: Bool, answers: [Answer] = []) {
    self.isAllowed = isAllowed
    self.answers = answers
  }
}

/// The kind of a rule, with its key.
package enum DatabaseRuleKind: String, Sendable {
  case read = ".read"
  case write = ".write"
  case validate = ".validate"
}
