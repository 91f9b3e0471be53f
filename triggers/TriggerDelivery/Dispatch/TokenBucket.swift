import DocumentModel

/// How fast the deliveries of one function may start.
///
/// The bucket has the tokens of a tenth of a second, at least one, and begins full; its small size
/// spreads the starts evenly.
struct TokenBucket: Sendable {
  /// Tokens a second; nil for no bound.
  private(set) var rate: Double?
  private var tokens: Double
  private var filledTime: Timestamp?

  init(rate: Double?) {
    self.rate = rate
    tokens = Self.capacity(rate)
  }

  /// Takes over a new rate.
  mutating func update(rate: Double?) {
    guard rate != self.rate else { return }
    self.rate = rate
    tokens = min(tokens, Self.capacity(rate))
  }

  /// Takes a token, if there is one at `now`.
  mutating func take(now: Timestamp) -> Bool {
    guard let rate else { return true }
    if let filledTime, now > filledTime {
      tokens += now.duration(since: filledTime) / .seconds(1) * rate
    }
    tokens = min(tokens, Self.capacity(rate))
    // A clock that was set back begins anew.
    filledTime = now
    guard tokens >= 1 else { return false }
    tokens -= 1
    return true
  }

  /// Takes a token even if there is none, so that later ones come later.
  mutating func overdraw(now: Timestamp) {
    if !take(now: now) { tokens -= 1 }
  }

  /// When there is a token again; nil while there is one.
  var nextTime: Timestamp? {
    guard let rate, let filledTime, tokens < 1 else { return nil }
    // One microsecond is added, so that rounding does not cause a wake in vain.
    return filledTime.advanced(by: .seconds((1 - tokens) / rate) + .microseconds(1))
  }

  private static func capacity(_ rate: Double?) -> Double { max(1, (rate ?? 0) / 10) }
}
