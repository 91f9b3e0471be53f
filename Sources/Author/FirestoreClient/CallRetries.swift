package import RuntimeSupport

/// When a failed call is made again, and after what wait.
package struct CallRetries: Sendable {
  /// Attempts of one call or transaction, including the first, as in the official clients.
  package var attemptsMax: Int
  /// The waits, before chance shortens them.
  package var backOff: BackOff
  /// Waits; a test hands in its own clock.
  package var sleep: @Sendable (Duration) async throws -> Void
  /// Gives a number from 0 up to 1.
  package var random: @Sendable () -> Double

  /// A policy; chance shortens waits by up to a half, which separates clients that failed together.
  package init(
    attemptsMax: Int = 5,
    backOff: BackOff = BackOff(
      initial: .milliseconds(100),
      maximum: .seconds(5),
      jitter: 0.5
    ),
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
    random: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
  ) {
    self.attemptsMax = attemptsMax
    self.backOff = backOff
    self.sleep = sleep
    self.random = random
  }

  /// The wait after failure number `failures`, counted from 1.
  func delay(afterFailures failures: Int) -> Duration {
    backOff.delay(afterFailures: failures, random: random())
  }

  /// Whether a call may be made again after this error.
  ///
  /// A call that is not idempotent may, only if the server has surely not acted.
  func allowsAgain(_ error: FirestoreError, isIdempotent: Bool) -> Bool {
    error.code == .unavailable && (isIdempotent || !error.mayHaveActed)
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

  /// Makes a call until it succeeds, may not be made again, or has been made often enough.
  func run<Output: Sendable>(
    isIdempotent: Bool,
    _ call: () async throws -> Output
  ) async throws -> Output {
    var failures = 0
    while true {
      do {
        return try await call()
      } catch let error as FirestoreError {
        failures += 1
        guard failures < attemptsMax, allowsAgain(error, isIdempotent: isIdempotent),
          !Task.isCancelled
        else { throw error }
        try await sleep(delay(afterFailures: failures))
      }
    }
  }
}
