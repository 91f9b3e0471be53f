import DocumentModel
import Synchronization
import TriggerDelivery

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The suite's time: it passes as time does, and can jump ahead.
///
/// Documents and deliveries share it, so that after a jump what is written is as late as what is
/// delivered.
final class SuiteTime: Sendable {
  private let start = ContinuousClock.now
  private let startTime = Timestamp(
    microseconds: Int64(Date().timeIntervalSince1970 * 1_000_000)
  )
  private let jumped = Mutex(Duration.zero)

  /// The time as documents and events have it.
  var now: Timestamp {
    startTime.advanced(by: start.duration(to: .now) + jumped.withLock { $0 })
  }

  /// Jumps ahead to a time, unless it is past already.
  func advance(to time: Timestamp) {
    jumped.withLock { jumped in
      let now = startTime.advanced(by: start.duration(to: .now) + jumped)
      jumped += max(.zero, time.duration(since: now))
    }
  }
}
