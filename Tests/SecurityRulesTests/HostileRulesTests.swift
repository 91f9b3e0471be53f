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
    let count = (RulesLimits.fileBytesMax - 200) / part.utf8.count
    let text = String(repeating: part, count: count)
    for whole in [Self.file(if: text), Self.file(text), Self.file("match \(text)"), text] {
      #expect(throws: Ruleset.RejectionError.self) { try Ruleset(name: "f.rules", content: whole) }
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

  /// Decides on a thread with the stack size that Linux gives to each thread.
  private static func decision(
    _ text: String,
    data: MapValue = [:],
    workMax: Int = 1_000_000
  ) async throws -> Decision {
    try await withCheckedThrowingContinuation { continuation in
      let thread = Thread {
        let decision = Result {
          try Ruleset(name: "f.rules", content: text).decide(
            RulesRequest(
              method: .get,
              path: [.known("a"), .known("x")],
              time: RuleTimestamp(Timestamp(microseconds: 0)),
              auth: .null,
              resource: .map(.entries(["data": .map(.fields(data))]))
            ),
            documents: NoDocuments(),
            ledger: AccessLedger(isSingle: true, workMax: workMax)
          )
        }
        continuation.resume(with: decision)
      }
      thread.stackSize = 8 << 20
      thread.start()
    }
  }

  private static func isAllowed(_ text: String, data: MapValue = [:]) async throws -> Bool {
    try await decision(text, data: data).isAllowed
  }

  private struct NoDocuments: RulesDocuments {
    func document(_ path: RulePath, after: Bool) throws -> RuleValue? { nil }
  }

  /// Nested calls, each with as many operators as are allowed.
  private static var deepCalls: String {
    let nots = String(repeating: "!", count: 90)
    let functions = (0..<20).map { number in
      "function f\(number)() { return \(nots)\(number == 19 ? "true" : "f\(number + 1)()"); }"
    }
    return file(functions.joined() + "match /a/{id} { allow get: if \(nots)f0(); }")
  }

  @Test("The deepest expressions do not exhaust the stack")
  func deepEvaluation() async throws {
    #expect(try await !Self.isAllowed(Self.deepCalls))
  }

  @Test("A text that doubles and doubles again is an error")
  func doublingText() async throws {
    let calls = String(repeating: "f(", count: 60) + "'aaaa'" + String(repeating: ")", count: 60)
    let text = Self.file(
      "function f(s) { return s + s; } match /a/{id} { allow get: if \(calls).size() > 0; }"
    )
    #expect(try await !Self.isAllowed(text))
  }

  @Test("A list that doubles and doubles again is an error", arguments: ["s.concat(s)", "[s, s]"])
  func doublingList(step: String) async throws {
    let calls = String(repeating: "f(", count: 60) + "[1]" + String(repeating: ")", count: 60)
    let text = Self.file(
      """
      function f(s) { return \(step); }
      function same(s) { return s == s; }
      match /a/{id} { allow get: if same(\(calls)); }
      """
    )
    #expect(try await !Self.isAllowed(text))
  }

  @Test("Recursive wildcards within recursive wildcards are refused")
  func nestedGlobs() {
    let open = (0..<2).map { "match /{g\($0)=**} { allow get: if false; " }.joined()
    #expect(throws: Ruleset.RejectionError.self) {
      try Ruleset(name: "f.rules", content: Self.file(open + "}}"))
    }
  }

  @Test("What one rule uses up, the others of the request lack")
  func oneBudget() async throws {
    func row(_ count: Int, _ sign: String) -> String {
      "allow get: if [\(Array(repeating: "1", count: count).joined(separator: ","))].size() "
        + "\(sign) 0;"
    }

    #expect(
      try await Self.isAllowed(Self.file("match /a/{id} { \(row(600, "<")) \(row(300, ">")) }"))
    )
    #expect(
      try await !Self.isAllowed(Self.file("match /a/{id} { \(row(600, "<")) \(row(600, ">")) }"))
    )
  }

  /// As many elements as a document can contain, all different.
  struct LongList: CustomTestStringConvertible {
    let testDescription: String
    let elements: [FirestoreValue]

    init(_ name: String, _ element: (Int64) -> FirestoreValue) {
      testDescription = name
      elements = (0..<50_000).map(element)
    }
  }

  static let largestLists = [
    LongList("timestamps") { .timestamp(Timestamp(microseconds: $0)) },
    LongList("bytes") { .bytes(Array("\($0)".utf8)) },
    LongList("arrays") { .array([.integer($0)]) },
    LongList("maps") { .map(["a": .integer($0)]) },
    LongList("NaN") { _ in .double(.nan) },
    LongList("geo points") { .geoPoint(GeoPoint(latitude: Double($0) / 1000, longitude: 0)) },
  ]

  @Test(
    "A client's long list is judged to its end",
    arguments: largestLists,
    ["hasOnly(['a'])", "toSet().size() == 0", "hasAny(resource.data.l)"]
  )
  func longLists(list: LongList, test: String) async throws {
    _ = try await Self.isAllowed(
      Self.file(if: "resource.data.l.\(test)"),
      data: ["l": .array(list.elements)]
    )
  }

  /// Returns the error message of the only rule.
  private static func failure(_ condition: String, data: MapValue) async throws -> String? {
    let decision = try await decision(file(if: condition), data: data)
    guard case .failed(let message, _) = decision.answers.first?.outcome else { return nil }
    return message
  }

  @Test(
    "A text that would be too long is an error before it is made",
    arguments: [
      "resource.data.l.join(resource.data.s).size() > 0",
      "resource.data.s.replace('a', resource.data.s).size() > 0",
    ]
  )
  func longTexts(condition: String) async throws {
    let text = String(repeating: "a", count: 100_000)
    let list = Array(repeating: FirestoreValue.string(""), count: 10_000)
    #expect(
      try await Self.failure(condition, data: ["s": .string(text), "l": .array(list)])
        == "The text has become too long."
    )
  }

  @Test(
    "What takes too long is an error, whatever it is that takes long",
    arguments: [
      "resource.data.s.matches('.*[a-z]{1,200}!')",
      (0..<90).map { "resource.data.l != [\($0)]" }.joined(separator: " && "),
      (0..<90).map { "resource.data.l.hasAll(['\($0)'])" }.joined(separator: " || "),
      (0..<90).map { "[1, \($0)] in resource.data.l" }.joined(separator: " || "),
      (0..<90).map { "resource.data.l.size() < \($0)" }.joined(separator: " || "),
      Array(repeating: "resource.data.s != resource.data.s", count: 90).joined(separator: " || "),
    ]
  )
  func longWork(condition: String) async throws {
    let text = String(repeating: "a", count: 20_000)
    let list = (0..<13_000).map(FirestoreValue.integer)
    let failure = try await Self.failure(condition, data: ["s": .string(text), "l": .array(list)])
    #expect(failure?.hasPrefix("The rules take too long") == true, "\(failure ?? "")")
  }

  @Test("Reasons evaluate each part once, within functions too")
  func reasonsOnce() async throws {
    let calls = (0..<15).map { "function f\($0)() { return !!f\($0 + 1)(); }" }.joined()
    let last = "function f15() { return resource.data.s.matches('[a-c]*x'); }"
    let decision = try await Self.decision(
      Self.file("\(calls) \(last) match /a/{id} { allow get: if !!!!f0(); }"),
      data: ["s": .string(String(repeating: "a", count: 150_000))]
    )

    #expect(decision.answers.first?.outcome == .isFalse)
    #expect(decision.answers.first?.reasons.first?.text.hasPrefix("resource.data.s") == true)
    #expect(decision.answers.first?.reasons.first?.failure == nil)
  }

  @Test(
    "A message shows only the beginning of a client's data",
    arguments: [
      "resource.data[resource.data.s] == 1", "resource.data.s.matches('(' + resource.data.s)",
      "duration.value(1, resource.data.s) == duration.value(1, 's')",
      "'a'.replace('a', '$9' + resource.data.s) == 'a'",
      "get(path('/databases/(default)/documents/a/' + resource.data.s)).data.b",
    ]
  )
  func longMessages(condition: String) async throws {
    let text = String(repeating: "x", count: 500_000)
    let failure = try #require(try await Self.failure(condition, data: ["s": .string(text)]))
    #expect(failure.utf8.count < 1000)
  }
}
