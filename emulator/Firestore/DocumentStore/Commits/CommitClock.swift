import DequeModule
import DocumentModel

/// A clock that issues commit times and read times.
///
/// A read at a time shows exactly the commits up to that time. Commit times increase strictly
/// across the whole store, even if the wall clock does not. A read time that was given to a client
/// is below the time of every commit that is not yet visible. The time of the last visible commit
/// is kept in the store itself; each snapshot provides it as `visible`.
///
/// Times never go back, not even across restarts. While the wall clock is behind them, they advance
/// at half its speed until it has caught up: they still differ, and the lag ends.
struct CommitClock: Sendable {
  /// The lag up to which times may increase by single microseconds until the wall clock catches up.
  static let lagMin: Int64 = 1_000_000
  /// The distance of a stored bound from the read time that needed it, in microseconds.
  ///
  /// A restart moves the times ahead by at most this much. A larger step makes reads cost fewer
  /// writes.
  static let boundStep: Int64 = 2_000_000
  /// The maximum age of a read time while commits are in flight, in microseconds.
  ///
  /// Far below the age at which a transaction's reads are too old.
  static let readAgeMax: Int64 = 60_000_000

  /// The time that every further commit time must exceed.
  private var floor = Timestamp(microseconds: 0)
  /// The times of the commits that may still become visible, in increasing order.
  private var inFlight: Deque<Timestamp> = []
  /// The wall clock's time and the issued time at the moment a lag was detected.
  private var lag: (wall: Timestamp, time: Timestamp)?
  /// The time of the latest commit that is known to be visible.
  private var visible = Timestamp(microseconds: 0)
  /// The bound that storage has, and the highest bound submitted to it.
  private var keptBound = Timestamp(microseconds: 0)
  private var givenBound = Timestamp(microseconds: 0)

  /// Returns the latest time that a read may ask for.
  mutating func latest(now: Timestamp) -> Timestamp { max(present(now), floor) }

  /// Returns the time that access rules and server timestamps see, in whole milliseconds.
  mutating func requestTime(visible: Timestamp, now: Timestamp) -> Timestamp {
    observe(visible)
    return max(present(now), floor).flooredToMillisecond
  }

  /// Returns the time of the next commit; commits become visible in the order of these calls.
  mutating func nextCommit(now: Timestamp, notBefore requestTime: Timestamp) -> Timestamp {
    let time = max(present(now), requestTime, Timestamp(microseconds: floor.microseconds + 1))
    floor = time
    inFlight.append(time)
    return time
  }

  /// Records that a commit is visible or has failed.
  mutating func finished(_ time: Timestamp) {
    guard let index = inFlight.firstIndex(of: time) else { return }
    inFlight.remove(at: index)
  }

  /// The time up to which every commit so far is visible or has failed.
  var finished: Timestamp {
    inFlight.first.map { Timestamp(microseconds: $0.microseconds - 1) } ?? floor
  }

  /// Returns the latest time up to which every snapshot taken from now on shows all commits.
  mutating func settledTime(now: Timestamp) -> Timestamp {
    guard let first = inFlight.first else {
      floor = max(present(now), floor)
      return floor
    }
    let time = Timestamp(microseconds: first.microseconds - 1)
    // Storage would take a bound for this time only after the commits in flight. A bounded time
    // serves equally unless it is old, because no commit lies between it and them.
    let bounded = max(keptBound, visible)
    let isRecent = time.microseconds - bounded.microseconds <= Self.readAgeMax
    return isRecent ? min(time, bounded) : time
  }

  /// Returns true if every snapshot taken from now on shows all commits up to `time`.
  ///
  /// Returns false if a commit of that time may still become visible. It is visible once a later
  /// commit is.
  mutating func isSettled(upTo time: Timestamp) -> Bool {
    if let first = inFlight.first { return time < first }
    floor = max(time, floor)
    return true
  }

  /// Records a visible commit, of this run or an earlier one.
  mutating func observe(_ visible: Timestamp) {
    floor = max(floor, visible)
    self.visible = max(self.visible, visible)
  }

  /// Returns the wall clock's time, or the slowed time described above if the wall clock is behind.
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
  /// Returns true if no later run of the store can have a commit at or before a time.
  ///
  /// A commit in flight is stored with its own time. If it is lost, no client has seen it.
  func isBounded(_ time: Timestamp) -> Bool {
    time <= max(keptBound, visible) || inFlight.first.map { time < $0 } ?? false
  }

  /// Returns true if a time is near the end of the stored bound or past it.
  func isBoundNear(_ time: Timestamp) -> Bool {
    time.microseconds + Self.boundStep / 2 > keptBound.microseconds
  }

  /// Returns true if the next bound should be stored and has not been submitted yet.
  func isBoundDue(_ time: Timestamp) -> Bool { isBoundNear(time) && givenBound <= keptBound }

  /// Returns the bound to store for a time; bounds never decrease.
  mutating func nextBound(beyond time: Timestamp) -> Timestamp {
    givenBound = max(givenBound, Timestamp(microseconds: time.microseconds + Self.boundStep))
    return givenBound
  }

  /// Records that storage has a bound.
  mutating func keptBound(_ bound: Timestamp) {
    keptBound = max(keptBound, bound)
    givenBound = max(givenBound, bound)
  }

  /// Records the bound that an earlier run has left: all further times are above it.
  mutating func begin(above bound: Timestamp) {
    floor = max(floor, bound)
    keptBound(bound)
  }

  /// Records that storage failed to store a bound.
  mutating func lostBound() { givenBound = keptBound }
}
