/// Passes a worker's lines up to a rate of lines and of bytes, and counts the dropped ones.
///
/// A worker's output is always read, so that a flood blocks neither the worker nor the server.
struct OutputLimiter {
  /// What happens to a line.
  enum Verdict: Equatable {
    case pass
    /// The line passes, after the given lines and bytes were dropped.
    case passAfter(Dropped)
    case drop
  }

  /// What was dropped.
  struct Dropped: Equatable {
    var lines = 0
    var bytes = 0
  }

  /// How much passes in the long run, and at once.
  struct Rate {
    var perSecond: Int
    var burst: Int
  }

  private let lines: Rate
  private let bytes: Rate
  private var linesAllowed: Double
  private var bytesAllowed: Double
  /// When the last line was judged.
  private(set) var last: Duration = .zero
  /// What was dropped since the last line passed.
  private(set) var dropped = Dropped()

  /// A limiter that has let nothing pass yet.
  init(lines: Rate, bytes: Rate) {
    self.lines = lines
    self.bytes = bytes
    self.linesAllowed = Double(lines.burst)
    self.bytesAllowed = Double(bytes.burst)
  }

  /// Judges one line.
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

  /// What was dropped and not reported yet, or nil.
  mutating func takeDropped() -> Dropped? {
    guard dropped.lines > 0 else { return nil }
    defer { dropped = Dropped() }
    return dropped
  }
}
