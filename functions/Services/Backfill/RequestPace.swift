/// Spreads requests evenly, so that neither their number nor their tokens exceed a rate.
struct RequestPace: Sendable {
  private let settings: BackfillSettings
  /// The earliest time of the next request, on the same scale as `now`.
  private var next: Duration = .zero

  init(_ settings: BackfillSettings) {
    self.settings = settings
  }

  /// How long a request of so many tokens must wait; calling this reserves its time.
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
