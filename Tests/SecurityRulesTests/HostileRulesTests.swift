import DocumentModel
import Foundation
import Testing

@testable import SecurityRules

@Suite("Hostile rules and requests")
struct HostileRulesTests {
  private static func file(_ body: String) -> String {
    "rules_version = '2'; service cloud.firestore { \(body) }"
  }

  private static func file(if condition: String) -> String {
    file("match /a/{id} { allow get: if \(condition); }")
  }

  @Test(
    "A file that repeats a sign as often as it can is refused",
    arguments: [
      "(", "!", "-(", "[", "{'a': ", "a.a.", "a[0][", "/a/$(", "f(", "true ? ", "1 + ", "a in ",
      "true && ", "match /a { ", "match /{a=**} { ", "'", "\\", "/*", "a is int is ", "a()",
    ]
  )
  func giantFiles(part: String) {
    let count = (Ruleset.bytesMax - 200) / part.utf8.count
    let text = String(repeating: part, count: count)
    for whole in [Self.file(if: text), Self.file(text), Self.file("match \(text)"), text] {
      #expect(throws: Ruleset.Rejection.self) { try Ruleset(name: "f.rules", content: whole) }
    }
  }

  @Test("Thousands of functions, of matches and of warnings are read quickly")
  func manyDeclarations() throws {
    let functions = (0..<4000).map { "function f\($0)() { return x\($0) == \($0); }" }
    let matches = (0..<1500).map { "match /a\($0)/{id} { allow get: if f\($0)(); }" }
    let ruleset = try Ruleset(
      name: "f.rules",
      content: Self.file((functions + matches).joined(separator: "\n"))
    )
    #expect(ruleset.issues.count >= 4000)
  }

  /// What the rules say on a thread with the stack that Linux gives to each.
  private static func isAllowed(
    _ text: String,
    data: MapValue = [:],
    stackBytes: Int = 8 << 20
  ) throws -> Bool {
    let box = Box()
    let done = DispatchSemaphore(value: 0)
    let thread = Thread {
      box.result = Result {
        try Ruleset(name: "f.rules", content: text).decide(
          RulesRequest(
            method: .get,
            path: [.known("a"), .known("x")],
            time: RuleTimestamp(Timestamp(microseconds: 0)),
            auth: .null,
            resource: .map(.entries(["data": .map(.fields(data))]))
          ),
          documents: NoDocuments(),
          ledger: AccessLedger(isSingle: true)
        ).isAllowed
      }
      done.signal()
    }
    thread.stackSize = stackBytes
    thread.start()
    done.wait()
    return try box.result?.get() ?? false
  }

  // Written by one thread, read by another after it has ended.
  private final class Box: @unchecked Sendable {
    var result: Result<Bool, any Error>?
  }

  private struct NoDocuments: RulesDocuments {
    func document(_ path: RulePath, after: Bool) throws -> RuleValue? { nil }
  }

  /// Calls within calls, each within as many signs as are allowed.
  private static var deepCalls: String {
    let nots = String(repeating: "!", count: 90)
    let functions = (0..<20).map { number in
      "function f\(number)() { return \(nots)\(number == 19 ? "true" : "f\(number + 1)()"); }"
    }
    return file(functions.joined() + "match /a/{id} { allow get: if \(nots)f0(); }")
  }

  @Test("The deepest expressions do not exhaust the stack")
  func deepEvaluation() throws {
    #expect(try !Self.isAllowed(Self.deepCalls))
  }

  @Test("A text that doubles and doubles again is an error")
  func doublingText() throws {
    let calls = String(repeating: "f(", count: 60) + "'aaaa'" + String(repeating: ")", count: 60)
    let text = Self.file(
      "function f(s) { return s + s; } match /a/{id} { allow get: if \(calls).size() > 0; }"
    )
    #expect(try !Self.isAllowed(text))
  }

  @Test("A list that doubles and doubles again is an error", arguments: ["s.concat(s)", "[s, s]"])
  func doublingList(step: String) throws {
    let calls = String(repeating: "f(", count: 60) + "[1]" + String(repeating: ")", count: 60)
    let text = Self.file(
      """
      function f(s) { return \(step); }
      function same(s) { return s == s; }
      match /a/{id} { allow get: if same(\(calls)); }
      """
    )
    #expect(try !Self.isAllowed(text))
  }

  @Test("Recursive wildcards within recursive wildcards are refused")
  func nestedGlobs() {
    let open = (0..<2).map { "match /{g\($0)=**} { allow get: if false; " }.joined()
    #expect(throws: Ruleset.Rejection.self) {
      try Ruleset(name: "f.rules", content: Self.file(open + "}}"))
    }
  }

  @Test("What one rule uses up, the others of the request lack")
  func oneBudget() throws {
    func row(_ count: Int, _ sign: String) -> String {
      "allow get: if [\(Array(repeating: "1", count: count).joined(separator: ","))].size() "
        + "\(sign) 0;"
    }

    #expect(try Self.isAllowed(Self.file("match /a/{id} { \(row(600, "<")) \(row(300, ">")) }")))
    #expect(try !Self.isAllowed(Self.file("match /a/{id} { \(row(600, "<")) \(row(600, ">")) }")))
  }

  /// As many elements as a document can have, all different.
  static let crowds: [[FirestoreValue]] = [
    (0..<50_000).map { .timestamp(Timestamp(microseconds: $0)) },
    (0..<50_000).map { .bytes(Array("\($0)".utf8)) },
    (0..<50_000).map { .array([.integer($0)]) },
    (0..<50_000).map { .map(["a": .integer($0)]) },
    (0..<50_000).map { _ in .double(.nan) },
    (0..<50_000).map { .geoPoint(GeoPoint(latitude: Double($0) / 1000, longitude: 0)) },
  ]

  @Test(
    "A client's long list is judged to its end",
    arguments: crowds,
    ["hasOnly(['a'])", "toSet().size() == 0", "hasAny(resource.data.l)"]
  )
  func longLists(crowd: [FirestoreValue], test: String) throws {
    _ = try Self.isAllowed(
      Self.file(if: "resource.data.l.\(test)"),
      data: ["l": .array(crowd)]
    )
  }
}
