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
      let wait = DeliveryRetries.events.backOff.delay(afterFailures: next.crashes)
      next.postpone(to: now.advanced(by: wait * (1 - random / 2)), error, at: now)
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

  private func fail(
    _ next: inout Delivery,
    _ error: String,
    _ advice: RetryAdvice?,
    _ retry: DeliveryRetries,
    _ now: Timestamp
  ) {
    next.attempts += 1
    let growing = retry.backOff.delay(afterFailures: next.attempts)
    let advised: Duration
    switch advice {
    case .never:
      next.end(retry.attemptsMax == 1 ? .failed : .dead, error, now)
      return
    case .after(let seconds):
      advised = max(growing, .seconds(min(seconds, Self.adviceSecondsMax)))
    case .exactlyAfter(let seconds):
      let bounds = Self.exactAdviceSecondsMin...Self.adviceSecondsMax
      advised = .seconds(min(max(seconds, bounds.lowerBound), bounds.upperBound))
    case nil: advised = growing
    }
    guard retry.attemptsMax != 1 || retry.needsBothBounds && retry.window != nil else {
      next.end(.failed, error, now)
      return
    }
    // The window of a document's event begins at the event, any other window at the first attempt.
    var start = next.firstAttemptTime ?? now
    if case .document = next.source { start = next.commitTime }
    let elapsed = now.duration(since: start)
    func allows(_ wait: Duration) -> Bool {
      retry.allowsRetry(attempts: next.attempts, elapsed: elapsed + wait)
    }
    let wait: Duration
    if allows(advised) {
      wait = advised
    } else if allows(min(growing, advised)), let window = retry.window {
      // An event never loses its last attempt to long advice: the attempt moves to the window's
      // end.
      wait = window - elapsed
    } else {
      next.end(.dead, "\(error) Given up after \(next.attempts) attempts.", now)
      return
    }
    next.postpone(to: now.advanced(by: wait), error, at: now)
  }

  /// The latest retry that a handler may request, one day ahead: production's retry window.
  private static let adviceSecondsMax = 86_400.0
  /// The earliest retry that a handler may request in place of the growing wait.
  ///
  /// It equals the first wait of events.
  private static let exactAdviceSecondsMin = 1.0
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
