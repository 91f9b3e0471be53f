import DocumentModel

/// Hands out commit times and read times.
///
/// A read at a time shows exactly the commits up to that time. Commit times rise strictly across
/// the whole store, whatever the wall clock does; a read time, once given to a client, is below the
/// time of every commit that is not yet visible. The time of the last visible commit is kept in the
/// store itself and comes with each snapshot as `visible`.
struct CommitClock: Sendable {
  /// The last commit time handed out, visible yet or not.
  private var lastCommit = Timestamp(microseconds: 0)
  /// Every further commit time must be above this time.
  private var floor = Timestamp(microseconds: 0)

  /// The latest time that a read may ask for.
  func latest(now: Timestamp) -> Timestamp { max(now, floor) }

  /// The time that an access rule and a server timestamp see, in whole milliseconds.
  mutating func requestTime(visible: Timestamp, now: Timestamp) -> Timestamp {
    observe(visible)
    return max(now, floor).flooredToMillisecond
  }

  /// The time of the next commit; commits are visible in the order of these calls.
  mutating func nextCommit(now: Timestamp, notBefore requestTime: Timestamp) -> Timestamp {
    let time = max(now, requestTime, Timestamp(microseconds: floor.microseconds + 1))
    lastCommit = time
    floor = time
    return time
  }

  /// The time as of which a snapshot is the latest state.
  mutating func readTime(visible: Timestamp, now: Timestamp) -> Timestamp {
    observe(visible)
    // With a commit in flight, only the snapshot's own time is certain.
    guard lastCommit == visible else { return visible }
    floor = max(now, floor)
    return floor
  }

  /// Whether a snapshot shows everything up to `time` for good.
  ///
  /// False when a commit of that time may be in flight; it is visible once a later commit is.
  mutating func isComplete(upTo time: Timestamp, visible: Timestamp) -> Bool {
    observe(visible)
    if time <= visible { return true }
    guard lastCommit == visible else { return false }
    floor = max(time, floor)
    return true
  }

  /// Takes note of the commits of an earlier run.
  private mutating func observe(_ visible: Timestamp) {
    lastCommit = max(lastCommit, visible)
    floor = max(floor, visible)
  }
}
