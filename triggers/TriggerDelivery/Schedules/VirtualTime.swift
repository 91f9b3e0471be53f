package import DocumentModel
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The time of a suite: the system time until a request advances it.
///
/// Documents, deliveries and schedules share it, so that they all agree on the time after a jump. A
/// jump never sets the time back, but the system clock may.
package final class VirtualTime: Sendable {
  private let jumped = Mutex(Duration.zero)
  private let start: Timestamp?

  /// Creates a time that follows the system clock.
  package init() {
    start = nil
  }

  /// Creates a time that moves only by its jumps.
  package init(standingAt start: Timestamp) {
    self.start = start
  }

  /// The current time for documents and events.
  package var now: Timestamp { machineTime.advanced(by: jumped.withLock { $0 }) }

  /// The lead of this time over the system time or its fixed start.
  package var offset: Duration { jumped.withLock { $0 } }

  /// Advances to a time unless that time is past.
  package func advance(to time: Timestamp) {
    jumped.withLock { jumped in
      jumped += max(.zero, time.duration(since: machineTime.advanced(by: jumped)))
    }
  }

  private var machineTime: Timestamp { start ?? Self.ofMachine }

  /// The current system time.
  package static var ofMachine: Timestamp {
    Timestamp(microseconds: Int64(Date().timeIntervalSince1970 * 1_000_000))
  }
}
