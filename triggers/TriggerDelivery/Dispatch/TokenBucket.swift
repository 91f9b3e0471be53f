import DocumentModel

/// The rate limit for the starts of one function's deliveries.
///
/// The bucket holds the tokens of a tenth of a second, at least one, and is full at first. Its
/// small size spreads the starts evenly.
struct TokenBucket: Sendable {
  /// Tokens per second; nil for no bound.
  private(set) var rate: Double?
  private var tokens: Double
  private var filledTime: Timestamp?

  init(rate: Double?) {
    self.rate = rate
    tokens = Self.capacity(rate)
  }

  /// Sets a new rate.
  mutating func update(rate: Double?) {
    guard rate != self.rate else { return }
    self.rate = rate
    tokens = min(tokens, Self.capacity(rate))
  }

  /// Takes a token; false if there is none at `now`.
  mutating func take(now: Timestamp) -> Bool {
    guard let rate else { return true }
    if let filledTime, now > filledTime {
      tokens += now.duration(since: filledTime) / .seconds(1) * rate
    }
    tokens = min(tokens, Self.capacity(rate))
    // If the clock was set back, filling starts again from that time.
    filledTime = now
    guard tokens >= 1 else { return false }
    tokens -= 1
    return true
  }

  /// Takes a token even if there is none, so that later starts are delayed.
  mutating func overdraw(now: Timestamp) {
    if !take(now: now) { tokens -= 1 }
  }

  /// The time at which the bucket has a token again; nil while it has one.
  var nextTime: Timestamp? {
    guard let rate, let filledTime, tokens < 1 else { return nil }
    // One microsecond is added, so that rounding does not cause a wake-up without a token.
    return filledTime.advanced(by: .seconds((1 - tokens) / rate) + .microseconds(1))
  }

  private static func capacity(_ rate: Double?) -> Double { max(1, (rate ?? 0) / 10) }
}
