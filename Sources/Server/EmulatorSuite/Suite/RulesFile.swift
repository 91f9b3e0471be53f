import DocumentStore
import FirestoreEmulator
import Foundation
import Logging
import SecurityRules
import ServiceLifecycle

/// The file of Firestore's security rules, which may change while the suite runs.
///
/// A change is in force half a second later, also for those who listen. A broken file leaves the
/// former rules, and the log says what is wrong. Without a file everything is allowed.
struct RulesFile: Service {
  let path: String
  /// The project whose requests the rules decide; others' documents are open.
  let project: String
  let policy: RulesPolicy
  let store: DocumentDatabase
  let logger: Logger

  private static let interval = Duration.milliseconds(500)

  /// Reads the file for the first time; throws what is wrong with it, so that nothing is served
  /// without the rules that were meant.
  func load() throws {
    guard let content = try contents() else {
      return logger.warning(
        "There is no \(path), so everybody may read and write everything in Firestore"
      )
    }
    try load(content)
  }

  func run() async throws {
    try await cancelWhenGracefulShutdown {
      // The file was read at the start; what cannot be read now is read again.
      var last = try? contents()
      var isMissed = last == nil
      while true {
        try await Task.sleep(for: Self.interval)
        guard let present = try? contents() else {
          if !isMissed { logger.error("\(path) cannot be read. The former rules stay.") }
          isMissed = true
          continue
        }
        isMissed = false
        guard present != last else { continue }
        last = present
        do {
          try load(present)
          store.recheckListeners()
          logger.notice("The security rules have changed", metadata: ["file": "\(path)"])
        } catch {
          logger.error("\(error) The former rules stay.")
        }
      }
    }
  }

  /// Nil when there is no file.
  private func contents() throws -> String? {
    guard FileManager.default.fileExists(atPath: path) else { return nil }
    return try String(contentsOf: URL(filePath: path), encoding: .utf8)
  }

  private func load(_ content: String) throws {
    do {
      let ruleset = try Ruleset(name: URL(filePath: path).lastPathComponent, content: content)
      for issue in ruleset.issues { logger.warning("\(path):\(issue.text)") }
      policy.load(ruleset, for: .project(project))
      logger.notice("Security rules decide on Firestore's requests", metadata: ["file": "\(path)"])
    } catch {
      throw RulesFileError(
        description: error.issues.map { "\(path):\($0.text)" }.joined(separator: "\n")
      )
    }
  }
}

/// What is wrong with a file of rules, with its path, lines and columns.
struct RulesFileError: Error, CustomStringConvertible {
  let description: String
}
