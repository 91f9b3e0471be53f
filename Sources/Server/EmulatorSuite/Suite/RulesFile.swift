import Foundation
import Logging
import SecurityRules
import ServiceLifecycle
import StatusCodes

/// A service that takes its security rules from a file.
protocol RulesFileTarget: Sendable {
  /// The name of the service in the middle of a sentence.
  var service: String { get }
  /// The setting of `firebase.json` that names the file.
  var setting: String { get }
  /// The text of the rules in force; nil if there are none.
  var source: String? { get }

  /// Puts the text of a file into force, also for open listeners.
  ///
  /// Throws the mistakes, each with the path, the line and the column.
  func load(_ content: String, from path: String) async throws(RulesFileError)
}

/// The service that loads security rules from a file, again at each change.
///
/// A change is in force half a second later. If the file is invalid or empty, the previous rules
/// stay, and the log reports the problem. Without a file, everything is allowed.
struct RulesFile: Service {
  let path: String
  let target: any RulesFileTarget
  let logger: Logger

  /// The time between two reads of the file; a change must be seen in two consecutive reads.
  private static let interval = Duration.milliseconds(250)

  /// Loads the file for the first time.
  ///
  /// Throws if the file is missing or invalid, so that nothing is served without its rules.
  func load() async throws {
    switch look() {
    case .content(let content):
      try await target.load(content, from: path)
      logger.notice(
        "Security rules decide on requests",
        metadata: ["file": "\(path)", "service": "\(target.service)"]
      )
    case .unreadable(let reason):
      throw RulesFileError(description: "\(path) cannot be read: \(reason)")
    case .missing:
      throw StatusError(
        .failedPrecondition,
        "There is no \(path), which firebase.json names as \(target.setting). Write these rules, "
          + "correct firebase.json, or use --no-rules to allow everything."
      )
    }
  }

  func run() async throws {
    try await cancelWhenGracefulShutdown {
      // A change since the first load is detected as well.
      var watch = RulesFileWatch(target.source.map { .content($0) } ?? .missing)
      while true {
        try await Task.sleep(for: Self.interval)
        switch watch.looked(look()) {
        case .wait: break
        // A sentence for the person who has just saved the file.
        case .report(let problem): logger.error("\(path) \(problem) \(outcome)")
        case .load(let content):
          do {
            try await target.load(content, from: path)
            logger.notice("The security rules have changed", metadata: ["file": "\(path)"])
          } catch {
            // The error is the compiler's text, with the place where an editor opens the file.
            logger.error("\(error) \(outcome)")
          }
        }
      }
    }
  }

  /// A sentence about the rules that apply after a file could not be used.
  private var outcome: String {
    target.source == nil
      ? "No rules are in force, so everybody may read and write everything in \(target.service)."
      : "The former rules stay."
  }

  private func look() -> RulesFileWatch.Look {
    let path = URL(filePath: path).resolvingSymlinksInPath().path
    guard FileManager.default.fileExists(atPath: path) else { return .missing }
    do {
      // Opening a pipe would block until there is a writer.
      let type = try FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType
      guard type == .typeRegular else { return .unreadable("it is not a file.") }
      let file = try FileHandle(forReadingFrom: URL(filePath: path))
      defer { try? file.close() }  // Nothing was written that could be lost.
      // One additional byte shows that the file is too large.
      let data = try file.read(upToCount: RulesLimits.fileBytesMax + 1) ?? Data()
      guard data.count <= RulesLimits.fileBytesMax else {
        return .unreadable("it has more than \(RulesLimits.fileBytesMax) bytes.")
      }
      guard let text = String(data: data, encoding: .utf8) else {
        return .unreadable("it is not text in UTF-8.")
      }
      return .content(text)
    } catch {
      return .unreadable(error.localizedDescription)
    }
  }
}

/// The problems in a rules file, with path, lines and columns.
struct RulesFileError: Error, CustomStringConvertible {
  let description: String
}
