import DocumentModel
import Foundation
import Schedules
import Testing
import TestSupport

@Suite("Schedules where the clock is changed")
struct DaylightSavingTests {
  @Test(
    "A skipped time runs once, when the gap ends",
    arguments: [
      // 02:00 → 03:00 at 01:00Z
      ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"),
      ("0,20,40 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"),
      ("every day 02:30", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"),
      ("0 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", "2026-03-08T07:00:00Z"),
      // Half an hour: 02:00 → 02:30 at 15:30Z
      ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", "2026-10-03T15:30:00Z"),
      // Midnight itself is skipped
      ("0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", "2026-04-23T22:00:00Z"),
      // A whole day is skipped
      ("0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", "2011-12-30T10:00:00Z"),
    ]
  )
  func skipped(text: String, zone: String, after: String, expected: String) throws {
    #expect(try runs(text, zone, after: after) == [expected])
  }

  @Test("After the gap the next day is regular again")
  func afterTheGap() throws {
    let found = try runs("30 2 * * *", "Europe/Berlin", after: "2026-03-28T00:00:00Z", count: 3)

    #expect(found == ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"])
  }

  @Test(
    "A repeated time runs at its first coming only",
    arguments: [
      ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"),
      ("30 1 * * *", "America/New_York", "2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"),
      ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"),
    ]
  )
  func repeated(text: String, zone: String, first: String, second: String) throws {
    let before = Timestamp(microseconds: try #require(Timestamp(first)).microseconds - 1)

    #expect(try runs(text, zone, after: "\(before)", count: 2) == [first, second])
  }

  @Test("Asked within the repeated hour, what ran already does not come again")
  func askedWithinTheRepeatedHour() throws {
    // The clock shows 02:10 for the second time.
    let found = try runs("30 2 * * *", "Europe/Berlin", after: "2026-10-25T01:10:00Z")

    #expect(found == ["2026-10-26T01:30:00Z"])
  }

  @Test("A wildcard hour runs in both of the repeated hours and misses the skipped one")
  func wildcards() throws {
    let autumn = try runs("30 * * * *", "Europe/Berlin", after: "2026-10-24T23:59:00Z", count: 4)
    let spring = try runs("30 * * * *", "Europe/Berlin", after: "2026-03-29T00:00:00Z", count: 3)
    let island = try runs(
      "*/20 * * * *",
      "Australia/Lord_Howe",
      after: "2026-04-04T14:30:00Z",
      count: 4
    )

    #expect(autumn.map { $0.dropFirst(11).prefix(5) } == ["00:30", "01:30", "02:30", "03:30"])
    #expect(spring.map { $0.dropFirst(11).prefix(5) } == ["00:30", "01:30", "02:30"])
    // 01:40, back to 01:30 at 15:00Z: 01:40 again, then 02:00 and 02:20.
    #expect(island.map { $0.dropFirst(11).prefix(5) } == ["14:40", "15:10", "15:30", "15:50"])
  }

  @Test("A window starts by the wall clock and counts elapsed time")
  func windows() throws {
    // A day of 23 hours: from 00:00+01:00, every six hours, until 23:59+02:00.
    let found = try runs(
      "every 6 hours synchronized",
      "Europe/Berlin",
      after: "2026-03-28T22:59:59Z",
      count: 5
    )

    #expect(
      found.map { $0.dropFirst(8).prefix(8) } == [
        "28T23:00", "29T05:00", "29T11:00", "29T17:00", "29T22:00",
      ]
    )
  }

  @Test(
    "Against a minute-by-minute walk, nothing is skipped and nothing added",
    arguments: [
      "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "UTC",
      "America/St_Johns", "Asia/Kolkata",
    ]
  )
  func againstTheWalk(zone name: String) throws {
    var random = SeededGenerator.forTest()
    let zone = try #require(TimeZone(identifier: name))
    var walked = 0
    for _ in 0..<30 where walked < 3 {
      let fields = Self.fields(using: &random)
      let text = fields.joined(separator: " ")
      // Some dates, such as February 30, never occur, and their schedules are rejected.
      guard let schedule = try? Schedule(text, timeZone: name) else { continue }
      walked += 1
      let start = Self.start(in: zone, using: &random)
      let span = start..<start + 2 * 86_400

      var found: [Int] = []
      var time = Timestamp(microseconds: Int64(start) * 1_000_000 - 1)
      while let next = schedule.next(after: time), next.seconds < Int64(span.upperBound) {
        #expect(next > time)
        #expect(schedule.previous(atOrBefore: next) == next)
        found.append(Int(next.seconds))
        time = next
      }
      var reference = ClockReference(fields: fields, zone: zone)
      let expected = reference.runs(in: span)

      #expect(found == expected, "\(text) in \(name) from \(start), seed \(random.seed)")
    }
    #expect(walked == 3)
  }

  @Test("Intervals are strictly later and never further apart than they say")
  func intervals() throws {
    var random = SeededGenerator.forTest()
    for _ in 0..<60 {
      let minutes = Int.random(in: 1...500, using: &random)
      let schedule = try Schedule("every \(minutes) minutes", timeZone: "America/New_York")
      var time = Timestamp(
        microseconds: Int64.random(in: 0...4_000_000_000_000_000, using: &random)
      )
      for step in 0..<5 {
        let next = try #require(schedule.next(after: time))
        let distance = next.microseconds - time.microseconds
        #expect(distance > 0 && distance <= Int64(minutes) * 60_000_000)
        #expect(step == 0 || distance == Int64(minutes) * 60_000_000)
        #expect(schedule.previous(atOrBefore: next) == next)
        time = next
      }
    }
  }

  /// Returns a start that is usually near a change of the clock.
  private static func start(in zone: TimeZone, using random: inout SeededGenerator) -> Int {
    let day = Date(
      timeIntervalSince1970: Double(Int.random(in: 1_600_000_000...2_200_000_000, using: &random))
    )
    let near =
      Bool.random(using: &random) ? zone.nextDaylightSavingTimeTransition(after: day) ?? day : day
    return Int(near.timeIntervalSince1970) / 60 * 60
      - 60 * Int.random(in: 0...2_000, using: &random)
  }

  private static func fields(using random: inout SeededGenerator) -> [String] {
    func field(_ range: ClosedRange<Int>, wild: Int, _ random: inout SeededGenerator) -> String {
      if Int.random(in: 0..<10, using: &random) < wild {
        return Bool.random(using: &random) ? "*" : "*/\(Int.random(in: 1...20, using: &random))"
      }
      return (0..<Int.random(in: 1...3, using: &random)).map { _ in
        let first = Int.random(in: range, using: &random)
        let last = Int.random(in: first...range.upperBound, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: return "\(first)-\(last)"
        case 1: return "\(first)-\(last)/\(Int.random(in: 1...7, using: &random))"
        default: return "\(first)"
        }
      }.joined(separator: ",")
    }
    return [
      field(0...59, wild: 3, &random), field(0...4, wild: 4, &random),
      field(1...31, wild: 8, &random), field(1...12, wild: 9, &random),
      field(0...7, wild: 8, &random),
    ]
  }
}
