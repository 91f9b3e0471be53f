package import DocumentModel
package import Invocation
package import RuntimeSupport

/// What becomes of a delivery after a try: pure decisions, no clock, no storage.
package struct DeliveryPolicy: Sendable {
  /// The deaths in a row of workers that ran nothing else, which make an event dead.
  package var crashesMax: Int
  /// The wait before a try that the fault mode has put off.
  package var deferral: Duration
  /// The waits before a function is tried again that has no worker.
  package var startBackOff: BackOff
  /// How long a due event waits for a function that never has a worker; production's retention.
  package var startWindow: Duration
  /// How long deliveries of a function wait that is not deployed, as long as for a worker.
  package var undeployedWindow: Duration

  /// A policy for every function; the other bounds are in the function's `DeliveryRetries`.
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

  /// How a try ended.
  package enum Outcome: Sendable, Hashable {
    /// The handler answered with this success.
    case succeeded(status: Int)
    /// The handler answered with a failing status, or its event cannot be given to it.
    case handlerFailed(String, status: Int?, advice: RetryAdvice?)
    /// The handler did not answer in time.
    case timedOut(String)
    /// The worker died without an answer, and ran nothing else.
    case crashed(String)
    /// The try does not count, and the next one begins after the deferral.
    case putOff(String)
    /// No worker took the delivery for longer than `startWindow`.
    case neverStarted(String)

    fileprivate var isUnanswered: Bool {
      switch self {
      case .crashed, .putOff: true
      case .succeeded, .handlerFailed, .timedOut, .neverStarted: false
      }
    }
  }

  /// The delivery after a try that began at `start` and ended at `now`.
  ///
  /// `random`, from 0 up to 1, shortens the wait after a crash by up to a half, so that what crashed
  /// at one time does not come again at one time.
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
      // Every attempt of a task counts, however it ended.
      next.crashes += 1
      next.lastStatus = nil
      fail(&next, error, nil, retry, now)
    case .handlerFailed(let error, let status, let advice):
      next.crashes = 0
      next.lastStatus = status
      if let status, !(500...599).contains(status) { next.executions += 1 }
      fail(&next, error, advice, retry, now)
    case .timedOut(let error):
      // The crashes stay: the worker may have stood still while it crashed.
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
    // The window of a document's event begins when it happened, any other at the first try.
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
      // Long advice costs no event its last try, which then comes when the window ends.
      wait = window - elapsed
    } else {
      next.end(.dead, "\(error) Given up after \(next.attempts) attempts.", now)
      return
    }
    next.postpone(to: now.advanced(by: wait), error, at: now)
  }

  /// The latest retry that a handler may ask for, one day ahead: production's retry window.
  private static let adviceSecondsMax = 86_400.0
  /// The earliest retry in place of the growing wait, the first wait of events.
  private static let exactAdviceSecondsMin = 1.0
}

extension Timestamp {
  /// This time moved by a duration, rounded down to the microsecond.
  package func advanced(by duration: Duration) -> Timestamp {
    let (seconds, attoseconds) = duration.components
    return Timestamp(
      microseconds: microseconds + seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    )
  }

  /// The time from `earlier` to this one.
  package func duration(since earlier: Timestamp) -> Duration {
    .microseconds(microseconds - earlier.microseconds)
  }
}
