/// The error of an expression that has no value.
struct RuleError: Error {
  var message: String
  /// The range of the expression that failed.
  var range: SourceRange
}
