import DocumentModel
import Foundation
import Schedules
import StatusCodes
import Testing
import TestSupport

/// Returns the runs after a time, in RFC 3339 and UTC.
func runs(
  _ text: String,
  _ zone: String? = nil,
  after start: String,
  count: Int = 1
) throws -> [String] {
  let schedule = try Schedule(text, timeZone: zone)
  var time = try #require(Timestamp(start))
  var found: [String] = []
  while found.count < count {
    time = try #require(schedule.next(after: time))
    found.append("\(time)")
  }
  return found
}

@Suite("Unix cron")
struct CronTests {
  @Test(
    "Each field narrows the time",
    arguments: [
      ("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"),
      ("*/15 * * * *", "2026-01-01T00:15:30Z", "2026-01-01T00:30:00Z"),
      ("5,35 9-17 * * *", "2026-01-01T17:35:00Z", "2026-01-02T09:05:00Z"),
      ("0 0 1 JAN *", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
      ("30 6 * * mon-FRI", "2026-11-20T06:30:00Z", "2026-11-23T06:30:00Z"),
      ("0 0 * * 7", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"),
      ("0 0 * * 5-7", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"),
      ("10-50/20 23 31 * *", "2026-11-21T00:00:00Z", "2026-12-31T23:10:00Z"),
      ("0 12 29 2 *", "2026-11-21T00:00:00Z", "2028-02-29T12:00:00Z"),
      ("0 12 29 2 *", "2096-02-29T12:00:00Z", "2104-02-29T12:00:00Z"),
      ("59 23 31 12 *", "1969-12-30T00:00:00Z", "1969-12-31T23:59:00Z"),
    ]
  )
  func fields(text: String, after: String, expected: String) throws {
    #expect(try runs(text, after: after) == [expected])
  }

  @Test("Day of month or day of week is enough when both are restricted")
  func eitherDay() throws {
    let found = try runs("0 0 13 * FRI", after: "2026-11-05T00:00:00Z", count: 4)

    #expect(
      found == [
        "2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z",
        "2026-11-27T00:00:00Z",
      ]
    )
  }

  @Test("A step over all days does not restrict, so both must fit")
  func steppedWildcardDays() throws {
    let found = try runs("0 0 */2 * MON", after: "2026-11-01T00:00:00Z", count: 3)

    #expect(found == ["2026-11-09T00:00:00Z", "2026-11-23T00:00:00Z", "2026-12-07T00:00:00Z"])
  }

  @Test(
    "Aliases",
    arguments: [
      ("@hourly", "2026-11-21T11:00:00Z"), ("@daily", "2026-11-22T00:00:00Z"),
      ("@midnight", "2026-11-22T00:00:00Z"), ("@weekly", "2026-11-22T00:00:00Z"),
      ("@monthly", "2026-12-01T00:00:00Z"), ("@yearly", "2027-01-01T00:00:00Z"),
      ("@Annually", "2027-01-01T00:00:00Z"),
    ]
  )
  func aliases(text: String, expected: String) throws {
    #expect(try runs(text, after: "2026-11-21T10:30:00Z") == [expected])
  }

  @Test(
    "Refusals say what to change",
    arguments: [
      ("", "has 0 fields; cron has five"),
      ("* * * *", "has 4 fields"),
      ("0 * * * * *", "and no seconds"),
      ("60 * * * *", "\"60\" as its minute; give 0 to 59"),
      ("* 24 * * *", "\"24\" as its hour; give 0 to 23"),
      ("* * 0 * *", "\"0\" as its day of month; give 1 to 31"),
      ("* * * FOO *", "give 1 to 12 or JAN to DEC"),
      ("* * * * 8", "give 0 to 7 or SUN to SAT"),
      ("* * ? * *", "write * for all"),
      ("1,,2 * * * *", "write * for all"),
      ("5/15 * * * *", "write 5-59/15"),
      ("*/0 * * * *", "a number from 1 on"),
      ("*/x * * * *", "a number from 1 on"),
      ("* 22-2 * * *", "write two ranges: 22-23,0-2"),
      ("* * * * FRI-MON", "write two ranges: FRI-6,0-MON"),
      ("-1 * * * *", "as its minute"),
      ("+1 * * * *", "as its minute"),
      ("@reboot", "is not an alias; there are @annually"),
      ("daily at noon", "is neither five cron fields"),
      ("0 0 30 2 *", "never runs"),
      ("0 0 31 4,6,9,11 *", "never runs"),
    ]
  )
  func refusals(text: String, words: String) throws {
    let error = #expect(throws: StatusError.self) { try Schedule(text, timeZone: nil) }

    #expect(error?.statusCode == .invalidArgument)
    #expect(error?.statusMessage.contains(words) == true, "\(error?.statusMessage ?? "")")
  }

  @Test("An impossible day of month is no fault when a weekday is enough")
  func impossibleDayOrWeekday() throws {
    #expect(try runs("0 0 31 2 1", after: "2026-01-20T00:00:00Z") == ["2026-02-02T00:00:00Z"])
  }

  @Test("An unknown time zone is refused, and the likely one named")
  func timeZones() throws {
    func message(_ zone: String) -> String? {
      #expect(throws: StatusError.self) { try Schedule("* * * * *", timeZone: zone) }?.statusMessage
    }

    #expect(message("Berlin")?.contains("did you mean Europe/Berlin?") == true)
    #expect(message("new york")?.contains("did you mean America/New_York?") == true)
    #expect(message("Mars/Olympus")?.contains("IANA name") == true)
    #expect(throws: Never.self) { try Schedule("@daily", timeZone: "Etc/UTC") }
  }

  @Test("After the year 9999 there is nothing")
  func endOfTime() throws {
    let schedule = try Schedule("@yearly", timeZone: "Europe/Berlin")

    #expect(schedule.next(after: Timestamp(microseconds: 253_402_300_799_000_000)) == nil)
  }
}

@Suite("App Engine's sentences")
struct AppEngineTests {
  @Test(
    "Every form of the grammar",
    arguments: [
      ("every 5 minutes", ["10:35", "10:40"]),
      ("every 30 mins", ["11:00", "11:30"]),
      ("every 2 hours", ["12:00", "14:00"]),
      ("every 6 hours synchronized", ["12:00", "18:00"]),
      ("every 30 mins synchronized", ["11:00", "11:30"]),
      ("every 10 minutes from 10:00 to 10:40", ["10:40", "+1 10:00"]),
      ("every 25 minutes from 10:15 to 11:00", ["10:40", "+1 10:15"]),
      ("every 1 hours from 22:30 to 1:00", ["22:30", "23:30"]),
      ("every day 00:00", ["+1 00:00", "+2 00:00"]),
      ("every day of month 9:05", ["+1 09:05", "+2 09:05"]),
      ("every monday 09:00", ["+2 09:00", "+9 09:00"]),
      ("every sun, MON 09:00", ["+1 09:00", "+2 09:00"]),
    ]
  )
  func withinDays(text: String, expected: [String]) throws {
    let found = try runs(text, after: "2026-11-21T10:30:30Z", count: 2)

    let base = try #require(Timestamp("2026-11-21T00:00:00Z")).seconds
    let wanted = expected.map { entry -> String in
      let parts = entry.split(separator: " ")
      let day = parts.count == 2 ? Int64(parts[0].dropFirst()) ?? 0 : 0
      let date = Timestamp(microseconds: (base + day * 86_400) * 1_000_000)
      return "\("\(date)".prefix(11))\(parts[parts.count - 1]):00Z"
    }
    #expect(found == wanted)
  }

  @Test(
    "Ordinals, days, months and quarters",
    arguments: [
      (
        "2nd,third mon,wed,thu of march 17:00",
        ["2027-03-08", "2027-03-10", "2027-03-11", "2027-03-15"], "17:00"
      ),
      ("1 of jan,april,july,oct 00:00", ["2027-01-01", "2027-04-01"], "00:00"),
      ("first monday of month 15:30", ["2026-12-07", "2027-01-04"], "15:30"),
      ("every mon,wed of sep,oct 17:00", ["2027-09-01", "2027-09-06", "2027-09-08"], "17:00"),
      ("1st monday of sep,oct,nov 17:00", ["2027-09-06", "2027-10-04", "2027-11-01"], "17:00"),
      ("first day of quarter 00:00", ["2027-01-01", "2027-04-01"], "00:00"),
      ("1,15 of month 08:00", ["2026-12-01", "2026-12-15"], "08:00"),
      ("2 of first,third month of quarter 1:00", ["2026-12-02", "2027-01-02"], "01:00"),
      ("fifth sat of month 10:00", ["2027-01-30", "2027-05-29"], "10:00"),
      ("5th monday of feb 10:00", ["2044-02-29", "2072-02-29", "2112-02-29"], "10:00"),
    ]
  )
  func calendar(text: String, days: [String], time: String) throws {
    let found = try runs(text, after: "2026-11-21T10:30:00Z", count: days.count)

    #expect(found == days.map { "\($0)T\(time):00Z" })
  }

  @Test(
    "Refusals say what to change",
    arguments: [
      ("every 0 minutes", "interval of 0"),
      ("every 5 seconds", "\"seconds\" where hours, minutes or mins"),
      ("every 1 hour", "\"hour\" where hours"),
      ("every 5", "ends where hours"),
      ("every 5 minutes from 10 to 12:00", "\"10\" where a time such as 09:30"),
      ("every 5 minutes from 10:00 until 12:00", "\"until\" where \"to\""),
      ("every 7 hours synchronized", "divide 24 hours"),
      ("every 5 minutes daily", "\"daily\" where nothing more"),
      ("every foo 09:00", "\"foo\" where day or a weekday"),
      ("every monday", "ends where a time"),
      ("every monday 24:00", "\"24:00\" where a time"),
      ("every monday 9:5", "\"9:5\" where a time"),
      ("every monday of 09:00", "\"09:00\" where month, quarter"),
      ("every monday 09:00 10:00", "\"10:00\" where nothing"),
      ("32 of month 00:00", "\"32\" where a day from 1 to 31"),
      ("1 00:00", "\"00:00\" where \"of\""),
      ("31 of feb 00:00", "never runs"),
      ("last friday of month 10:00", "\"last\" where \"every\" or an ordinal"),
      ("1st,15 of month 00:00", "\"15\" where \"every\" or an ordinal"),
      ("1 of fourth month of quarter 00:00", "fourth month of a quarter"),
    ]
  )
  func refusals(text: String, words: String) throws {
    let error = #expect(throws: StatusError.self) { try Schedule(text, timeZone: nil) }

    #expect(error?.statusMessage.contains(words) == true, "\(error?.statusMessage ?? "")")
  }
}
