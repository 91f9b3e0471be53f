/// An exponential back-off: the delays between failures and the next attempts.
///
/// The delay doubles with each failure, at most `doublings` times. After that it grows in equal
/// steps. It never exceeds `maximum`. Cloud Tasks and Cloud Scheduler define back-off in the same
/// way.
public struct BackOff: Sendable, Hashable {
  /// The delay after the first failure.
  public var initial: Duration
  /// The longest delay.
  public var maximum: Duration
  /// The number of times the delay doubles before it grows in equal steps.
  public var doublings: Int
  /// The largest fraction of a delay, from 0 to 1, by which it may be shortened at random.
  ///
  /// Jitter keeps clients that failed together from retrying together.
  public var jitter: Double

  /// Creates a back-off; without `doublings` the delay doubles until it reaches the maximum.
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

  /// Returns the delay after failure number `failures`, counted from 1, without jitter.
  ///
  /// If the calculation overflows, the delay is the maximum.
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

  /// Returns the delay after failure number `failures` with jitter; `random` is from 0 up to 1.
  public func delay(afterFailures failures: Int, random: Double) -> Duration {
    let wait = delay(afterFailures: failures)
    let part = random * jitter
    // Without this check, rounding could push a delay that is not shortened beyond a duration's
    // range.
    guard part > 0, 1 - part < 1 else { return wait }
    return wait * (1 - min(part, 1))
  }

  /// The largest number of doublings that is used; after so many, any delay is at its maximum.
  private static let doublingsMax = 30
}
