/// The access of rules to documents; valid during one request.
package protocol RulesDocuments {
  /// Returns a document by its path from `databases` on; nil if there is none.
  ///
  /// The document is read as it is after the request if `after` is true, and before the request
  /// otherwise. The path is valid for a document in the request's own database; see `LookUpPath`.
  func document(_ path: RulePath, after: Bool) throws -> RuleValue?
}
