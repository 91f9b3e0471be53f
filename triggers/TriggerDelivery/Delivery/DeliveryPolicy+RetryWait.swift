import DocumentModel
import FlowControl
import Invocation

/// The wait before the next attempt of a delivery.
extension DeliveryPolicy {
  /// The waits after crashes in a row: those of events, shortened by up to a half at random.
  static let crashBackOff = BackOff(initial: .seconds(1), maximum: .seconds(600), jitter: 0.5)

  /// Counts a failed attempt, and postpones the delivery or ends it.
  ///
  /// The wait grows with each attempt. What the handler advises is a minimum of it, or replaces it
  /// if the handler says so.
  func fail(
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
