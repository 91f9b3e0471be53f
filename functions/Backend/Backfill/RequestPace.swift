/// A pacer that spaces requests evenly, so that no rate of requests or tokens is exceeded.
struct RequestPace: Sendable {
  private let settings: BackfillSettings
  /// The earliest time of the next request, in the same time scale as `now`.
  private var next: Duration = .zero

  init(_ settings: BackfillSettings) {
    self.settings = settings
  }

  /// Returns the delay for a request with a number of tokens, and reserves its time.
  mutating func wait(tokens: Int, now: Duration) -> Duration {
    let start = max(now, next)
    let minutes = max(
      1 / settings.requestsPerMinute,
      Double(tokens) / settings.tokensPerMinute
    )
    next = start + .seconds(60 * minutes)
    return start - now
  }
}
