package import DocumentModel
package import Foundation
import Synchronization

/// A wall clock that tests set; it stands still, or goes on by a step at each reading.
package final class WallClock: Sendable {
  private let state: Mutex<(microseconds: Int64, step: Int64)>

  /// Creates a clock, by default at a time in 2023.
  package init(secondsSince1970: Int64 = 1_700_000_000, step: Duration = .zero) {
    state = Mutex((secondsSince1970 * 1_000_000, Self.microseconds(step)))
  }

  /// Reads the clock, which first goes on by its step.
  package func now() -> Timestamp {
    state.withLock { state in
      state.microseconds += state.step
      return Timestamp(microseconds: state.microseconds)
    }
  }

  /// Reads the clock as a date.
  package func date() -> Date {
    Date(timeIntervalSince1970: Double(now().microseconds) / 1_000_000)
  }

  /// Sets the clock and stops it.
  package func stop(at time: Timestamp) { state.withLock { $0 = (time.microseconds, 0) } }

  /// Sets the clock forward, or back by a negative duration.
  package func advance(by duration: Duration) {
    state.withLock { $0.microseconds += Self.microseconds(duration) }
  }

  private static func microseconds(_ duration: Duration) -> Int64 {
    Int64(duration / .microseconds(1))
  }
}
