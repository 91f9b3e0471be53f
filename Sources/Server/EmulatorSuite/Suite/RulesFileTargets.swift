import DatabaseRules
import DatabaseTree
import DocumentModel
import DocumentStore
import FirestoreEmulator
import Foundation
import Logging
import SecurityRules
import StatusCodes

/// Firestore as the target of a rules file.
///
/// The rules apply to all projects, except projects and databases with uploaded rules of their own.
struct FirestoreRulesTarget: RulesFileTarget {
  /// The suite's project; a change of the file also replaces its uploaded rules.
  let project: String
  let policy: RulesPolicy
  let store: DocumentDatabase
  let logger: Logger

  var service: String { "Firestore" }
  var setting: String { "firestore.rules" }

  var source: String? {
    policy.rules(of: DatabaseName(project: project))?.ruleset.file.content
  }

  func load(_ content: String, from path: String) async throws(RulesFileError) {
    do {
      let ruleset = try Ruleset(name: URL(filePath: path).lastPathComponent, content: content)
      // A compiler's line, whose place editors and terminals open.
      for issue in ruleset.issues { logger.warning("\(path):\(issue.text)") }
      policy.load(ruleset, for: .everyProject, replacing: .project(project))
      store.recheckListeners()
    } catch {
      throw RulesFileError(
        description: error.issues.map { "\(path):\($0.text)" }.joined(separator: "\n")
      )
    }
  }
}

/// Instances of the Realtime Database as the target of a rules file.
struct DatabaseRulesTarget: RulesFileTarget {
  /// At least one instance.
  private let instances: [DatabaseInstance]

  init(_ names: [String], of database: RealtimeDatabase) throws(StatusError) {
    do {
      instances = try names.map { name throws(DatabaseError) in try database.instance(name) }
    } catch {
      throw .invalidArgument(
        "firebase.json has rules for \(names.joined(separator: ", ")): \(error.message)"
      )
    }
  }

  var service: String { "the Realtime Database" }
  var setting: String { "database.rules" }
  var source: String? { instances.first?.rules?.source }

  func load(_ content: String, from path: String) async throws(RulesFileError) {
    let rules: DatabaseRuleset
    do {
      rules = try DatabaseRuleset(parsing: content, name: URL(filePath: path).lastPathComponent)
    } catch {
      throw RulesFileError(
        description: "\(path):\(error.line):\(error.column): error: \(error.message)"
      )
    }
    for instance in instances { await instance.setRules(rules) }
  }
}
