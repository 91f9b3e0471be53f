import DatabaseModel
import JSONText
import Testing

@testable import DatabaseRules

/// The outcome of one expression.
enum Outcome: Equatable, CustomStringConvertible {
  case isTrue, isFalse
  /// The evaluation fails.
  case fails
  /// The rules are refused.
  case refused

  var description: String {
    switch self {
    case .isTrue: "true"
    case .isFalse: "false"
    case .fails: "fails"
    case .refused: "is refused"
    }
  }
}

/// Returns the tree of a text in JSON with `.priority` and `.value`.
func tree(_ json: String) throws -> DatabaseNode {
  try DatabaseInput(parsing: Array(json.utf8)).node
}

/// Returns the path of a text such as `/a/b`.
func path(_ text: String) throws -> DatabasePath {
  try #require(DatabasePath(parsing: text))
}

/// Returns the outcome of a rule of `/$x/$y` for the path `/a/b`.
///
/// With a query, it is a `.read`, and a `.write` otherwise.
func outcome(
  _ expression: String,
  auth: JSONValue = .null,
  data: String = "null",
  newData: String = "null",
  query: DatabaseQuery? = nil
) throws -> Outcome {
  let request = DatabaseRulesRequest(
    auth: auth,
    nowMilliseconds: 1000,
    data: try tree(data),
    newData: query == nil ? try tree(newData) : nil
  )
  // With an alternative that is true, only an error keeps the rule from being true.
  var results: [Bool] = []
  for text in [expression, "(\(expression)) || true"] {
    let kind = query == nil ? ".write" : ".read"
    guard
      let rules = try? DatabaseRuleset(
        parsing: #"{"rules":{"$x":{"$y":{"\#(kind)":\#(jsonQuoted(text))}}}}"#
      )
    else { return .refused }
    let path = DatabasePath(["a", "b"])
    let decision =
      query == nil ? rules.write([path], request) : rules.read(path, query: query, request)
    results.append(decision.isAllowed)
  }
  return results[0] ? .isTrue : results[1] ? .isFalse : .fails
}
