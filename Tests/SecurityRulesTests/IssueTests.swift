import Foundation
import Testing

@testable import SecurityRules

/// Errors in rules files and the issues reported for them.
@Suite("Issues of rules files")
struct IssueTests {
  /// A row of the table: a file, or the condition of one, and its issues, such as `W5`.
  private struct Row: Decodable {
    var text: String
    var issues: [String] = []

    init(from decoder: any Decoder) throws {
      var row = try decoder.unkeyedContainer()
      text = try row.decode(String.self)
      while !row.isAtEnd { issues.append(try row.decode(String.self)) }
    }

    var file: String {
      if text.isEmpty || text.contains("{ ") || text.contains("\n") || text.contains(";") {
        return text
      }
      return IssueTests.file(if: text)
    }
  }

  /// Returns a file whose condition is in line 5.
  private static func file(if condition: String, functions: String = "") -> String {
    """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{db}/documents {
        match /t/{id} {
          allow get: if \(condition);
        }
        \(functions)
      }
    }

    """
  }

  private static func issues(
    _ content: String,
    service: Ruleset.Service = .firestore
  ) -> [RulesIssue] {
    do throws(Ruleset.RejectionError) {
      return try Ruleset(name: "f.rules", content: content, service: service).issues
    } catch { return error.issues }
  }

  /// Returns the issues of a condition, without their positions.
  private static func descriptions(if condition: String, functions: String = "") -> [String] {
    issues(file(if: condition, functions: functions)).map(\.description)
  }

