import DocumentModel
import FlowControl

extension Alarm<Timestamp> {
  /// Creates an alarm for times of `now`, which may move differently from `clock`.
  convenience init(clock: any Clock<Duration>, now: @escaping @Sendable () -> Timestamp) {
    self.init { due in
      let wait = min(due.duration(since: now()), sleepMax)
      if wait > .zero { try await clock.sleep(for: wait) }
    }
  }
}

/// The longest sleep, because the system clock may be set forward during it.
private let sleepMax = Duration.seconds(30)
