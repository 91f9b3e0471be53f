import DocumentModel
import Foundation
import Testing

@testable import SecurityRules

@Suite("Coverage reports")
struct CoverageReportTests {
  /// Rules for which the official emulator's decisions and coverage of `t/x` and `t/zzz` are known.
  private static func rules(_ condition: String) -> String {
    """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{db}/documents {
        match /t/{id} { allow get: if \(condition); }
      }
    }

    """
  }

  /// Returns the coverage of two gets: of a missing document, and of an existing one by Alice.
  private static func covered(_ text: String) throws -> (ruleset: Ruleset, coverage: Coverage) {
    let ruleset = try Ruleset(name: "f.rules", content: text)
    let coverage = Coverage()
    let cases = """
      {"documents": {"t/x": {"n": 1}}, "cases": [
        {"name": "a", "expect": "deny", "method": "get", "path": "t/zzz"},
        {"name": "b", "expect": "allow", "auth": {"uid": "alice"}, "method": "get", "path": "t/x"}
      ]}
      """
    _ = try RulesTestFile(json: Array(cases.utf8)).run(ruleset, coverage: coverage)
    return (ruleset, coverage)
  }

  private static func report(_ text: String) throws -> NSDictionary {
    let (ruleset, coverage) = try covered(text)
    let json = try JSONSerialization.jsonObject(with: Data(ruleset.coverageJSON(coverage).utf8))
    return try #require(json as? NSDictionary)
  }

  private static func roots(_ text: String) throws -> [NSDictionary] {
    try #require(try report(text)["report"] as? [NSDictionary])
  }

