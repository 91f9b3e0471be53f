import ArgumentParser
import DatabaseRules
import Foundation
import Identifiers

/// The commands of `hearth rules` with `--database`.
extension Rules.File {
  /// Says that the rules of the Realtime Database are in order; throws their first error.
  func checkDatabase() throws {
    Terminal.print("\(try readDatabase().name) is in order.")
  }

  /// Reads the rules of the Realtime Database; throws their first error with its place.
  func readDatabase() throws -> DatabaseRuleset {
    let files = try ProjectFiles.ofWorkingFolder()
    let project = files.defaultProject ?? ProjectID.standard
    let named = Set(try files.databaseRules(of: project).values).sorted()
    guard let path = path ?? (named.count == 1 ? named.first : nil) else {
      throw CommandError(
        named.isEmpty
          ? "There is no database.rules.json in \(files.folder); name a file with --rules."
          : "firebase.json names several files; choose one with --rules: "
            + named.joined(separator: ", ")
      )
    }
    guard FileManager.default.fileExists(atPath: path) else {
      throw CommandError("There is no \(path). Write these rules, or name a file with --rules.")
    }
    let content: String
    do { content = try String(contentsOf: URL(filePath: path), encoding: .utf8) } catch {
      throw CommandError("\(path) cannot be read: \(error.localizedDescription)")
    }
    do throws(DatabaseRulesError) {
      return try DatabaseRuleset(parsing: content, name: URL(filePath: path).lastPathComponent)
    } catch {
      throw CommandError("\(path):\(error.line):\(error.column): error: \(error.message)")
    }
  }
}

extension Rules.Test {
  /// Asks the rules of the Realtime Database the cases.
  func testDatabase(_ json: [UInt8]) throws {
    let ruleset = try file.readDatabase()
    let table: DatabaseRulesTestFile
    do throws(DatabaseRulesTestFile.MistakeError) {
      table = try DatabaseRulesTestFile(json: json)
    } catch {
      throw CommandError("\(cases): \(error)")
    }
    let seen = DatabaseCoverage()
    let results = table.run(ruleset, coverage: seen)
    let failed = results.filter { !$0.isAsExpected }
    for result in failed {
      let expected = result.isExpectedToAllow ? "allow" : "deny"
      Terminal.printLine("FAILED  \(result.name): expected \(expected)")
      Terminal.print("        " + result.decision.text(file: ruleset.name).indented(by: 8))
    }
    if let coverage {
      let text = Self.text(ruleset.rules(in: seen)) + "\n"
      do { try text.write(toFile: coverage, atomically: true, encoding: .utf8) } catch {
        throw CommandError("\(coverage) cannot be written: \(error.localizedDescription)")
      }
    }
    Terminal.print("\(results.count - failed.count) of \(results.count) cases are as expected.")
    guard failed.isEmpty else { throw ExitCode.failure }
  }

  /// Formats the rules, what they came out as, and their parts that were never evaluated.
  private static func text(_ rules: [DatabaseRuleCoverage]) -> String {
    let rows = rules.map { rule in
      let counts = [rule.isTrue, rule.isFalse, rule.failed].map { $0.map(String.init) ?? "–" }
      return ["\(rule.line)", "\(rule.kind.rawValue) of \(rule.path)"] + counts
        + [rule.condition, rule.skipped.joined(separator: "; ")]
    }
    return Terminal.table(
      ["LINE", "RULE", "TRUE", "FALSE", "ERROR", "CONDITION", "NEVER EVALUATED"],
      rows
    )
  }
}
