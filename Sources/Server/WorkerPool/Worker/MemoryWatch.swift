/// A schedule for sampling a worker's memory that detects when the limit is exceeded.
///
/// The less memory is left, the sooner it samples again. A worker that fills its memory at full
/// speed is therefore ended before it exceeds its limit by much.
struct MemoryWatch {
  /// The result of a sample.
  enum Verdict: Equatable {
    case lookAgain(after: Duration)
    /// The worker exceeds its limit and must be ended.
    case exceeded
  }

  /// The rate at which one process can fill fresh memory.
  private static let fillBytesPerSecond = 4 << 30
  private static let waitMin = Duration.milliseconds(20)
  private static let waitMax = Duration.milliseconds(250)
  /// The wait between samples of an idle worker.
  static let idleWait = Duration.seconds(1)
  /// The age at which the measured memory of the worker's descendants is out of date.
  private static let othersWait = Duration.milliseconds(250)

  let limitBytes: Int
  /// The number of bytes in use at the last sample.
  private(set) var usedBytes = 0
  private var othersBytes = 0
  private var othersAt: Duration?

  init(limitBytes: Int) {
    self.limitBytes = limitBytes
  }

  /// Records a sample of the worker's memory.
  ///
  /// `othersBytes` returns the memory of the worker's descendants, and is called only from time to
  /// time.
  mutating func look(
    ownBytes: Int,
    othersBytes count: () -> Int,
    isBusy: Bool,
    now: Duration
  ) -> Verdict {
    if othersAt.map({ now - $0 >= Self.othersWait }) ?? true {
      othersBytes = count()
      othersAt = now
    }
    usedBytes = ownBytes + othersBytes
    if usedBytes > limitBytes { return .exceeded }
    if !isBusy { return .lookAgain(after: Self.idleWait) }
    let room = Double(limitBytes - usedBytes) / Double(Self.fillBytesPerSecond)
    return .lookAgain(after: min(Self.waitMax, max(Self.waitMin, .seconds(room))))
  }

  /// Formats an amount of memory for people, in MiB, rounded up.
  static func text(_ bytes: Int) -> String {
    let mebibytes = (bytes + (1 << 20) - 1) >> 20
    return "\(mebibytes) MiB"
  }
}
