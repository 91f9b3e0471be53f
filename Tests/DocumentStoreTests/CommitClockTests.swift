import DocumentModel
import Testing

@testable import DocumentStore

@Suite("Commit clock")
struct CommitClockTests {
  @Test("Commit times rise strictly though the wall clock stands still or goes back")
  func risesStrictly() {
    var clock = CommitClock()

    let times = [50, 50, 40, 51, 60].map {
      clock.nextCommit(now: time($0), notBefore: time(0)).microseconds
    }

    #expect(times == [50, 51, 52, 53, 60])
  }

  @Test("A commit is not before its request's time nor before commits of an earlier run")
  func floors() {
    var clock = CommitClock()
    #expect(clock.nextCommit(now: time(50), notBefore: time(70)) == time(70))

    var restarted = CommitClock()
    #expect(restarted.requestTime(visible: time(90_500), now: time(10)) == time(90_000))
    #expect(restarted.nextCommit(now: time(10), notBefore: time(0)) == time(90_501))
  }

  @Test("With nothing on its way a read is as of now, and later commits come after it")
  func readsNow() {
    var clock = CommitClock()
    clock.observe(time(10))

    #expect(clock.settledTime(now: time(80)) == time(80))
    #expect(clock.nextCommit(now: time(80), notBefore: time(0)) == time(81))
  }

  @Test("With commits on their way a read is as of just before the first of them")
  func readsBehindACommit() {
    var clock = CommitClock()
    clock.keptBound(time(1000))
    let first = clock.nextCommit(now: time(50), notBefore: time(0))
    let second = clock.nextCommit(now: time(60), notBefore: time(0))

    #expect(clock.settledTime(now: time(80)) == time(49))
    clock.finished(second)
    #expect(clock.settledTime(now: time(80)) == time(49))
    clock.finished(first)
    #expect(clock.settledTime(now: time(80)) == time(80))
  }

  @Test("A time is settled once no commit of that time can still appear")
  func completeness() {
    var clock = CommitClock()
    let onItsWay = clock.nextCommit(now: time(50), notBefore: time(0))

    let before = [49, 50, 60].map { clock.isSettled(upTo: time($0)) }
    clock.finished(onItsWay)
    let isSettled = clock.isSettled(upTo: time(60))
    let next = clock.nextCommit(now: time(55), notBefore: time(0))

    #expect(before == [true, false, false])
    #expect(isSettled)
    #expect(next == time(61))
  }

  @Test("A read beside a commit has a time that storage need not take a bound for")
  func boundedBesideACommit() {
    var clock = CommitClock()
    clock.observe(time(20))
    _ = clock.nextCommit(now: time(50), notBefore: time(0))

    #expect(clock.settledTime(now: time(80)) == time(20))
    clock.keptBound(time(30))
    #expect(clock.settledTime(now: time(80)) == time(30))
    clock.keptBound(time(60))
    #expect(clock.settledTime(now: time(80)) == time(49))
  }

  @Test("A read beside the first commit after a long pause is not as of before the pause")
  func boundedAfterAPause() {
    var clock = CommitClock()
    clock.observe(time(20))
    let pause = CommitClock.readAgeMax + 1000
    _ = clock.nextCommit(now: time(pause), notBefore: time(0))

    #expect(clock.settledTime(now: time(pause)) == time(pause - 1))
  }

  @Test("While the wall clock is behind, times go on at half its speed until it has caught up")
  func lag() {
    var clock = CommitClock()
    let second: Int64 = 1_000_000
    clock.begin(above: time(100 * second))

    let times = (0...5).map { passed in
      clock.nextCommit(now: time((10 + passed * 20) * second), notBefore: time(0)).microseconds
    }

    #expect(times == [100 * second + 1] + (1...5).map { (100 + $0 * 10) * second })
    // 180 s after 10 s on the wall clock, the store's time has advanced 90 s from 100 s.
    #expect(clock.nextCommit(now: time(190 * second), notBefore: time(0)) == time(190 * second))
    #expect(clock.nextCommit(now: time(191 * second), notBefore: time(0)) == time(191 * second))
    // The wall clock is set back again, even further.
    #expect(clock.nextCommit(now: time(5 * second), notBefore: time(0)) == time(191 * second + 1))
  }

  @Test("A bound is due again before its end, once at a time, and never sinks")
  func bounds() {
    var clock = CommitClock()
    #expect(!clock.isBounded(time(10)) && clock.isBoundDue(time(10)))
    let bound = clock.nextBound(beyond: time(10))
    #expect(bound == time(10 + CommitClock.boundStep))
    #expect(clock.nextBound(beyond: time(5)) == bound)
    #expect(!clock.isBounded(time(10)) && !clock.isBoundDue(time(10)))
    clock.keptBound(bound)
    #expect(clock.isBounded(bound) && !clock.isBounded(time(bound.microseconds + 1)))
    #expect(!clock.isBoundDue(time(10)) && clock.isBoundDue(bound))

    _ = clock.nextBound(beyond: bound)
    clock.lostBound()

    #expect(clock.isBoundDue(bound))
    #expect(!clock.isBounded(time(bound.microseconds + 1)))
  }
}
