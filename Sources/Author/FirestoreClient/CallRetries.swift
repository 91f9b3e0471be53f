package import FlowControl
import InvocationContext

/// The policy for retrying failed calls, and the waits between the attempts.
package struct CallRetries: Sendable {
  /// The maximum number of attempts at a call or transaction, including the first.
  ///
  /// The default is the same as in the official clients. Attempts that failed because of contention
  /// do not count.
  package var attemptsMax: Int
  /// The waits after a failure, before random jitter shortens them.
  package var backOff: BackOff
  /// The waits after contention on the same documents, before random jitter shortens them.
  package var contentionBackOff: BackOff
  /// The time for which contention is retried outside functions.
  ///
  /// Inside a function its deadline is the limit instead.
  package var contentionTimeMax: Duration
  /// The source of the current time.
  ///
  /// A test passes its own clock.
  package var now: @Sendable () -> ContinuousClock.Instant
  /// The function that waits for a duration.
  ///
  /// A test passes its own clock.
  package var sleep: @Sendable (Duration) async throws -> Void
  /// The source of random numbers from 0 up to, but not including, 1.
  package var random: @Sendable () -> Double

  /// Creates a policy.
  ///
  /// Random jitter shortens the waits, which separates clients that failed together. It shortens
  /// the wait for an unavailable server by up to a half. After contention it shortens a wait by any
  /// amount, because then many clients retry at the same moment.
  package init(
    attemptsMax: Int = 5,
    backOff: BackOff = BackOff(
      initial: .milliseconds(100),
      maximum: .seconds(5),
      jitter: 0.5
    ),
    contentionBackOff: BackOff = BackOff(
      initial: .milliseconds(10),
      maximum: .seconds(1),
      jitter: 1
    ),
    contentionTimeMax: Duration = .seconds(60),
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
    random: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
  ) {
    self.attemptsMax = attemptsMax
    self.backOff = backOff
    self.contentionBackOff = contentionBackOff
    self.contentionTimeMax = contentionTimeMax
    self.now = now
    self.sleep = sleep
    self.random = random
  }

  /// The deadline of retries if contention begins now.
  var contentionEnd: ContinuousClock.Instant {
    InvocationDeadline.current ?? now() + contentionTimeMax
  }

  /// Returns true if a call may be repeated after this error.
  ///
  /// A call that is not idempotent may be repeated only if the server certainly has not acted.
  /// After contention only a commit outside a transaction is repeated, as in the Node client. The
  /// data that a transaction has read is no longer valid then.
  func allowsAgain(
    _ error: FirestoreError,
    isIdempotent: Bool,
    bearsContention: Bool
  ) -> Bool {
    switch error.code {
    case .unavailable: isIdempotent || !error.mayHaveActed
    case .aborted: bearsContention && !error.mayHaveActed
    default: false
    }
  }

  /// Returns true if a transaction may run again from the start after this error.
  ///
  /// The codes are those of the Node client, which the server's documentation follows.
  func allowsTransactionAgain(_ error: FirestoreError) -> Bool {
    switch error.code {
    case .aborted, .cancelled, .unknown, .deadlineExceeded, .internal, .unavailable,
      .unauthenticated, .resourceExhausted:
      true
    case .invalidArgument: error.message.contains("transaction has expired")
    default: false
    }
  }

  /// Returns true if a transaction may run again after its commit failed with this error.
  ///
  /// It may do so only if the server certainly has not committed. After a successful commit the
  /// body would do its work twice.
  func allowsTransactionAgain(afterCommit error: FirestoreError) -> Bool {
    guard !error.mayHaveActed else { return false }
    switch error.code {
    case .aborted, .unavailable, .unauthenticated, .resourceExhausted, .invalidArgument:
      return allowsTransactionAgain(error)
    default: return false
    }
  }

  /// Repeats a call until it succeeds, may not be repeated, or reaches a limit.
  ///
  /// The limits are those on attempts and on the time for contention.
  package func run<Output: Sendable>(
    isIdempotent: Bool,
    bearsContention: Bool = false,
    _ call: () async throws -> Output
  ) async throws -> Output {
    var patience = Patience(self)
    while true {
      do {
        return try await call()
      } catch let error as FirestoreError {
        guard
          allowsAgain(error, isIdempotent: isIdempotent, bearsContention: bearsContention),
          let wait = patience.wait(after: error, at: now()), !Task.isCancelled
        else { throw error }
        try await sleep(wait)
      }
    }
  }
}

/// The remaining retries of one call or transaction.
///
/// Contention ends eventually, however many clients there are, so only time limits its retries. Any
/// other failure is retried a limited number of times.
struct Patience {
  private let retries: CallRetries
  private let contentionEnd: ContinuousClock.Instant
  private let totalMax: Int
  private var contentions = 0
  private var failures = 0

  /// Creates the retries of a call that begins now.
  ///
  /// `totalMax` limits the total number of attempts, including those after contention.
  init(_ retries: CallRetries, totalMax: Int = .max) {
    self.retries = retries
    self.totalMax = totalMax
    contentionEnd = retries.contentionEnd
  }

  /// Returns the wait before the next attempt; nil if there must not be another attempt.
  mutating func wait(
    after error: FirestoreError,
    at now: ContinuousClock.Instant
  ) -> Duration? {
    let isContention = error.code == .aborted
    if isContention { contentions += 1 } else { failures += 1 }
    guard contentions + failures < totalMax else { return nil }
    guard isContention else {
      guard failures < retries.attemptsMax else { return nil }
      return retries.backOff.delay(afterFailures: failures, random: retries.random())
    }
    let wait = retries.contentionBackOff.delay(
      afterFailures: contentions,
      random: retries.random()
    )
    return now + wait < contentionEnd ? wait : nil
  }
}
