import FlowControl

/// The pause after a worker's death, which grows with each consecutive death.
struct RestartPause {
  private let backOff: BackOff
  private var deaths = 0

  /// The time until which no new worker starts.
  private(set) var end = Duration.zero

  init(_ backOff: BackOff) {
    self.backOff = backOff
  }

  /// Records a death, which starts or extends the pause.
  mutating func begin(_ now: Duration) {
    deaths += 1
    end = now + backOff.delay(afterFailures: deaths)
  }

  /// Records that a worker has completed an invocation, which resets the back-off.
  mutating func forget() { deaths = 0 }
}
