import DatabaseModel

/// The rules at one level, with the levels below it.
final class RuleNode: Sendable {
  let read: Rule?
  let write: Rule?
  let validate: Rule?
  /// The entries of `.indexOn`.
  let indexes: [String]
  let children: [DatabaseKey: RuleNode]
  /// The rules of the children without rules of their own, whose key is a variable.
  let wildcard: RuleNode?
  /// True if this level or one below it has a `.validate`.
  let validates: Bool

  init(
    rules: [Rule],
    indexes: [String],
    children: [DatabaseKey: RuleNode],
    wildcard: RuleNode?
  ) {
    read = rules.first { $0.kind == .read }
    write = rules.first { $0.kind == .write }
    validate = rules.first { $0.kind == .validate }
    self.indexes = indexes
    self.children = children
    self.wildcard = wildcard
    validates =
      validate != nil || wildcard?.validates == true || children.values.contains(where: \.validates)
  }
}

/// A rule with its expression.
struct Rule: Sendable {
  var kind: DatabaseRuleKind
  /// The path of its level, such as `/chats/$id`.
  var path: String
  /// The line of the expression, from 1.
  var line: Int
  var column: Int
  /// The expression as it is written, without the escapes of JSON.
  var text: [Unicode.Scalar] = []
  /// The same text, which all decisions share.
  var source = ""
  var condition: Expression

  func text(of expression: Expression) -> String {
    String(scalars: text[expression.range])
  }
}

/// A level of rules on the way to a path, with the values of its variables.
struct RuleLevel {
  var node: RuleNode
  var path: DatabasePath
  /// The keys of the variables, from the outermost one.
  var captures: [String] = []

  /// Returns the level of a child; nil if no rules are there.
  func child(_ key: String) -> RuleLevel? {
    if let node = node.children[DatabaseKey(key)] {
      return RuleLevel(node: node, path: path.child(key), captures: captures)
    }
    return node.wildcard.map {
      RuleLevel(node: $0, path: path.child(key), captures: captures + [key])
    }
  }
}
