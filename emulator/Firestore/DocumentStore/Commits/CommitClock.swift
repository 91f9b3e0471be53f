import DequeModule
import DocumentModel

/// Hands out commit times and read times.
///
/// A read at a time shows exactly the commits up to that time. Commit times rise strictly across
/// the whole store, whatever the wall clock does; a read time, once given to a client, is below the
/// time of every commit that is not yet visible. The time of the last visible commit is kept in the
/// store itself and comes with each snapshot as `visible`.
struct CommitClock: Sendable {
  /// Every further commit time must be above this time.
  private var floor = Timestamp(microseconds: 0)
  /// The times of the commits that may still appear, rising.
  private var onTheirWay: Deque<Timestamp> = []

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
    floor = time
    onTheirWay.append(time)
    return time
  }

  /// Takes note that a commit is visible or has failed.
  mutating func finished(_ time: Timestamp) {
    guard let index = onTheirWay.firstIndex(of: time) else { return }
    onTheirWay.remove(at: index)
  }

  /// The latest time up to which every snapshot taken from now on shows all commits.
  mutating func settledTime(now: Timestamp) -> Timestamp {
    if let first = onTheirWay.first { return Timestamp(microseconds: first.microseconds - 1) }
    floor = max(now, floor)
    return floor
  }

  /// Whether every snapshot taken from now on shows all commits up to `time`.
  ///
  /// False when a commit of that time may still appear; it is visible once a later commit is.
  mutating func isSettled(upTo time: Timestamp) -> Bool {
    if let first = onTheirWay.first { return time < first }
    floor = max(time, floor)
    return true
  }

  /// Takes note of the commits of an earlier run.
  mutating func observe(_ visible: Timestamp) {
    floor = max(floor, visible)
  }
}
