import DocumentModel
import Foundation
import TestSupport
import Testing

@Suite("Timestamps")
struct TimestampTests {
  @Test(
    "RFC 3339 is read to the microsecond",
    arguments: [
      ("1970-01-01T00:00:00Z", 0), ("1970-01-01T00:00:00.000001Z", 1),
      ("1969-12-31T23:59:59.999999Z", -1), ("1970-01-01t00:00:00z", 0),
      ("1970-01-01T01:00:00+01:00", 0), ("1969-12-31T23:30:00-00:30", 0),
      ("2024-02-29T12:34:56.789Z", 1_709_210_096_789_000),
      ("1970-01-01T00:00:00.1234567899999Z", 123_456),
      ("0001-01-01T00:00:00Z", -62_135_596_800_000_000),
      ("9999-12-31T23:59:59.999999999Z", 253_402_300_799_999_999),
      ("2000-02-29T00:00:00Z", 951_782_400_000_000),
    ] as [(String, Int64)]
  )
  func reads(text: String, microseconds: Int64) {
    #expect(Timestamp(text)?.microseconds == microseconds)
  }

  @Test(
    "What is no time is refused",
    arguments: [
      "", "1970", "1970-01-01", "1970-01-01T00:00:00", "1970-01-01 00:00:00Z",
      "1970-13-01T00:00:00Z", "1970-00-01T00:00:00Z", "1970-01-32T00:00:00Z",
      "1970-01-00T00:00:00Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z",
      "1970-01-01T24:00:00Z", "1970-01-01T00:60:00Z", "1970-01-01T00:00:60Z",
      "1970-01-01T00:00:00.Z", "1970-01-01T00:00:00+0100", "1970-01-01T00:00:00+25:00",
      "1970-01-01T00:00:00Zx", "0000-12-31T23:59:59Z", "0001-01-01T00:00:00+00:01",
      "9999-12-31T23:59:59-00:01", "١٩٧٠-01-01T00:00:00Z", "1970-01-01T00:00:00+",
      "+970-01-01T00:00:00Z",
    ]
  )
  func refuses(text: String) {
    #expect(Timestamp(text) == nil)
  }

  @Test("Any time survives writing and reading")
  func roundTrips() {
    var random = SeededGenerator.forTest()
    for _ in 0..<5000 {
      let time = Timestamp(
        microseconds: Int64.random(
          in: -62_135_596_800_000_000...253_402_300_799_999_999,
          using: &random
        )
      )
      #expect(Timestamp(time.description) == time, "\(time)")
      #expect(Timestamp(seconds: time.seconds, nanoseconds: time.nanoseconds) == time)
    }
  }

  @Test(
    "Fractions have 0, 3 or 6 digits",
    arguments: [
      (0, "1970-01-01T00:00:00Z"), (5000, "1970-01-01T00:00:00.005Z"),
      (5, "1970-01-01T00:00:00.000005Z"), (-1, "1969-12-31T23:59:59.999999Z"),
    ] as [(Int64, String)]
  )
  func writesFractions(microseconds: Int64, text: String) {
    #expect(Timestamp(microseconds: microseconds).description == text)
  }

  @Test("Seconds and nanoseconds are checked and floored")
  func checksParts() {
    #expect(Timestamp(seconds: 0, nanoseconds: 1999)?.microseconds == 1)
    #expect(Timestamp(seconds: -1, nanoseconds: 999_999_999)?.microseconds == -1)
    #expect(Timestamp(seconds: 0, nanoseconds: -1) == nil)
    #expect(Timestamp(seconds: 0, nanoseconds: 1_000_000_000) == nil)
    #expect(Timestamp(seconds: 253_402_300_800, nanoseconds: 0) == nil)
    #expect(Timestamp(seconds: -62_135_596_801, nanoseconds: 0) == nil)
  }

  @Test(
    "Server times are whole milliseconds, rounded down",
    arguments: [
      (1999, 1000), (1000, 1000), (-1, -1000), (-1000, -1000), (0, 0),
    ] as [(Int64, Int64)]
  )
  func floorsToMillisecond(microseconds: Int64, floored: Int64) {
    #expect(Timestamp(microseconds: microseconds).flooredToMillisecond.microseconds == floored)
  }

  @Test(
    "A date is the same time to the microsecond, wherever a time is asked",
    arguments: [-1_000_000_000.000001, -0.000001, 0, 978_307_200.5, 1_753_000_000.123456]
  )
  func dates(seconds: Double) {
    func microseconds(_ time: any PointInTime) -> Int64 { time.timestamp.microseconds }
    let date = Date(timeIntervalSince1970: seconds)
    let time = Timestamp(microseconds: Int64((seconds * 1e6).rounded()))

    #expect(microseconds(date) == microseconds(time))
    #expect(date.timestamp.date.timestamp == date.timestamp)
  }

  @Test("A date that Firestore cannot store becomes the first or the last time")
  func datesOutOfRange() {
    #expect(Date.distantPast.timestamp.description == "0001-01-01T00:00:00Z")
    let last = Timestamp(microseconds: 253_402_300_799_999_999)
    for seconds in [1e15, .infinity, .nan] {
      #expect(Date(timeIntervalSince1970: seconds).timestamp == last)
    }
    #expect(Date(timeIntervalSince1970: -.infinity).timestamp.seconds == -62_135_596_800)
  }

  @Test("The extremes of the stored number do not trap", arguments: [Int64.min, .max, .min + 1])
  func survivesExtremes(microseconds: Int64) {
    let time = Timestamp(microseconds: microseconds)

    #expect(!time.description.isEmpty)
    #expect((0...999_999_000).contains(time.nanoseconds))
  }
}
