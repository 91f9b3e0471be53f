import EventLog
import Synchronization

/// Counts the events that wait for the first deployment; nothing else looks at them before it.
final class EventsBeforeDeployment: Sendable {
  private let tailer: EventTailer
  private let waiting = Mutex(0)

  init(tailer: EventTailer) {
    self.tailer = tailer
  }

  /// The events counted so far; none once functions are deployed.
  var count: Int { waiting.withLock { $0 } }

  /// Counts the events after a sequence until cancelled, which makes the count zero again.
  func run(after sequence: UInt64) async throws {
    defer { waiting.withLock { $0 = 0 } }
    for try await entries in tailer.entries(after: sequence) {
      let new = entries.reduce(0) { count, entry in
        let record = entry.record
        let changes = record.purpose == .events ? record.changes.count : 0
        return count + changes + record.occurrences.count
      }
      waiting.withLock { $0 += new }
    }
  }
}
