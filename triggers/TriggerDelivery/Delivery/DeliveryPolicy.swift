package import DocumentModel
package import FlowControl
package import Invocation

/// The rules that decide the outcome of a delivery after an attempt.
///
/// They use neither a clock nor storage.
package struct DeliveryPolicy: Sendable {
  /// The number of successive crashes after which an event is dead.
  ///
  /// Only crashes of workers that ran nothing else count.
  package var crashesMax: Int
  /// The wait before an attempt that the fault mode has postponed.
  package var deferral: Duration
  /// The waits between attempts to start a function that has no worker.
  package var startBackOff: BackOff
  /// The time that a due event waits for a function without a worker; production's event retention.
  package var startWindow: Duration
  /// The time that deliveries of an undeployed function wait; by default as long as for a worker.
  package var undeployedWindow: Duration

  /// Creates a policy for all functions.
  ///
  /// The bounds of a single function are in its `DeliveryRetries`.
  package init(
    crashesMax: Int = 3,
    deferral: Duration = .milliseconds(500),
    startBackOff: BackOff = BackOff(
      initial: .milliseconds(500),
      maximum: .seconds(30),
      jitter: 0.2
    ),
    startWindow: Duration = .seconds(24 * 3600),
    undeployedWindow: Duration = .seconds(24 * 3600)
  ) {
    self.crashesMax = crashesMax
    self.deferral = deferral
    self.startBackOff = startBackOff
    self.startWindow = startWindow
    self.undeployedWindow = undeployedWindow
  }

  /// The outcome of an attempt.
  package enum Outcome: Sendable, Hashable {
    /// The handler responded with this successful status.
    case succeeded(status: Int)
    /// The handler responded with a failing status, or its event cannot be passed to it.
    case handlerFailed(String, status: Int?, advice: RetryAdvice?)
    /// The handler did not respond in time.
    case timedOut(String)
    /// The worker crashed without a response and ran nothing else.
    case crashed(String)
    /// The attempt does not count, and another one begins after the deferral.
    case putOff(String)
    /// No worker accepted the delivery for longer than `startWindow`.
    case neverStarted(String)

    fileprivate var isUnanswered: Bool {
      switch self {
      case .crashed, .putOff: true
      case .succeeded, .handlerFailed, .timedOut, .neverStarted: false
      }
    }
  }

  /// Returns the delivery after an attempt that began at `start` and ended at `now`.
  ///
  /// `random`, from 0 up to 1, shortens the wait after a crash by up to a half. Deliveries that
  /// crashed at the same time are then not retried at the same time.
  package func settle(
    _ delivery: Delivery,
    _ outcome: Outcome,
    retry: DeliveryRetries,
    start: Timestamp,
    now: Timestamp,
    random: Double = 0
  ) -> Delivery {
    var next = delivery
    next.isUnanswered = outcome.isUnanswered
    switch outcome {
    case .neverStarted(let error):
      next.end(.dead, "\(error) No worker could be had for \(startWindow).", now)
      return next
    case .putOff(let error):
      next.postpone(to: now.advanced(by: deferral), error, at: now)
      return next
    default: break
    }
    next.firstAttemptTime = delivery.firstAttemptTime ?? start
    switch outcome {
    case .succeeded(let status):
      next.attempts += 1
      next.executions += 1
      next.lastStatus = status
      next.end(.succeeded, nil, now)
    case .crashed(let error) where !delivery.isTask:
      next.crashes += 1
      guard next.crashes < crashesMax else {
        next.end(.dead, "\(error) It crashed its worker \(next.crashes) times in a row.", now)
        break
      }
      let wait = Self.crashBackOff.delay(afterFailures: next.crashes, random: random)
      next.postpone(to: now.advanced(by: wait), error, at: now)
    case .crashed(let error):
      // Every attempt of a task counts, regardless of how it ended.
      next.crashes += 1
      next.lastStatus = nil
      fail(&next, error, nil, retry, now)
    case .handlerFailed(let error, let status, let advice):
      next.crashes = 0
      next.lastStatus = status
      if let status, !(500...599).contains(status) { next.executions += 1 }
      fail(&next, error, advice, retry, now)
    case .timedOut(let error):
      // The crash count stays: the worker may have hung while it crashed.
      next.lastStatus = 504
      fail(&next, error, nil, retry, now)
    case .putOff, .neverStarted: break
    }
    return next
  }
}

extension Timestamp {
  /// Returns this time moved by a duration, rounded toward zero to the microsecond.
  package func advanced(by duration: Duration) -> Timestamp {
    let (seconds, attoseconds) = duration.components
    return Timestamp(
      microseconds: microseconds + seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    )
  }

  /// Returns the time elapsed from `earlier` to this time.
  package func duration(since earlier: Timestamp) -> Duration {
    .microseconds(microseconds - earlier.microseconds)
  }
}
