/// Cuts a worker's output into lines, each at most `lineBytesMax` long.
///
/// A longer line comes out in its first part, marked as cut; the rest up to its end is dropped.
struct LineSplitter {
  /// One line, without what ended it.
  struct Line: Equatable {
    var bytes: [UInt8]
    var isCut = false
  }

  private let lineBytesMax: Int
  private var pending: [UInt8] = []
  private var isOverlong = false

  /// A splitter that holds at most `lineBytesMax` bytes.
  init(lineBytesMax: Int) {
    self.lineBytesMax = lineBytesMax
  }

  /// Takes output in; returns the lines that it completes.
  mutating func append(_ bytes: some Sequence<UInt8>) -> [Line] {
    var lines: [Line] = []
    for byte in bytes {
      if byte == 0x0A {
        lines.append(take())
      } else if pending.count < lineBytesMax {
        pending.append(byte)
      } else {
        isOverlong = true
      }
    }
    return lines
  }

  /// The last line where nothing ended it, or nil.
  mutating func finish() -> Line? {
    pending.isEmpty ? nil : take()
  }

  private mutating func take() -> Line {
    if pending.last == 0x0D { pending.removeLast() }
    defer {
      pending.removeAll(keepingCapacity: true)
      isOverlong = false
    }
    return Line(bytes: pending, isCut: isOverlong)
  }
}

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
