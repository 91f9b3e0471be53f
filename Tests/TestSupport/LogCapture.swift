package import Logging
import Synchronization

/// A collector of log entries that tests inspect.
package final class LogCapture: Sendable {
  /// A log entry.
  package struct Entry: Sendable {
    package var level: Logger.Level
    package var message: String
    package var metadata: [String: String]
    package var error: String?
  }

  private let lines = Mutex<[Entry]>([])

  /// Creates an empty capture.
  package init() {}

  /// All entries so far, oldest first.
  package var entries: [Entry] { lines.withLock { $0 } }

  /// Returns the entries at `level` or above.
  package func entries(atLeast level: Logger.Level) -> [Entry] {
    entries.filter { $0.level >= level }
  }

  /// Creates a logger that writes only to this capture.
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
