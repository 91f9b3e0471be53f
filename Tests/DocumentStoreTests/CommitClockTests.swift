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
}
