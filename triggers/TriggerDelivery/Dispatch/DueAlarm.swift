import DocumentModel
import Synchronization

/// An alarm that rings at the earliest of the times for which it was set.
///
/// The times are those of `now`, which may move differently from the clock on which the alarm
/// sleeps.
final class DueAlarm: Sendable {
  private let clock: any Clock<Duration>
  private let now: @Sendable () -> Timestamp
  private let ring: @Sendable () -> Void
  /// The times for which a task sleeps.
  private let sleeping = Mutex<Set<Timestamp>>([])

  /// Creates an alarm that calls `ring` on any thread.
  init(
    clock: any Clock<Duration>,
    now: @escaping @Sendable () -> Timestamp,
    ring: @escaping @Sendable () -> Void
  ) {
    self.clock = clock
    self.now = now
    self.ring = ring
  }

  /// Returns the closure that the caller must run for the alarm to ring by `due`.
  ///
  /// Returns nil if the alarm rings by then in any case. The alarm may ring too early, and it rings
  /// when the task is cancelled.
  func set(_ due: Timestamp) -> (@Sendable () async -> Void)? {
    let isNew = sleeping.withLock { sleeping in
      sleeping.allSatisfy({ due < $0 }) && sleeping.insert(due).inserted
    }
    guard isNew else { return nil }
    return { [self] in
      // The system clock may be set forward during this sleep.
      let wait = min(due.duration(since: now()), Self.sleepMax)
      if wait > .zero { try? await clock.sleep(for: wait) }
      sleeping.withLock { _ = $0.remove(due) }
      ring()
    }
  }

  /// Forgets all times for which the alarm was set, because `now` has jumped.
  func reset() {
    sleeping.withLock { $0 = [] }
  }

  private static let sleepMax = Duration.seconds(30)
}
