/// An exponential back-off: how long to wait after each failure before the next try.
///
/// The wait doubles with each failure, at most `doublings` times; then it grows by equal steps, and
/// never beyond `maximum`. Cloud Tasks and Cloud Scheduler describe their back-off in the same way.
public struct BackOff: Sendable, Hashable {
  /// The wait after the first failure.
  public var initial: Duration
  /// The longest wait.
  public var maximum: Duration
  /// How often the wait doubles before it grows by equal steps.
  public var doublings: Int
  /// The part of a wait, from 0 to 1, by which chance may shorten it.
  ///
  /// Jitter separates clients that failed together.
  public var jitter: Double

  /// A back-off; without `doublings` it doubles until it reaches the maximum.
  public init(
    initial: Duration,
    maximum: Duration,
    doublings: Int = 30,
    jitter: Double = 0
  ) {
    self.initial = initial
    self.maximum = maximum
    self.doublings = doublings
    self.jitter = jitter
  }

  /// The wait after failure number `failures`, counted from 1, before chance shortens it.
  ///
  /// A wait that no number can hold is the maximum.
  public func delay(afterFailures failures: Int) -> Duration {
    let steps = max(failures, 1) - 1
    let doubled = min(steps, max(doublings, 0), Self.doublingsMax)
    let maximum = max(maximum, .zero)
    let first = max(initial, .zero).attoseconds
    let (wait, isTooLong) = first.multipliedReportingOverflow(by: 1 << doubled)
    guard !isTooLong else { return maximum }
    let (grown, isTooLongGrown) = wait.multipliedReportingOverflow(by: Int128(1 + steps - doubled))
    return isTooLongGrown ? maximum : min(Duration(attoseconds: grown), maximum)
  }

  /// The wait after failure number `failures`, shortened by chance: `random` is from 0 up to 1.
  public func delay(afterFailures failures: Int, random: Double) -> Duration {
    let wait = delay(afterFailures: failures)
    let part = random * jitter
    // Without this, a wait that is not shortened could be rounded beyond what a duration holds.
    guard part > 0, 1 - part < 1 else { return wait }
    return wait * (1 - min(part, 1))
  }

  /// The largest number of doublings, by which any wait has reached its maximum.
  private static let doublingsMax = 30
}