  private static func table() throws -> [Row] {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "issues.json")
    return try JSONDecoder().decode([Row].self, from: Data(contentsOf: file))
  }

  // MARK: Issues of the official emulator

  @Test("Each issue that the official emulator reports is reported as severely in the same line")
  func officialIssues() throws {
    let rows = try Self.table()
    #expect(rows.count > 500)
    for row in rows {
      let issues = Set(
        Self.issues(row.file).map { "\($0.severity.rawValue.first ?? "?")\($0.range.line)" }
      )
      #expect(issues.isSuperset(of: row.issues), "\(row.text): \(issues.sorted())")
      let isRefused = issues.contains { $0.hasPrefix("E") }
      #expect(isRefused == row.issues.contains { $0.hasPrefix("E") }, "\(row.text)")
    }
  }

  @Test("Rules without a mistake have no issue", arguments: ["firestore.rules", "storage.rules"])
  func noIssues(name: String) throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let content = try String(contentsOf: root.appending(path: name), encoding: .utf8)
    let service: Ruleset.Service = name == "storage.rules" ? .storage : .firestore

    #expect(Self.issues(content, service: service).map(\.text) == [])
  }

  @Test(
    "What is usual has no issue",
    arguments: [
      "request.auth != null && request.auth.uid != null && request.auth.uid == id",
      "request.auth.token.email.matches('.*@acme[.]com') && request.auth.token.admin == true",
      "resource == null || resource.data == null || resource.data.owner == request.auth.uid",
      "request.resource == null || request.resource.data.diff(resource.data).affectedKeys()"
        + ".hasOnly(['a'])",
      "request.time > resource.data.at + duration.value(1, 'h')",
      "request.time - resource.data.at < duration.value(1, 'd')",
      "request.query.limit <= 10 && request.query.offset == 0",
      "get(/databases/$(db)/documents/users/$(request.auth.uid)).data.roles[id] in ['a', 'b']",
      "(id in resource.data ? resource.data[id] : null) == null",
      "resource.data.get('count', 0) + 1 == request.resource.data.count",
      "request.resource.data.keys().toSet().difference(['a'].toSet()).size() == 0",
      "request.path[3] == 't' && request.method in ['get', 'list'] && resource.__name__ != null",
      "math.abs(resource.data.x) > 1.5 && 1 == 1.0 && string(1) == '1'",
      "debug(request.auth) != null && debug(resource.data.open)",
    ]
  )
  func usualConditions(condition: String) {
    #expect(Self.descriptions(if: condition) == [])
  }

  // MARK: Syntax

  @Test("All syntax errors are reported at once, each with its line")
  func allSyntaxErrors() {
    let issues = Self.issues(
      """
      rules_version '2';
      service cloud.firestore {
        match /databases/{db}/documents {
          function f() {
            let a = ;
            return 1 +;
          }
          match /a/{b} {
            allow read: if ;
            alow write: if true;
            allow get if true;
            allow list: true;
            allow create: if f(;
            allow update: if {'a' 1} == {};
          }
          mtch /c/{d} {
            allow read: if request.auth.uid = d;
          }
          match e/{f} {
            allow read: if (true;
          }
        }
      }
      """
    )

    #expect(issues.map(\.range.line) == [1, 5, 6, 9, 10, 11, 12, 13, 14, 16, 17, 19, 20])
    #expect(issues.allSatisfy { $0.severity == .error })
    #expect(
      issues.dropFirst(4).prefix(3).map(\.description) == [
        "Unexpected 'alow'. Did you mean 'allow'?", "Missing ':' before 'if' condition.",
        "Missing 'if' before conditional expression.",
      ]
    )
  }

  @Test("At most a hundred syntax errors are reported")
  func boundedErrors() {
    let errors = String(repeating: "allow read: if ;\n", count: 5000)

    #expect(Self.issues("service cloud.firestore { match /a { \(errors) } }").count == 100)
  }

  @Test(
    "A file without rules is refused",
    arguments: ["", " \n\t\n", "// nothing yet\n", "/* nothing */", "rules_version = '2';\n"]
  )
  func emptyFiles(content: String) {
    for service in [Ruleset.Service.firestore, .storage] {
      let issues = Self.issues(content, service: service)
      #expect(issues.map(\.severity) == [.error])
      #expect(issues.first?.description.hasPrefix("The file has no rules") == true)
    }
  }

  // MARK: Names

  @Test(
    "A misspelt name is a warning with the name that was meant",
    arguments: [
      ("requst.auth != null", "Invalid variable name: requst. Did you mean 'request'?"),
      ("resouce.data.x == 1", "Invalid variable name: resouce. Did you mean 'resource'?"),
      ("ids == 'x'", "Invalid variable name: ids. Did you mean 'id'?"),
      ("isOwnr()", "Invalid function name: isOwnr. Did you mean 'isOwner'?"),
      ("exist(/a/b)", "Invalid function name: exist. Did you mean 'exists'?"),
      ("id.sise() == 1", "Invalid function name: sise. Did you mean 'size'?"),
      ("math.flor(1.5) == 1", "Invalid function name: math.flor. Did you mean 'math.floor'?"),
      ("request.auth.uuid == id", "Invalid member name: uuid. Did you mean 'uid'?"),
      ("request.rsource.data.x == 1", "Invalid member name: rsource. Did you mean 'resource'?"),
      ("resource.dat.x == 1", "Invalid member name: dat. Did you mean 'data'?"),
      ("somethingElse == 1", "Invalid variable name: somethingElse."),
    ]
  )
  func misspeltNames(condition: String, description: String) throws {
    let ruleset = try Ruleset(
      name: "f.rules",
      content: Self.file(
        if: "(\(condition)) || isOwner()",
        functions: "function isOwner() { return true; }"
      )
    )

    #expect(ruleset.issues.map(\.description) == [description])
    #expect(ruleset.issues.allSatisfy { $0.isUnknownName && $0.severity == .warning })
  }

  @Test("A misspelt method or service is an unknown name too")
  func misspeltWords() {
    let issues = Self.issues(
      """
      rules_version = '2';
      service cloud.firestor { match /a/{b} { allow read; } }
      service cloud.firestore { match /a/{b} { allow wirte; } }
      """
    )

    #expect(
      issues.map(\.description) == [
        "Invalid service name: cloud.firestor. Did you mean 'cloud.firestore'?",
        "Invalid method name: wirte. Did you mean 'write'?",
      ]
    )
    #expect(issues.allSatisfy { $0.isUnknownName })
  }

  // MARK: Types

  @Test(
    "A value whose type never fits is a warning",
    arguments: [
      ("request.auth", "Received one of [null, map]. Expected one of [bool]"),
      ("!request.auth.uid", "Received one of [string, null]. Expected one of [bool]"),
      ("request.time > 1", "cannot be ordered: [timestamp] > [int]"),
      ("request.time.year == 2026", "Received one of [timestamp]. Expected one of [map]"),
      ("request.auth.uid == 1", "not comparable, so this comparison will always return false"),
      ("request.method != 1", "not comparable, so this comparison will always return true"),
      ("resource.data.keys() == ['a'].toSet()", "not comparable"),
      ("f(1)", "Received one of [int]. Expected one of [string]"),
      ("g(id)", "There is no type for variable 'x' that satisfies all clauses"),
      ("h() == 'a'", "not comparable"),
      ("id.size(1) == 1", "Incorrect number of arguments supplied to function: size."),
    ]
  )
  func types(condition: String, part: String) {
    let descriptions = Self.descriptions(
      if: "(\(condition)) || f('') || g(null) || h() == 2",
      functions: """
        function f(x) { return x.lower() == ''; }
        function g(x) { return x.lower() == '' && x.year() == 1; }
        function h() { return 1; }
        """
    )

    #expect(descriptions.contains { $0.contains(part) }, "\(descriptions)")
  }

  @Test("A condition that is never true or false is a warning")
  func conditions() {
    #expect(
      Self.descriptions(if: "request.auth") == [
        "Invalid type. Permission statements expect a boolean value. Received one of [null, map]."
      ]
    )
  }

  @Test("Types of calls within calls are found once, however often a function uses its parameter")
  func nestedCalls() {
    let functions = (0..<19).map {
      "function f\($0)(x) { return f\($0 + 1)(f\($0 + 1)(x)); }"
    }
    let issues = Self.issues(
      Self.file(
        if: "f0(f0(1)) == 'a'",
        functions: functions.joined(separator: "\n") + "\nfunction f19(x) { return x; }"
      )
    )

    #expect(issues.map(\.range.line) == [5])
  }
}
