/// Decides how soon a worker's memory is looked at again, and whether it has too much.
///
/// The less room is left the sooner it looks, so that one which fills its memory as fast as a
/// machine can is ended before it has taken much more than its own.
struct MemoryWatch {
  /// What a look leads to.
  enum Verdict: Equatable {
    case lookAgain(after: Duration)
    /// The worker has to go.
    case exceeded
  }

  /// As fast as one process fills fresh memory.
  private static let fillBytesPerSecond = 4 << 30
  private static let waitMin = Duration.milliseconds(20)
  private static let waitMax = Duration.milliseconds(250)
  /// Between looks at a worker that runs nothing.
  static let idleWait = Duration.seconds(1)
  /// Its other processes are counted when what they had is older than this.
  private static let othersWait = Duration.milliseconds(250)

  let limitBytes: Int
  /// What was used when it was last looked at.
  private(set) var usedBytes = 0
  private var othersBytes = 0
  private var othersAt: Duration?

  /// A watch over a worker that may use so much.
  init(limitBytes: Int) {
    self.limitBytes = limitBytes
  }

  /// Notes what the worker uses; `othersBytes` is asked for what its other processes use.
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

  /// How a person reads an amount of memory.
  static func text(_ bytes: Int) -> String {
    let mebibytes = (bytes + (1 << 20) - 1) >> 20
    return "\(mebibytes) MiB"
  }
}
