package import RuntimeSupport

/// When a failed call is made again, and after what wait.
package struct CallRetries: Sendable {
  /// Attempts of one call or transaction, including the first, as in the official clients.
  ///
  /// Those that failed because others used the same documents do not count.
  package var attemptsMax: Int
  /// The waits, before chance shortens them.
  package var backOff: BackOff
  /// The waits while others use the same documents, before chance shortens them.
  package var contentionBackOff: BackOff
  /// How long contention is borne outside of a function, whose own deadline bounds it otherwise.
  package var contentionTimeMax: Duration
  /// The time; a test hands in its own clock.
  package var now: @Sendable () -> ContinuousClock.Instant
  /// Waits; a test hands in its own clock.
  package var sleep: @Sendable (Duration) async throws -> Void
  /// Gives a number from 0 up to 1.
  package var random: @Sendable () -> Double

  /// A policy; chance shortens waits, which separates clients that failed together.
  ///
  /// It takes up to a half off a wait for an unavailable server, and any part of one for others'
  /// locks, where many start at the same moment.
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

  /// The end of the time for contention that begins now.
  var contentionEnd: ContinuousClock.Instant {
    InvocationDeadline.current ?? now() + contentionTimeMax
  }

  /// Whether a call may be made again after this error.
  ///
  /// A call that is not idempotent may, only if the server has surely not acted. Only a commit
  /// outside a transaction is repeated after contention, as by the Node client: what a transaction
  /// has read does not hold any more.
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

  /// Whether a transaction may run again from its start after this error.
  ///
  /// These are the codes of the Node client, which the server's documentation follows.
  func allowsTransactionAgain(_ error: FirestoreError) -> Bool {
    switch error.code {
    case .aborted, .cancelled, .unknown, .deadlineExceeded, .internal, .unavailable,
      .unauthenticated, .resourceExhausted:
      true
    case .invalidArgument: error.message.contains("transaction has expired")
    default: false
    }
  }

  /// Whether a transaction may run again from its start after this error of its commit.
  ///
  /// It may only if the server has surely not committed: after a successful commit, the body would
  /// do its work twice.
  func allowsTransactionAgain(afterCommit error: FirestoreError) -> Bool {
    guard !error.mayHaveActed else { return false }
    switch error.code {
    case .aborted, .unavailable, .unauthenticated, .resourceExhausted, .invalidArgument:
      return allowsTransactionAgain(error)
    default: return false
    }
  }

  /// Makes a call until it succeeds, may not be made again, or was made often or long enough.
  func run<Output: Sendable>(
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

/// How much longer one call or transaction is tried.
///
/// Contention passes, however many clients there are, so time alone bounds it; anything else is
/// tried a few times.
struct Patience {
  private let retries: CallRetries
  private let contentionEnd: ContinuousClock.Instant
  private let totalMax: Int
  private var contentions = 0
  private var failures = 0

  /// The patience of a call that begins now; `totalMax` also bounds what time bounds otherwise.
  init(_ retries: CallRetries, totalMax: Int = .max) {
    self.retries = retries
    self.totalMax = totalMax
    contentionEnd = retries.contentionEnd
  }

  /// The wait before the next try; nil when the last one was the end.
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
