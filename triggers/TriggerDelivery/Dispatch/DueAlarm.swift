import DocumentModel
import Synchronization

/// Rings when the earliest of the times has come that it was set to.
///
/// The times are `now`'s, which may move differently from the clock that the alarm sleeps on.
final class DueAlarm: Sendable {
  private let clock: any Clock<Duration>
  private let now: @Sendable () -> Timestamp
  private let ring: @Sendable () -> Void
  /// The times for which a task sleeps.
  private let sleeping = Mutex<Set<Timestamp>>([])

  /// An alarm that calls `ring`, on any thread.
  init(
    clock: any Clock<Duration>,
    now: @escaping @Sendable () -> Timestamp,
    ring: @escaping @Sendable () -> Void
  ) {
    self.clock = clock
    self.now = now
    self.ring = ring
  }

  /// What the caller must run for the alarm to ring by `due`; nil when it rings by then anyway.
  ///
  /// It may ring too early, and when the task is cancelled.
  func set(_ due: Timestamp) -> (@Sendable () async -> Void)? {
    let isNew = sleeping.withLock { sleeping in
      sleeping.allSatisfy({ due < $0 }) && sleeping.insert(due).inserted
    }
    guard isNew else { return nil }
    return { [self] in
      // The machine's clock may be put forward during this sleep.
      let wait = min(due.duration(since: now()), Self.sleepMax)
      if wait > .zero { try? await clock.sleep(for: wait) }
      sleeping.withLock { _ = $0.remove(due) }
      ring()
    }
  }

  /// Forgets what it was set to, because `now` has jumped.
  func reset() {
    sleeping.withLock { $0 = [] }
  }

  private static let sleepMax = Duration.seconds(30)
}
