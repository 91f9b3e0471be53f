import DocumentModel
import Foundation
import Logging
import SecurityRules

/// The words for security rules that keep nobody from anything.
enum RulesNotice {
  static let openDatabase =
    "There is no database.rules.json, so everybody may read and write everything in the Realtime "
    + "Database."

  /// Returns the notice of a start; nil if the rules deny something, or cannot be loaded.
  ///
  /// `file` is nil for a project without rules.
  static func atStart(file: String?, isOff: Bool) -> (text: String, level: Logger.Level)? {
    guard !isOff else { return (Rules.offNote, .warning) }
    guard let file else {
      return (
        "There is no firestore.rules, so everybody may read and write everything in Firestore.",
        .notice
      )
    }
    // The suite itself reports a file that is missing or has mistakes.
    guard let content = try? String(contentsOfFile: file, encoding: .utf8) else { return nil }
    return openness(name: URL(filePath: file).lastPathComponent, content).map { ($0, .warning) }
  }

  /// Returns a sentence about rules that allow everything; nil for all other rules.
  static func openness(name: String, _ content: String) -> String? {
    // Rules with mistakes are not in force.
    guard let rules = try? Ruleset(name: name, content: content),
      let open = rules.openAccess(at: now)
    else { return nil }
    let who = open == .everyone ? "everybody" : "every user who is signed in"
    return "\(name) allows \(who) to read and write everything in Firestore."
  }

  private static var now: Timestamp {
    Timestamp(microseconds: Int64(Date().timeIntervalSince1970 * 1_000_000))
  }
}
