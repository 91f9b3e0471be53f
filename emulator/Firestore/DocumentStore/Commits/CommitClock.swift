import DequeModule
import DocumentModel

/// Hands out commit times and read times.
///
/// A read at a time shows exactly the commits up to that time. Commit times rise strictly across
/// the whole store, whatever the wall clock does; a read time, once given to a client, is below the
/// time of every commit that is not yet visible. The time of the last visible commit is kept in the
/// store itself and comes with each snapshot as `visible`.
///
/// Times never go back, over restarts as well. While the wall clock is behind them, they go on at
/// half of its speed until it has caught up: they still differ, and the lag ends.
struct CommitClock: Sendable {
  /// A lag so short that times may rise by single microseconds until it ends.
  static let lagMin: Int64 = 1_000_000
  /// How far a stored bound is ahead of the read time that asked for it, in microseconds: the most
  /// by which a restart moves the times ahead, and as seldom a read costs a write.
  static let boundStep: Int64 = 2_000_000
  /// How old, in microseconds, the time of a read beside a commit may be; far below the age at
  /// which a transaction's reads are too old.
  static let readAgeMax: Int64 = 60_000_000

  /// Every further commit time must be above this time.
  private var floor = Timestamp(microseconds: 0)
  /// The times of the commits that may still appear, rising.
  private var onTheirWay: Deque<Timestamp> = []
  /// The wall clock and the time handed out when the wall clock was found behind.
  private var lag: (wall: Timestamp, time: Timestamp)?
  /// The latest commit that is known to be visible.
  private var visible = Timestamp(microseconds: 0)
  /// The bound that storage has, and the highest that it was given.
  private var keptBound = Timestamp(microseconds: 0)
  private var givenBound = Timestamp(microseconds: 0)

  /// The latest time that a read may ask for.
  mutating func latest(now: Timestamp) -> Timestamp { max(present(now), floor) }

  /// The time that an access rule and a server timestamp see, in whole milliseconds.
  mutating func requestTime(visible: Timestamp, now: Timestamp) -> Timestamp {
    observe(visible)
    return max(present(now), floor).flooredToMillisecond
  }

  /// The time of the next commit; commits are visible in the order of these calls.
  mutating func nextCommit(now: Timestamp, notBefore requestTime: Timestamp) -> Timestamp {
    let time = max(present(now), requestTime, Timestamp(microseconds: floor.microseconds + 1))
    floor = time
    onTheirWay.append(time)
    return time
  }

  /// Takes note that a commit is visible or has failed.
  mutating func finished(_ time: Timestamp) {
    guard let index = onTheirWay.firstIndex(of: time) else { return }
    onTheirWay.remove(at: index)
  }

  /// The time up to which every commit so far is visible or has failed.
  var finished: Timestamp {
    onTheirWay.first.map { Timestamp(microseconds: $0.microseconds - 1) } ?? floor
  }

  /// The latest time up to which every snapshot taken from now on shows all commits.
  mutating func settledTime(now: Timestamp) -> Timestamp {
    guard let first = onTheirWay.first else {
      floor = max(present(now), floor)
      return floor
    }
    let time = Timestamp(microseconds: first.microseconds - 1)
    // Storage would take a bound for this time only after the commits on their way. A bounded time
    // is as good unless it is old: no commit lies between it and them.
    let bounded = max(keptBound, visible)
    let isRecent = time.microseconds - bounded.microseconds <= Self.readAgeMax
    return isRecent ? min(time, bounded) : time
  }

  /// Whether every snapshot taken from now on shows all commits up to `time`.
  ///
  /// False when a commit of that time may still appear; it is visible once a later commit is.
  mutating func isSettled(upTo time: Timestamp) -> Bool {
    if let first = onTheirWay.first { return time < first }
    floor = max(time, floor)
    return true
  }

  /// Takes note of a visible commit, of this run or an earlier one.
  mutating func observe(_ visible: Timestamp) {
    floor = max(floor, visible)
    self.visible = max(self.visible, visible)
  }

  /// The present time: the wall clock's, or where it is behind, the one explained for the type.
  private mutating func present(_ now: Timestamp) -> Timestamp {
    guard floor.microseconds - now.microseconds > Self.lagMin else {
      lag = nil
      return now
    }
    let start = lag.flatMap { $0.wall <= now ? $0 : nil } ?? (wall: now, time: floor)
    lag = start
    let passed = now.microseconds - start.wall.microseconds
    return Timestamp(microseconds: start.time.microseconds + passed / 2)
  }
}

// MARK: The bound of the read times

extension CommitClock {
  /// Whether no later run of the store can have a commit at a time or before it.
  ///
  /// A commit on its way is stored with its own time, and one that is lost was not seen by anybody.
  func isBounded(_ time: Timestamp) -> Bool {
    time <= max(keptBound, visible) || onTheirWay.first.map { time < $0 } ?? false
  }

  /// Whether a time comes near the end of the stored bound, or has passed it.
  func isBoundNear(_ time: Timestamp) -> Bool {
    time.microseconds + Self.boundStep / 2 > keptBound.microseconds
  }

  /// Whether the next bound should be stored and is not on its way.
  func isBoundDue(_ time: Timestamp) -> Bool { isBoundNear(time) && givenBound <= keptBound }

  /// The bound to store for a time; bounds never sink.
  mutating func nextBound(beyond time: Timestamp) -> Timestamp {
    givenBound = max(givenBound, Timestamp(microseconds: time.microseconds + Self.boundStep))
    return givenBound
  }

  /// Takes note that storage has a bound.
  mutating func keptBound(_ bound: Timestamp) {
    keptBound = max(keptBound, bound)
    givenBound = max(givenBound, bound)
  }

  /// Takes note of the bound that an earlier run has left: all times are above it.
  mutating func begin(above bound: Timestamp) {
    floor = max(floor, bound)
    keptBound(bound)
  }

  /// Takes note that storage did not take a bound.
  mutating func lostBound() { givenBound = keptBound }
}
