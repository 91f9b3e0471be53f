package import DocumentModel
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The time of a suite: the machine's time, until somebody lets it jump ahead.
///
/// Documents, deliveries and schedules share it, so that after a jump they all agree on the time. A
/// jump never sets it back; the machine's own clock may.
package final class VirtualTime: Sendable {
  private let jumped = Mutex(Duration.zero)
  private let start: Timestamp?

  /// The machine's time.
  package init() {
    start = nil
  }

  /// A time that moves only by its jumps.
  package init(standingAt start: Timestamp) {
    self.start = start
  }

  /// The time as documents and events have it.
  package var now: Timestamp { machineTime.advanced(by: jumped.withLock { $0 }) }

  /// How far this time is ahead of the machine's, or of its fixed start.
  package var offset: Duration { jumped.withLock { $0 } }

  /// Jumps ahead to a time, unless that time is past.
  package func advance(to time: Timestamp) {
    jumped.withLock { jumped in
      jumped += max(.zero, time.duration(since: machineTime.advanced(by: jumped)))
    }
  }

  private var machineTime: Timestamp { start ?? Self.ofMachine }

  /// The machine's time, at this moment.
  package static var ofMachine: Timestamp {
    Timestamp(microseconds: Int64(Date().timeIntervalSince1970 * 1_000_000))
  }
}
