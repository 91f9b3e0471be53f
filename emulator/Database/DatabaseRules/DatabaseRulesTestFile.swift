import DatabaseModel
import JSONText

/// Test cases for rules: requests that they must allow or deny, read from JSON.
///
/// ```json
/// {
///   "data": {"chats": {"1": {"members": {"alice": true}}}},
///   "cases": [{
///     "name": "A member writes", "expect": "allow", "auth": {"uid": "alice"},
///     "method": "write", "path": "/chats/1/text", "value": "Hello"
///   }]
/// }
/// ```
///
/// A case's own `data` replaces the tree of the file. The methods are `read`, `write`, whose
/// `value` replaces the node, and `update`, whose `value` has paths below the node as its members.
/// A read can have a `query` with `orderBy`, bounds and a limit in the words of the REST API.
/// `time` is the variable `now`, in milliseconds.
package struct DatabaseRulesTestFile: Sendable {
  /// An error in a test file.
  package struct MistakeError: Error, Hashable, CustomStringConvertible {
    /// The path of the member, such as `cases[3].method`; empty for the whole file.
    package var place: String
    package var reason: String
    package var description: String { (place.isEmpty ? "" : "\(place): ") + reason }
  }

  /// The result of one case.
  package struct Result: Sendable {
    package var name: String
    package var isExpectedToAllow: Bool
    package var decision: DatabaseDecision

    /// True if the rules decided as the case expects.
    package var isAsExpected: Bool { decision.isAllowed == isExpectedToAllow }
  }

  /// One case, ready to run.
  struct Case: Sendable {
    var name: String
    var isExpectedToAllow: Bool
    var auth: JSONValue
    var nowMilliseconds: Int64
    var data: DatabaseNode
    /// The node or the locations of the request.
    var paths: [DatabasePath]
    /// The tree after a write; nil for a read.
    var newData: DatabaseNode?
    var query: DatabaseQuery?
  }

  /// The maximum size of a file, in bytes.
  package static let bytesMax = 16 << 20

  /// The time of cases that do not set one: January 1, 2026.
  ///
  /// It is fixed, so that a file's cases have the same results on every day.
  static let standardTime: Int64 = 1_767_225_600_000

  let cases: [Case]

  /// Reads a file; throws the first mistake, which names the member.
  package init(json: [UInt8]) throws(MistakeError) {
    cases = try DatabaseRulesTestReader.cases(json)
  }

  /// Evaluates all cases, in file order.
  package func run(
    _ ruleset: DatabaseRuleset,
    coverage: DatabaseCoverage? = nil
  ) -> [Result] {
    cases.map { test in
      let request = DatabaseRulesRequest(
        auth: test.auth,
        nowMilliseconds: test.nowMilliseconds,
        data: test.data,
        newData: test.newData
      )
      let decision =
        test.newData == nil
        ? ruleset.read(test.paths[0], query: test.query, request, coverage: coverage)
        : ruleset.write(test.paths, request, coverage: coverage)
      return Result(
        name: test.name,
        isExpectedToAllow: test.isExpectedToAllow,
        decision: decision
      )
    }
  }
}