  private static func json(_ text: String) throws -> NSDictionary {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? NSDictionary)
  }

  private static func page(_ text: String) throws -> String {
    let (ruleset, coverage) = try covered(text)
    return ruleset.coverageHTML(coverage)
  }

  // MARK: JSON

  @Test("The report has the official emulator's shape, places, values and counts")
  func officialShape() throws {
    let roots = try Self.roots(Self.rules("resource == null && request.auth != null"))
    #expect(roots.count == 1)

    let place = { (column: Int, offset: Int, end: Int) in
      """
      "sourcePosition": {"fileName": "f.rules", "line": 4, "column": \(column),
        "currentOffset": \(offset), "endOffset": \(end)}
      """
    }
    let expected = """
      {\(place(35, 117, 156)),
       "values": [{"value": {"boolValue": false}, "count": 2}],
       "children": [
         {\(place(35, 117, 132)),
          "values": [{"value": {"boolValue": true}, "count": 1},
                     {"value": {"boolValue": false}, "count": 1}],
          "children": [{\(place(35, 117, 124)),
            "values": [{"value": {"nullValue": null}, "count": 1},
                       {"value": {"mapValue": {}}, "count": 1}]}]},
         {\(place(55, 137, 156)),
          "values": [{"value": {"boolValue": false}, "count": 1}, {"value": {}, "count": 1}],
          "children": [{\(place(55, 137, 148)),
            "values": [{"value": {"nullValue": null}, "count": 1}, {"value": {}, "count": 1}],
            "children": [{\(place(55, 137, 143)),
              "values": [{"value": {"mapValue": {}}, "count": 1},
                         {"value": {}, "count": 1}]}]}]}
       ]}
      """
    #expect(roots.first == (try Self.json(expected)))
  }

  @Test("A failed expression reports its location and reason")
  func failures() throws {
    let roots = try Self.roots(Self.rules("resource.data.x == 1"))
    let values = try #require(roots.first?["values"] as? [NSDictionary])

    let messages = values.map { value in
      (value["value"] as? NSDictionary)?["undefined"] as? NSDictionary
    }
    #expect(
      messages.map { $0?["causeMessage"] as? String } == [
        "Null value error.", "Property x is undefined on object.",
      ]
    )
    let place = try #require(messages.first??["sourcePosition"] as? NSDictionary)
    #expect(place["line"] as? Int == 4)
    #expect(place["column"] as? Int == 35)
  }

  @Test("Each type of value has its member, and only the small ones a value")
  func values() throws {
    let (ruleset, coverage) = try Self.covered(
      Self.rules(
        "[null, 'a\"', 1.5, /a/$(id), request.time, [1], {'a': 1}, 1 + 1, 0.0 / 0.0, 'x'.toUtf8()]"
          .appending(".size() == 10 && -(2) == 'a' + 'b\"' && path('/a/b') == 1 + 0.5")
      )
    )
    let json = ruleset.coverageJSON(coverage)

    #expect(json.contains(#"{"listValue":{}}"#))
    #expect(json.contains(#"{"timestampValue":{}}"#))
    #expect(json.contains(#"{"bytesValue":{}}"#))
    #expect(json.contains(#"{"mapValue":{}}"#))
    #expect(json.contains(#"{"intValue":"2"}"#))
    #expect(json.contains(#"{"pathValue":{"segments":[{"simple":"a"},{"simple":"zzz"}]}}"#))
    #expect(json.contains(#"{"stringValue":"ab\""}"#))
    #expect(throws: Never.self) {
      try JSONSerialization.jsonObject(with: Data(json.utf8))
    }
  }

  @Test("Of large values little is kept, also of a text that is one character and of a long path")
  func largeValues() throws {
    let mark = String(repeating: "\u{301}", count: 200_000)
    let path = String(repeating: "/a/b", count: 100_000)
    let record = CoverageRecord()
    let ruleset = try Ruleset(name: "f.rules", content: Self.rules("request.auth == null"))
    let expression = try #require(ruleset.allows.first?.condition)

    record.add(expression, .success(.string("a" + mark)))
    record.add(expression, .success(.path(RulePath(path.split(separator: "/").map(String.init)))))
    record.add(expression, .success(.path(RulePath(["a", "b"]))))

    #expect(
      record.entries.map(\.outcome) == [
        .string("a" + mark.unicodeScalars.prefix(99).map(String.init).joined()), .kind("path"),
        .path(["a", "b"]),
      ]
    )
  }

  @Test("What no request has reached has no values")
  func neverEvaluated() throws {
    let roots = try Self.roots(
      Self.rules("resource != null; allow list: if request.query.limit < 5")
    )
    #expect(roots.count == 2)

    #expect(roots[0]["values"] != nil)
    #expect(roots[1]["values"] == nil)
    #expect((roots[1]["children"] as? [NSDictionary])?.first?["values"] == nil)
    #expect(roots[1]["children"] != nil)
  }

  @Test("Conditions come in the file's order, then variables and results of functions")
  func order() throws {
    let roots = try Self.roots(
      """
      rules_version = '2';
      service cloud.firestore {
        match /databases/{db}/documents {
          function isMine() {
            let owner = resource.data.owner;
            return owner == request.auth.uid;
          }
          match /t/{id} { allow get: if isMine(); }
          allow list: if request.auth != null;
          match /u/{id} { allow get; allow list: if true; allow write: if false && id == 'a'; }
        }
      }
      """
    )

    let lines = roots.map { ($0["sourcePosition"] as? NSDictionary)?["line"] as? Int }
    #expect(lines == [8, 9, 10, 5, 6])
  }

  @Test("The file itself is there; without a condition that is not a literal there is no report")
  func constants() throws {
    let text = Self.rules("true")
    let report = try Self.report(text)

    let expected: NSDictionary = ["files": [["name": "f.rules", "content": text]]]
    #expect(report["rules"] as? NSDictionary == expected)
    #expect(report["report"] == nil)
  }

  @Test("More values than are listed still count as evaluations, and never hide true or false")
  func manyValues() {
    var node = Coverage.Node()
    for number in 0..<Int64(30) { node.add(.int(number)) }
    node.add(.bool(true))

    #expect(node.total == 31)
    #expect(node.counts.count == Coverage.outcomesMax + 1)
    #expect(node.counts.last?.outcome == .bool(true))
  }

  @Test("An operator's place reaches over its right operand, and a call's over its arguments")
  func ends() throws {
    for condition in ["id == 'abc'", "id.matches('a' + id)", "exists(/t/$(id))", "-id"] {
      let root = try #require(try Self.roots(Self.rules(condition)).first)
      let place = try #require(root["sourcePosition"] as? NSDictionary)

      #expect(place["endOffset"] as? Int == 117 + condition.utf8.count - 1, "\(condition)")
    }
  }

  // MARK: HTML

  @Test(
    "A condition's color and row say how it came out",
    arguments: [
      ("resource != null", "both", "1", "1", "0"),
      ("id != null", "alwaysTrue", "2", "0", "0"),
      ("id == 'nobody'", "alwaysFalse", "0", "2", "0"),
      ("resource.data.none", "error", "0", "0", "2"),
      ("resource.data.n == 1", "error", "1", "0", "1"),
      ("id", "error", "0", "0", "2"),
      ("id == 'a'; allow get: if 1 == 2", "alwaysFalse", "0", "2", "0"),
    ]
  )
  func colors(
    condition: String,
    verdict: String,
    isTrue: String,
    isFalse: String,
    failed: String
  ) throws {
    let page = try Self.page(Self.rules(condition))

    let counts = [isTrue, isFalse, failed].map { "<td>\($0)</td>" }.joined()
    #expect(page.contains("<td>get</td>\(counts)<td><span class=\"\(verdict)\">"))
    #expect(page.contains("<span class=\"rule \(verdict)\""))
  }

  @Test("A rule without requests is reported as never evaluated, and a literal as constant")
  func neverOrConstant() throws {
    let page = try Self.page(
      Self.rules("true; allow write: if request.auth != null; allow list: if false")
    )

    #expect(page.contains("<td>get</td><td>–</td><td>–</td><td>–</td>"))
    #expect(page.contains("constant: allows"))
    #expect(page.contains("constant: refuses"))
    #expect(page.contains("<td>write</td><td>0</td><td>0</td><td>0</td><td><span class=\"never\">"))
    #expect(
      page.contains("Of 1 conditions, 0 came out both true and false; 1 was never evaluated.")
    )
  }

  @Test("The page shows exactly the file's text, whatever is in it, with a number for each line")
  func wholeText() throws {
    let text = Self.rules(
      "id == '<b>&amp;\"</b>' || /* 'é😀' <script> */ "
        + "(resource.data.n in [1,\n 2]\n) && id[0:1] != ''"
    )
    let page = try Self.page(text)

    let start = try #require(page.range(of: "<pre class=\"source\"><code>"))
    let end = try #require(page.range(of: "</code></pre>"))
    let shown = page[start.upperBound..<end.lowerBound]
      .replacing(#/<[^>]*>/#, with: "")
      .replacing("&lt;", with: "<").replacing("&gt;", with: ">").replacing("&quot;", with: "\"")
      .replacing("&#39;", with: "'").replacing("&amp;", with: "&")
    #expect(shown == text)
    #expect(page.contains("<a id=\"L9\" href=\"#L9\">9</a></pre>"))
    #expect(!page.contains("<script"))
  }

  @Test("Each expression lists its values and their counts, with markup escaped")
  func titles() throws {
    let page = try Self.page(Self.rules("'<i>' + id == '\"' && resource.none"))

    #expect(page.contains("title=\"&#39;&lt;i&gt;zzz&#39;: 1×\n&#39;&lt;i&gt;x&#39;: 1×\""))
    #expect(page.contains("title=\"false: 2×\""))
    #expect(page.contains("title=\"never evaluated\">resource</span>"))
    #expect(!page.contains("<i>"))
  }

  @Test("The page loads nothing and runs nothing")
  func selfContained() throws {
    let page = try Self.page(Self.rules("true"))

    for word in ["<script", "<link", "src=", "@import", "url(", "http:", "https:"] {
      #expect(!page.contains(word), "\(word)")
    }
    #expect(page.contains("default-src 'none'"))
  }
}
