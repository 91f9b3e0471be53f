package import DatabaseModel

/// The compiled rules of one instance of the Realtime Database.
package struct DatabaseRuleset: Sendable {
  /// The text with its comments, as it was given.
  package let source: String
  /// The name of the file, which explanations show.
  package let name: String
  /// The rules as compact JSON without comments.
  package let strictJSON: String
  let root: RuleNode

  /// Compiles the text of a `database.rules.json`; throws the first error with its place.
  package init(
    parsing source: String,
    name: String = "database.rules.json"
  ) throws(DatabaseRulesError) {
    guard source.utf8.count <= DatabaseRulesLimits.fileBytesMax else {
      throw DatabaseRulesError(
        line: 1,
        column: 1,
        message: "Rules can have at most \(DatabaseRulesLimits.fileBytesMax) bytes."
      )
    }
    self.source = source
    self.name = name
    let text = try RulesText(source)
    root = try RulesReader.read(text)
    strictJSON = text.compactJSON
  }

  /// Returns the `.indexOn` entry that a query at a path lacks; nil if it needs none or has it.
  ///
  /// The entry is `.value` or a child path.
  package func missingIndex(_ order: DatabaseQuery.Order, at path: DatabasePath) -> String? {
    let entry: String
    switch order {
    case .key, .priority: return nil
    case .value: entry = ".value"
    case .child(let path): entry = path.keys.joined(separator: "/")
    }
    guard let level = levels(to: path).last, level.path.count == path.count else { return entry }
    let isThere = level.node.indexes.contains { index in
      index == ".value"
        ? entry == ".value"
        : DatabasePath(parsing: index)?.keys.joined(separator: "/").isExactly(entry) == true
    }
    return isThere ? nil : entry
  }

  /// Returns the levels with rules from the root to a path, as far as there are any.
  func levels(to path: DatabasePath) -> [RuleLevel] {
    var levels = [RuleLevel(node: root, path: .root)]
    for key in path.keys {
      guard let next = levels.last?.child(key) else { break }
      levels.append(next)
    }
    return levels
  }
}
