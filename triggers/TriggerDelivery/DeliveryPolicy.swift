package import DocumentModel
package import Invocation
package import RuntimeSupport

/// What becomes of a delivery after a try: pure decisions, no clock, no storage.
package struct DeliveryPolicy: Sendable {
  /// The wait between tries of a failing handler.
  package var backOff: BackOff
  /// Handler runs after which a retrying function's event is dead.
  package var attemptsMax: Int
  /// Time since the commit after which a retrying function's event is dead.
  package var window: Duration
  /// Deaths of the worker in a row after which an event is dead.
  package var crashesMax: Int
  /// The wait before a try that could not even start.
  package var deferral: Duration

  /// The policy of Firestore triggers on the emulator.
  ///
  /// Production waits 10 s to 600 s within 24 h; here the first wait is 1 s, for a person waits.
  package init(
    backOff: BackOff = BackOff(initial: .seconds(1), maximum: .seconds(600)),
    attemptsMax: Int = 16,
    window: Duration = .seconds(24 * 3600),
    crashesMax: Int = 3,
    deferral: Duration = .milliseconds(500)
  ) {
    self.backOff = backOff
    self.attemptsMax = attemptsMax
    self.window = window
    self.crashesMax = crashesMax
    self.deferral = deferral
  }

  /// How a try ended.
  package enum Outcome: Sendable, Hashable {
    case succeeded
    /// The handler answered with a failure or ran out of time.
    case handlerFailed(String, advice: RetryAdvice?)
    /// The worker died without an answer.
    case crashed(String)
    /// No worker took it: it starts again after the deferral and does not count.
    case deferred(String)
    /// The function is no longer deployed.
    case functionGone
  }

  /// The delivery after a try that ended at `now`.
  package func settle(_ delivery: Delivery, _ outcome: Outcome, now: Timestamp) -> Delivery {
    var next = delivery
    func end(_ state: Delivery.State, _ error: String?) {
      next.state = state
      next.settledTime = now
      next.lastError = error
    }
    func again(after wait: Duration, _ error: String) {
      next.dueTime = now.advanced(by: wait)
      next.lastError = error
    }
    switch outcome {
    case .succeeded:
      next.attempts += 1
      end(.succeeded, nil)
    case .functionGone:
      end(.dead, "The function is no longer deployed.")
    case .deferred(let error):
      again(after: deferral, error)
    case .crashed(let error):
      next.crashes += 1
      guard next.crashes < crashesMax else {
        end(.dead, "\(error) It crashed its worker \(next.crashes) times in a row.")
        break
      }
      again(after: backOff.delay(afterFailures: next.crashes), error)
    case .handlerFailed(let error, let advice):
      next.attempts += 1
      next.crashes = 0
      guard delivery.retries else {
        end(.failed, error)
        break
      }
      var wait = backOff.delay(afterFailures: next.attempts)
      switch advice {
      case .never:
        end(.dead, error)
        return next
      case .after(let seconds): wait = .seconds(min(seconds, Self.adviceSecondsMax))
      case nil: break
      }
      let retryTime = now.advanced(by: wait)
      guard next.attempts < attemptsMax, retryTime <= delivery.commitTime.advanced(by: window)
      else {
        end(.dead, "\(error) Given up after \(next.attempts) attempts.")
        break
      }
      again(after: wait, error)
    }
    return next
  }

  /// A handler may ask for no later try than a day from now: the retry window of production.
  private static let adviceSecondsMax = 86_400.0
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
