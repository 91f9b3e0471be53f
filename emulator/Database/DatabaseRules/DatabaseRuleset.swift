package import DatabaseModel

/// The compiled rules of one instance of the Realtime Database.
package struct DatabaseRuleset: Sendable {
  /// The text with its comments, as it was given.
  package let source: String

  /// Compiles the text of a `database.rules.json`; throws the first error with its place.
  package init(parsing source: String) throws(DatabaseRulesError) {
    self.source = source
  }

  /// Decides whether a node may be read; `query` is nil for the whole node.
  package func read(
    _ path: DatabasePath,
    query: DatabaseQuery?,
    _ request: DatabaseRulesRequest
  ) -> DatabaseDecision {
    DatabaseDecision(isAllowed: true)
  }

  /// Decides about all locations of one write together; one refusal refuses all.
  ///
  /// A location is a path at which the write replaces the node.
  package func write(
    _ locations: [DatabasePath],
    _ request: DatabaseRulesRequest
  ) -> DatabaseDecision {
    DatabaseDecision(isAllowed: true)
  }

  /// Returns the `.indexOn` entry that a query at a path lacks; nil if it needs none or has it.
  ///
  /// The entry is `.value` or a child path.
  package func missingIndex(_ order: DatabaseQuery.Order, at path: DatabasePath) -> String? {
    nil
  }
}
