import EventLog
import Synchronization

/// A counter of the events that wait for the first deployment.
///
/// No other part reads these events before the deployment.
final class EventsBeforeDeployment: Sendable {
  private let tailer: EventTailer
  private let waiting = Mutex(0)

  init(tailer: EventTailer) {
    self.tailer = tailer
  }

  /// The number of events counted so far; 0 once functions are deployed.
  var count: Int { waiting.withLock { $0 } }

  /// Counts the events after a sequence until cancelled.
  ///
  /// The count is then reset to zero.
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
