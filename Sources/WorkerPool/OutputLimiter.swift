/// Lets a worker's lines pass up to a rate, and counts those it drops.
///
/// What a worker writes is always read, so that a flood blocks neither the worker nor the server.
struct OutputLimiter {
  /// What becomes of a line.
  enum Verdict: Equatable {
    case pass
    /// Passes, and so many were dropped before it.
    case passAfter(dropped: Int)
    case drop
  }

  private let linesPerSecond: Int
  private let burst: Int
  private var allowance: Double
  private var last: Duration = .zero
  private var dropped = 0

  /// A limiter that lets `burst` lines pass at once and `linesPerSecond` in the long run.
  init(linesPerSecond: Int, burst: Int) {
    self.linesPerSecond = linesPerSecond
    self.burst = burst
    self.allowance = Double(burst)
  }

  /// Judges one line.
  mutating func judge(now: Duration) -> Verdict {
    let elapsed = max(.zero, now - last)
    last = now
    allowance = min(Double(burst), allowance + elapsed / .seconds(1) * Double(linesPerSecond))
    guard allowance >= 1 else {
      dropped += 1
      return .drop
    }
    allowance -= 1
    defer { dropped = 0 }
    return dropped == 0 ? .pass : .passAfter(dropped: dropped)
  }

  /// How many lines were dropped since the last that passed.
  var droppedSince: Int { dropped }
}
