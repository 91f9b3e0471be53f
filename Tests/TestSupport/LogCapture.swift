package import Logging
import Synchronization

/// Keeps log lines, so that a test can look at them.
package final class LogCapture: Sendable {
  /// One line.
  package struct Entry: Sendable {
    package var level: Logger.Level
    package var message: String
    package var metadata: [String: String]
    package var error: String?
  }

  private let lines = Mutex<[Entry]>([])

  /// An empty capture.
  package init() {}

  /// Everything logged so far, oldest first.
  package var entries: [Entry] { lines.withLock { $0 } }

  /// The lines at `level` or above.
  package func entries(atLeast level: Logger.Level) -> [Entry] {
    entries.filter { $0.level >= level }
  }

  /// A logger that writes only to this capture.
  package func logger(level: Logger.Level = .trace) -> Logger {
    var logger = Logger(label: "test") { _ in Handler(capture: self) }
    logger.logLevel = level
    return logger
  }

  private struct Handler: LogHandler {
    let capture: LogCapture
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    var logLevel: Logger.Level = .trace

    init(capture: LogCapture) {
      self.capture = capture
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      let merged = metadata.merging(event.metadata ?? [:]) { $1 }
      let entry = Entry(
        level: event.level,
        message: event.message.description,
        metadata: merged.mapValues(\.description),
        error: event.error.map { String(describing: $0) }
      )
      capture.lines.withLock { $0.append(entry) }
    }
  }
}

extension Logger {
  /// A logger that drops everything.
  package static var silent: Logger {
    Logger(label: "silent") { _ in SwiftLogNoOpLogHandler() }
  }
}
