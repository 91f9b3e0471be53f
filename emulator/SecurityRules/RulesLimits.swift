/// The limits on rules files and on their evaluation.
package enum RulesLimits {
  // MARK: According to the documentation of security rules

  /// The maximum size of a file, in bytes of UTF-8.
  package static let fileBytesMax = 256 << 10
  static let parametersMax = 7
  static let letsMax = 10
  static let callDepthMax = 20
  /// The maximum depth of matches, without the outermost match, which covers all documents.
  static let matchDepthMax = 10
  static let segmentsMax = 100
  static let capturesMax = 20
  /// The maximum number of expressions evaluated for one document.
  static let expressionsMax = 1000
  /// The maximum number of documents that the rules access for one document.
  ///
  /// It is also the maximum for a request for a single document.
  static let accessesMax = 10
  /// The maximum number of documents that the rules access for any other request.
  static let requestAccessesMax = 20

  // MARK: To protect the server

  /// The maximum depth of nested expressions and matches in a file.
  ///
  /// Deeper nesting would exhaust the stack.
  static let nestingMax = 99
  /// The maximum depth of nested expressions, including expressions in called functions.
  ///
  /// It protects the stack.
  static let evaluationDepthMax = 250
  /// The maximum weight of values created by expressions; see `RuleValue.weight`.
  static let madeWeightMax = 8 << 20
  /// The maximum work on strings, lists and patterns for one request.
  ///
  /// Its units are those of `LinearPattern` and `RuleValue.weight`. It is about half a second of
  /// one core.
  package static let workMax = 20_000_000
  /// The maximum work of a brief ledger, which takes some milliseconds.
  static let briefWorkMax = 200_000
  /// The maximum number of expressions of a brief ledger.
  static let briefExpressionsMax = 10_000
}
