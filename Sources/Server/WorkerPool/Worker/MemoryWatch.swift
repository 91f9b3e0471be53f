/// Decides when to look at a worker's memory again, and whether it has too much.
///
/// The less room is left, the sooner it looks, so that a worker which fills its memory at full
/// speed is ended before it has taken much more than its own.
struct MemoryWatch {
  /// The result of a look.
  enum Verdict: Equatable {
    case lookAgain(after: Duration)
    /// The worker must be ended.
    case exceeded
  }

  /// How fast one process can fill fresh memory.
  private static let fillBytesPerSecond = 4 << 30
  private static let waitMin = Duration.milliseconds(20)
  private static let waitMax = Duration.milliseconds(250)
  /// The wait between looks at a worker that runs nothing.
  static let idleWait = Duration.seconds(1)
  /// The age from which the memory of the worker's other processes is measured again.
  private static let othersWait = Duration.milliseconds(250)

  let limitBytes: Int
  /// The bytes in use at the last look.
  private(set) var usedBytes = 0
  private var othersBytes = 0
  private var othersAt: Duration?

  /// A watch over a worker that may use `limitBytes`.
  init(limitBytes: Int) {
    self.limitBytes = limitBytes
  }

  /// Notes what the worker uses; `othersBytes` returns what its other processes use.
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

  /// An amount of memory in words for a person.
  static func text(_ bytes: Int) -> String {
    let mebibytes = (bytes + (1 << 20) - 1) >> 20
    return "\(mebibytes) MiB"
  }
}
