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

    #expect(clock.readTime(visible: time(10), now: time(80)) == time(80))
    #expect(clock.nextCommit(now: time(80), notBefore: time(0)) == time(81))
  }

  @Test("With a commit on its way a read is as of the last visible one")
  func readsBehindACommit() {
    var clock = CommitClock()
    let onItsWay = clock.nextCommit(now: time(50), notBefore: time(0))

    #expect(clock.readTime(visible: time(10), now: time(80)) == time(10))
    #expect(clock.readTime(visible: onItsWay, now: time(80)) == time(80))
  }

  @Test("A snapshot is complete up to a time once no commit of that time can still appear")
  func completeness() {
    var clock = CommitClock()
    let onItsWay = clock.nextCommit(now: time(50), notBefore: time(0))

    #expect(clock.isComplete(upTo: time(10), visible: time(10)) == true)
    #expect(clock.isComplete(upTo: time(60), visible: time(10)) == false)
    #expect(clock.isComplete(upTo: time(60), visible: onItsWay) == true)
    #expect(clock.nextCommit(now: time(55), notBefore: time(0)) == time(61))
  }
}
