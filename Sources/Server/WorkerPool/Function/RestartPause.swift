import RuntimeSupport

/// The wait after a worker's death, longer with each one that follows without a success between.
struct RestartPause {
  private let backOff: BackOff
  private var deaths = 0

  /// The time before which nothing is tried again.
  private(set) var end = Duration.zero

  /// No wait as yet.
  init(_ backOff: BackOff) {
    self.backOff = backOff
  }

  /// Notes a death.
  mutating func begin(_ now: Duration) {
    deaths += 1
    end = now + backOff.delay(afterFailures: deaths)
  }

  /// Notes that a worker has done its work.
  mutating func forget() { deaths = 0 }
}
