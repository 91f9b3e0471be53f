import DocumentModel
import Foundation
import TestSupport
import Testing

@testable import SecurityRules

/// Compares look-ups of paths with the results of Firebase's own emulator.
@Suite("Paths of look-ups that the official emulator has judged")
struct LookUpPathTests {
  /// A row of the table: a path and its verdict (document, nothing or an error).
  private struct Row: Decodable {
    var path: String
    var verdict: String

    init(from decoder: any Decoder) throws {
      var row = try decoder.unkeyedContainer()
      path = try row.decode(String.self)
      verdict = try row.decode(String.self)
    }
  }

  /// Indicates whether `hearth rules test` lets Alice get the document `t/x` under `condition`.
  private static func isAllowed(_ condition: String) throws -> Bool {
    let rules = SampleRules.get(if: condition)
    let results = try file.get().run(try Ruleset(name: "f.rules", content: rules))
    return try #require(results.first).decision.isAllowed
  }

  private static let file = Result { try RulesTestFile(json: Array(cases.utf8)) }

  private static let cases: String = {
    let long = String(repeating: "x", count: ResourceID.bytesMax)
    let umlauts = String(repeating: "ü", count: ResourceID.bytesMax / 2)
    let others =
      [
        "t/x/s/y", "t/7", "t/1", "t/1.5", "t/true", "t/null", "t/...", "t/__id7__", "t/\(long)",
        "\(long)/x", "t/{i}", "t/*", "t/a b", "t/____", "t/__", "t/%2F", "t/`", "t/\(umlauts)",
      ].map { "\"\($0)\": {}" }.joined(separator: ", ")
    return """
      {"documents": {
         "t/x": {
           "blank": "", "slash": "a/b", "s": "text", "long": "\(long)x", "max": "\(long)",
           "s1": "\(umlauts)", "s2": "\(umlauts)ü", "n": 7, "f": 1.5, "yes": true, "z": null,
           "l": [], "m": {}, "p": {"$reference": "t/x"}, "b": {"$bytes": "eA=="},
           "t": {"$timestamp": "1970-01-01T00:00:01Z"}
         }, \(others)},
       "cases": [{"name": "a", "expect": "allow", "auth": {"uid": "alice"}, "method": "get",
         "path": "t/x"}]}
      """
  }()

  private static func rows() throws -> [Row] {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "look_up_paths.json")
    return try JSONDecoder().decode([Row].self, from: try Data(contentsOf: file))
  }

  @Test("Every path of the table is a document's, or of nothing, or makes each look-up fail")
  func table() throws {
    let rows = try Self.rows()
    #expect(rows.count > 100)
    for row in rows {
      // On an error, neither of the two conditions is true.
      for function in ["exists", "existsAfter"] {
        #expect(try Self.isAllowed("\(function)(\(row.path))") == (row.verdict == "document"))
        #expect(try Self.isAllowed("!\(function)(\(row.path))") == (row.verdict == "nothing"))
      }
      for function in ["get", "getAfter"] {
        #expect(
          try Self.isAllowed("\(function)(\(row.path)) != null") == (row.verdict == "document")
        )
      }
    }
  }

  @Test("The documents that are asked for are those of the table, in the request's database")
  func spelling() throws {
    let path = RulePath(["databases", "", "documents", "t", "x"])

    guard case .document(let name) = try LookUpPath(path, database: "(default)") else {
      Issue.record("The default database can be spelled by an empty id.")
      return
    }
    #expect(name == RulePath(["databases", "(default)", "documents", "t", "x"]))
    #expect(throws: OperationError.self) { try LookUpPath(path, database: "other") }
  }
}
