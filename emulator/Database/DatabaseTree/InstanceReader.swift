import DatabaseModel
import DatabaseRules

/// Reads of an instance under its rules, on any tree.
struct InstanceReader {
  let name: String
  let settings: RealtimeDatabase.Settings
  let rules: DatabaseRuleset?

  /// Returns a node or its selected children; throws a `DatabaseError` for what is not allowed.
  func read(
    _ path: DatabasePath,
    _ query: DatabaseQuery?,
    as caller: DatabaseCaller,
    _ view: TreeView
  ) throws -> DatabaseNode {
    try checkRead(path, query, as: caller, view)
    guard let query = try selecting(query, at: path) else { return try view.node(at: path) }
    return try QueryWindow(query, at: path, in: view).node(in: view)
  }

  /// Returns a query that selects some of the children; nil for all of them.
  ///
  /// Throws a `DatabaseError` if its index is missing.
  func selecting(_ query: DatabaseQuery?, at path: DatabasePath) throws(DatabaseError)
    -> DatabaseQuery?
  {
    guard let query, !query.selectsAll else { return nil }
    if let message = missingIndex(query, at: path) { throw DatabaseError(.missingIndex, message) }
    return query
  }

  func checkRead(
    _ path: DatabasePath,
    _ query: DatabaseQuery?,
    as caller: DatabaseCaller,
    _ view: TreeView
  ) throws(DatabaseError) {
    guard !caller.isAdmin, let rules else { return }
    let now = settings.now()
    let request = DatabaseRulesRequest(
      auth: caller.rulesAuth,
      nowMilliseconds: now.milliseconds,
      data: view
    )
    let decision = RecentDatabaseDecision(
      time: now,
      instance: name,
      method: "read",
      path: path,
      auth: request.auth,
      decision: rules.read(path, query: query, request),
      file: rules.name
    )
    try settings.obey(decision)
  }

  /// Returns the message for a query whose index is missing in the rules; nil for any other.
  func missingIndex(_ query: DatabaseQuery, at path: DatabasePath) -> String? {
    rules?.missingIndex(query.order, at: path).map { index in
      "Index not defined, add \".indexOn\": \"\(index)\", for path \"\(path)\", to the rules"
    }
  }
}
