import DatabaseModel

/// The limits on rules and on their evaluation, which protect the server.
package enum DatabaseRulesLimits {
  /// The maximum size of the text of rules, in bytes of UTF-8.
  package static let fileBytesMax = 1 << 20
  /// The maximum depth of nested expressions; deeper nesting would exhaust the stack.
  static let nestingMax = 100
  /// The maximum size of a text that an expression creates, as of a stored string.
  static let textBytesMax = DatabaseLeaf.stringBytesMax
  /// The work allowed for a decision in addition to what its rules need without long strings.
  ///
  /// A unit is the evaluation of an expression, or the look at a byte of a string. All of it takes
  /// about half a second.
  static let workMax = 20_000_000
  /// The work on strings that each evaluation of a rule adds to what is allowed.
  ///
  /// A write may have a million nodes, each of which is validated.
  static let ruleWork = 200
  /// The work of looking at a node of the tree.
  static let lookWork = 20
}
