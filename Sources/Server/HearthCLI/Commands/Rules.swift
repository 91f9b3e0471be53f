import ArgumentParser
import EmulatorSuite
import Foundation
import JSONText
import OutboundHTTP
import SecurityRules

/// `hearth rules`: checks, tests and explains the project's security rules.
struct Rules: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check, test and explain the project's security rules.",
    discussion: """
      `hearth start` loads firestore.rules, or the file that firebase.json names, and follows it \
      while it runs: a change is in force half a second later, and a broken file leaves the former \
      rules. What is refused is logged with the part of the rule that was false and its values.

        hearth rules check                   what is wrong with the file
        hearth rules test cases.json         ask it cases, without a suite
        hearth rules test --database c.json  ask database.rules.json
        hearth rules explain --denied        the last refusals of the running suite, and why
        hearth rules coverage --html out.html
      """,
    subcommands: [Check.self, Test.self, Explain.self, Coverage.self]
  )

  /// The note that a suite started with `--no-rules` prints.
  static let offNote =
    "Security rules are off (--no-rules): everybody may read and write everything."

  /// The options that select a rules file.
  struct File: ParsableArguments {
    @Option(
      name: .customLong("rules"),
      help: ArgumentHelp(
        "The rules file; by default the one of firebase.json.",
        valueName: "file"
      )
    )
    var path: String?

    @Flag(help: "Read the rules of Cloud Storage instead of Firestore's.")
    var storage = false

    @Flag(help: "Read the rules of the Realtime Database instead of Firestore's.")
    var database = false

    func validate() throws {
      guard !storage || !database else {
        throw ValidationError("Give --storage or --database, not both.")
      }
    }

    var service: Ruleset.Service { storage ? .storage : .firestore }

    /// Reads the file and prints its warnings; throws its errors.
    func read() throws -> Ruleset {
      let files = try ProjectFiles.ofWorkingFolder()
      let usual = storage ? files.storageRules : files.firestoreRules
      guard let path = path ?? usual else {
        throw CommandError(
          files.exists
            ? "The project in \(files.folder) has no rules file; name one with --rules, or in "
              + "firebase.json."
            : "There is no firebase.json here or in a parent folder; run this in your project, or "
              + "name a file with --rules."
        )
      }
      let content: String
      if self.path == nil, !FileManager.default.fileExists(atPath: path) {
        throw CommandError(
          "There is no \(path), which firebase.json names as \(storage ? "storage" : "firestore").rules"
            + ". Write these rules, or correct firebase.json."
        )
      }
      do { content = try String(contentsOf: URL(filePath: path), encoding: .utf8) } catch {
        throw CommandError("\(path) cannot be read: \(error.localizedDescription)")
      }
      do {
        let ruleset = try Ruleset(
          name: URL(filePath: path).lastPathComponent,
          content: content,
          service: service
        )
        for issue in ruleset.issues { Terminal.note("\(path):\(issue.text)") }
        return ruleset
      } catch {
        throw CommandError(error.issues.map { "\(path):\($0.text)" }.joined(separator: "\n"))
      }
    }
  }

  struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Say what is wrong with the rules file, with lines and columns.",
      discussion: """
        Exit code 1: the file cannot be loaded, or a name in it stands for nothing. Other warnings \
        do not fail.
        """
    )

    @OptionGroup var file: File

    func run() throws {
      guard !file.database else { return try file.checkDatabase() }
      let ruleset = try file.read()
      let name = ruleset.file.name
      let unknown = ruleset.issues.count { $0.isUnknownName }
      guard unknown == 0 else {
        let names = unknown == 1 ? "a name that stands" : "\(unknown) names that stand"
        throw CommandError(
          "\(name) has \(names) for nothing; see above. It can be loaded, but these parts fail."
        )
      }
      switch ruleset.issues.count {
      case 0: Terminal.print("\(name) is in order.")
      case 1: Terminal.print("\(name) can be loaded, with the warning above.")
      case let count: Terminal.print("\(name) can be loaded, with the \(count) warnings above.")
      }
    }
  }

  struct Test: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Ask the rules the cases of a file, without a running suite.",
      discussion: """
        The file has documents that are there, and cases:

          {"documents": {"notes/1": {"owner": "alice"}},
           "cases": [
             {"name": "hers", "expect": "allow", "auth": {"uid": "alice"},
              "method": "get", "path": "notes/1"},
             {"name": "not his", "expect": "deny", "auth": {"uid": "bob"},
              "method": "update", "path": "notes/1", "merge": {"owner": "bob"}}]}

        Methods are get, list, create, update and delete. A write has "data", the document after \
        it, or "merge", which is put over the stored document; "after" is what else the same \
        request writes. A list has a "query" with "where": [["owner", "==", "alice"]], "orderBy", \
        "limit", "offset" and "collectionGroup". A case may have "documents" of its own, and a \
        "time": without one request.time is 2026-01-01T00:00:00Z. What JSON cannot say is an \
        object of one member: {"$timestamp": "2026-01-01T00:00:00Z"}, $bytes, $reference, \
        $geopoint, $integer, $double or $vector. Exit code 1: a case came out otherwise.

        With --storage there are objects with their metadata instead, and "object" is what a write \
        leaves; paths are within the bucket:

          {"objects": {"images/a.png": {"contentType": "image/png", "size": 1200}},
           "cases": [
             {"name": "an image", "expect": "allow", "auth": {"uid": "alice"},
              "method": "create", "path": "images/b.png",
              "object": {"contentType": "image/png", "size": 800}}]}

        With --database there is "data", the tree, instead; methods are read, write, whose "value" \
        replaces the node, and update, whose "value" has the paths below it that change:

          {"data": {"chats": {"1": {"members": {"alice": true}}}},
           "cases": [
             {"name": "hers", "expect": "allow", "auth": {"uid": "alice"},
              "method": "write", "path": "/chats/1/text", "value": "Hello"}]}

        A read may have a "query" in the words of the REST API, and "time" is the variable now. \
        --coverage writes a table of the rules.
        """
    )

    @OptionGroup var file: File

    @Argument(help: "The file of cases.")
    var cases: String

    @Option(
      help: ArgumentHelp("Write a page that shows what the cases have asked.", valueName: "file")
    )
    var coverage: String?

    func run() throws {
      let firestoreOrStorage = file.database ? nil : try file.read()
      let data: Data
      do { data = try Data(contentsOf: URL(filePath: cases)) } catch {
        throw CommandError("\(cases) cannot be read: \(error.localizedDescription)")
      }
      try JSONInput.check(Array(data), name: cases, remedy: "Correct it.")
      guard let ruleset = firestoreOrStorage else { return try testDatabase(Array(data)) }
      let table: RulesTestFile
      do { table = try RulesTestFile(json: Array(data), service: file.service) } catch {
        throw CommandError("\(cases): \(error)")
      }
      let seen = SecurityRules.Coverage()
      let results = table.run(ruleset, coverage: seen)
      for result in results where result.isAsExpected {
        let lines = result.decision.debugLines(in: ruleset)
        guard !lines.isEmpty else { continue }
        Terminal.printLine("debug   \(result.name)")
        Terminal.print("        " + lines.joined(separator: "\n").indented(by: 8))
      }
      for result in results where !result.isAsExpected {
        Terminal.printLine("FAILED  \(result.name): expected \(result.expected.rawValue)")
        let text = result.decision.text(for: result.method, in: ruleset)
        Terminal.print("        " + text.indented(by: 8))
      }
      if let coverage {
        let page = ruleset.coverageHTML(seen)
        do { try page.write(toFile: coverage, atomically: true, encoding: .utf8) } catch {
          throw CommandError("\(coverage) cannot be written: \(error.localizedDescription)")
        }
      }
      let failed = results.count { !$0.isAsExpected }
      Terminal.print("\(results.count - failed) of \(results.count) cases are as expected.")
      guard failed == 0 else { throw ExitCode.failure }
    }
  }

  struct Explain: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show what the running suite's rules decided, the latest first, and why."
    )

    @OptionGroup var suite: SuiteLocation

    @Flag(help: "Only what was refused.")
    var denied = false

    @Option(help: "At most so many decisions, of the last 200.")
    var limit = 10

    @Flag(help: "Print the decisions as JSON.")
    var json = false

    func validate() throws {
      guard limit > 0 else { throw ValidationError("--limit is a number of decisions above 0.") }
    }

    private static let nothingAsked = """
      The rules were not asked yet. They never are for servers and functions, nor in a suite \
      without firestore.rules or with --no-rules.
      """

    func run() async throws {
      let client = try await suite.connect()
      let path = "/hearth/v1/rules/decisions?denied=\(denied)&limit=\(limit)"
      if json {
        return Terminal.print(json: try await client.data("GET", path))
      }
      let decisions = try await client.get(path, as: [RuleDecisionDescription].self)
      guard !decisions.isEmpty else {
        return Terminal.print(denied ? "Nothing was refused." : Self.nothingAsked)
      }
      for decision in decisions {
        let word = decision.isAllowed ? "allowed" : "denied"
        Terminal.printLine("\(decision.time)  \(decision.method) \(decision.path)  \(word)")
        Terminal.printLine("  request.auth = \(decision.auth)")
        Terminal.print("  " + decision.text.indented(by: 2))
      }
    }
  }

  struct Coverage: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show what the running suite's rules have been asked since they were loaded.",
      discussion: """
          hearth rules coverage
          hearth rules coverage --html coverage.html     the file with the value of each expression
          hearth rules coverage --json                   Firebase's JSON
        """
    )

    @OptionGroup var suite: SuiteLocation

    @Option(help: "The database's id.")
    var database = "(default)"

    @Option(
      help: ArgumentHelp("Write a page with the values of each expression.", valueName: "file")
    )
    var html: String?

    @Flag(help: "Print JSON, as Firebase's emulator has it.")
    var json = false

    func validate() throws {
      guard html == nil || !json else { throw ValidationError("Give --html or --json, not both.") }
    }

    func run() async throws {
      let client = try await suite.connect()
      let format = json ? "json" : html == nil ? "summary" : "html"
      let body = try await client.data(
        "GET",
        "/hearth/v1/rules/coverage?format=\(format)&database=\(OutboundURL.encode(database))"
      )
      guard !json else { return Terminal.print(json: body) }
      guard let html else {
        return Terminal.print(
          Self.text(try CoverageSummary(decodingJSON: body))
        )
      }
      do { try Data(body).write(to: URL(filePath: html), options: .atomic) } catch {
        throw CommandError("\(html) cannot be written: \(error.localizedDescription)")
      }
      Terminal.print("Written to \(html).")
    }

    /// Formats the conditions and what they came out as.
    private static func text(_ summary: CoverageSummary) -> String {
      let rows = summary.rules.map { rule in
        let counts = [rule.isTrue, rule.isFalse, rule.failed].map { $0.map(String.init) ?? "–" }
        return ["\(rule.line)", rule.methods] + counts + [rule.outcome, rule.condition]
      }
      let table = Terminal.table(
        ["LINE", "METHODS", "TRUE", "FALSE", "ERROR", "OUTCOME", "CONDITION"],
        rows
      )
      return "\(summary.text)\n\n\(table)\n\nTRUE, FALSE and ERROR count requests. "
        + "--html FILE shows each expression."
    }
  }
}
