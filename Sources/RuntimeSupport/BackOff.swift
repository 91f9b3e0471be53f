/// An exponential back-off: each failure doubles the wait, up to a bound.
package struct BackOff: Sendable, Equatable {
  /// The wait after the first failure.
  package var initial: Duration
  /// No wait is longer.
  package var maximum: Duration

  /// A back-off without jitter, so that tests can name the wait.
  package init(initial: Duration, maximum: Duration) {
    self.initial = initial
    self.maximum = maximum
  }

  /// The wait after failure number `failures`, counted from 1.
  package func delay(afterFailures failures: Int) -> Duration {
    // Doubling is stopped at 2^30, beyond any bound in use, so that it cannot overflow.
    let doublings = min(max(failures - 1, 0), 30)
    return min(initial * (1 << doublings), maximum)
  }
}
