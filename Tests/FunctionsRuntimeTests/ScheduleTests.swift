import DocumentModel
import FunctionsRuntime
import HTTPTypes
import Invocation
import Testing
import TestSupport

@Suite("Functions on schedules")
struct ScheduleTests {
  @Test("A run knows the time it was planned for, its job and its attempt")
  func run() async throws {
    let seen = Seen<ScheduleEvent>()
    let harness = try HostHarness { OnSchedule("nightly", schedule: "0 3 * * *") { seen.add($0) } }
    let reply = try await harness.post(
      "nightly",
      "",
      [
        ("X-CloudScheduler-ScheduleTime", "2026-07-01T03:00:00+02:00"),
        ("X-CloudScheduler-JobName", "firebase-schedule-nightly"), ("x-hearth-attempt", "2"),
      ]
    )

    #expect(reply.status == 204, "\(reply.body)")
    let event = try #require(seen.all.first)
    #expect(event.scheduleTime == Timestamp("2026-07-01T01:00:00Z"))
    #expect(event.jobName == "firebase-schedule-nightly")
    #expect(event.attempt == 2)
  }

  @Test("A request that is no scheduled run is 400, and a failing one 500 with its error's advice")
  func refusedAndFailed() async throws {
    let time = [("X-CloudScheduler-ScheduleTime", "2026-07-01T03:00:00Z")]
    let harness = try HostHarness {
      OnSchedule("fails", schedule: "every 5 minutes") { _ in
        throw EventError.retry(after: .seconds(3), "busy")
      }
      OnSchedule("failsForGood", schedule: "every 5 minutes") { _ in
        throw EventError.permanent("no")
      }
    }
    let later = try await harness.post("fails", "", time)
    let never = try await harness.post("failsForGood", "", time)
    let missing = try await harness.post("fails", "")
    let malformed = try await harness.post("fails", "", [(time[0].0, "soon")])

    #expect(later.status == 500)
    #expect(later.headers[RetryAdvice.header] == "after=3.0")
    #expect(never.headers[RetryAdvice.header] == "never")
    #expect(missing.status == 400)
    #expect(missing.body.contains("x-cloudscheduler-scheduletime is missing"))
    #expect(malformed.status == 400)
    #expect(malformed.body.contains("is soon, which is not"))
  }

  @Test("A schedule is called directly like any function")
  func direct() async throws {
    let seen = Seen<Timestamp>()
    let nightly = OnSchedule("nightly", schedule: "0 3 * * *") { seen.add($0.scheduleTime) }
    try await nightly.run(ScheduleEvent(scheduleTime: Timestamp(microseconds: 5)))

    #expect(seen.all == [Timestamp(microseconds: 5)])
  }
}
