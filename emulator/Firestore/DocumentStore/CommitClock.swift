import DocumentModel

/// Hands out commit times and read times so that a read at a time shows exactly the commits up to
/// it.
///
/// Commit times rise strictly across the whole store, whatever the wall clock does; a read time,
/// once given to a client, is below the time of every commit that is not yet visible. The time of
/// the last visible commit is kept in the store itself and comes with each snapshot as `visible`.
struct CommitClock: Sendable {
  /// The last commit time handed out, visible yet or not.
  private var lastCommit = Timestamp(microseconds: 0)
  /// No commit may be at or below it.
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
    // With a commit on its way only what the snapshot itself proves can be promised.
    guard lastCommit == visible else { return visible }
    floor = max(now, floor)
    return floor
  }

  /// Whether a snapshot shows everything up to `time`, and will for ever.
  ///
  /// False when a commit of that time may be on its way; it is visible once a later one is.
  mutating func isComplete(upTo time: Timestamp, visible: Timestamp) -> Bool {
    observe(visible)
    if time <= visible { return true }
    guard lastCommit == visible else { return false }
    floor = max(time, floor)
    return true
  }

  /// Learns of commits of an earlier run.
  private mutating func observe(_ visible: Timestamp) {
    lastCommit = max(lastCommit, visible)
    floor = max(floor, visible)
  }
}
