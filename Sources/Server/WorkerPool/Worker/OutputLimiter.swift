/// A rate limiter for a worker's output lines, by lines and bytes, that counts dropped lines.
///
/// A worker's output is always read, so that a flood of output blocks neither the worker nor the
/// server.
struct OutputLimiter {
  /// The decision about a line.
  enum Verdict: Equatable {
    case pass
    /// The line passes, and the given lines and bytes were dropped before it.
    case passAfter(Dropped)
    case drop
  }

  /// The amount of dropped output.
  struct Dropped: Equatable {
    var lines = 0
    var bytes = 0
  }

  /// The sustained rate, and the burst that is allowed at once.
  struct Rate {
    var perSecond: Int
    var burst: Int
  }

  private let lines: Rate
  private let bytes: Rate
  private var linesAllowed: Double
  private var bytesAllowed: Double
  /// The time of the last decision.
  private(set) var last: Duration = .zero
  /// The amount dropped since a line last passed.
  private(set) var dropped = Dropped()

  init(lines: Rate, bytes: Rate) {
    self.lines = lines
    self.bytes = bytes
    self.linesAllowed = Double(lines.burst)
    self.bytesAllowed = Double(bytes.burst)
  }

  /// Decides whether one line passes.
  mutating func judge(bytes count: Int, now: Duration) -> Verdict {
    let elapsed = max(.zero, now - last) / .seconds(1)
    last = now
    linesAllowed = min(Double(lines.burst), linesAllowed + elapsed * Double(lines.perSecond))
    bytesAllowed = min(Double(bytes.burst), bytesAllowed + elapsed * Double(bytes.perSecond))
    guard linesAllowed >= 1, bytesAllowed >= Double(count) else {
      dropped.lines += 1
      dropped.bytes += count
      return .drop
    }
    linesAllowed -= 1
    bytesAllowed -= Double(count)
    return takeDropped().map { .passAfter($0) } ?? .pass
  }

  /// Returns and resets the amount that was dropped but not reported; nil if there is none.
  mutating func takeDropped() -> Dropped? {
    guard dropped.lines > 0 else { return nil }
    defer { dropped = Dropped() }
    return dropped
  }
}
