import DocumentModel
import Testing

@testable import Schedules

@Suite("The search for a run")
struct SearchBoundTests {
  @Test(
    "It visits matching months only, however far away the day is",
    arguments: [("0 0 29 2 *", 9), ("0 0 31 12 *", 2), ("* * * * *", 1), ("0 0 */31 1 1", 13)]
  )
  func monthsTried(text: String, most: Int) throws {
    let pattern = try CronSyntax.pattern(text)
    let start = Timestamp.days(year: 2096, month: 3, day: 1)

    let found = try #require(pattern.firstDay(from: start))

    #expect(found.monthsTried <= most)
  }

  @Test("The rarest day of all is found")
  func rarestDay() throws {
    let schedule = try Schedule("fifth monday of feb 00:00", timeZone: "Europe/Berlin")
    let start = try #require(Timestamp("2072-03-01T00:00:00Z"))

    #expect(schedule.next(after: start).map(String.init(describing:)) == "2112-02-28T23:00:00Z")
  }

  @Test("The run before is found across an idle time of years")
  func previousAcrossYears() throws {
    let schedule = try Schedule("0 12 29 2 *", timeZone: "America/New_York")
    let now = try #require(Timestamp("2027-12-31T00:00:00Z"))

    #expect(
      schedule.previous(atOrBefore: now).map(String.init(describing:)) == "2024-02-29T17:00:00Z"
    )
  }
}
