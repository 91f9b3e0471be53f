/// A point in time with microsecond resolution, as Firestore stores it.
///
/// The range is 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999Z. `init(seconds:nanoseconds:)`
/// rounds down to the microsecond, as production does on write.
public struct Timestamp: Sendable, Hashable, Comparable {
  /// The number of microseconds since 1970-01-01T00:00:00Z; negative before that time.
  public var microseconds: Int64

  /// Creates a time from microseconds since 1970.
  public init(microseconds: Int64) {
    self.microseconds = microseconds
  }

  /// Creates a time from seconds since 1970 and nanoseconds from 0 to 999 999 999, as in protobuf.
  ///
  /// Nil outside the range that Firestore accepts.
  public init?(seconds: Int64, nanoseconds: Int32) {
    guard Self.secondsRange.contains(seconds), (0...999_999_999).contains(nanoseconds) else {
      return nil
    }
    self.microseconds = seconds * 1_000_000 + Int64(nanoseconds) / 1000
  }

  /// Whole seconds since 1970, rounded down.
  public var seconds: Int64 {
    let whole = microseconds / 1_000_000
    return microseconds % 1_000_000 < 0 ? whole - 1 : whole
  }

  /// Nanoseconds after `seconds`, a multiple of 1000.
  public var nanoseconds: Int32 { Int32(Self.floorMod(microseconds, 1_000_000) * 1000) }

  /// The time rounded down to the millisecond, the resolution of server timestamps.
  public var flooredToMillisecond: Timestamp {
    let remainder = microseconds % 1000
    return Timestamp(microseconds: microseconds - (remainder < 0 ? remainder + 1000 : remainder))
  }

  /// Orders times chronologically.
  public static func < (left: Timestamp, right: Timestamp) -> Bool {
    left.microseconds < right.microseconds
  }

  /// The range of seconds since 1970 that covers the years 1 to 9999.
  public static let secondsRange: ClosedRange<Int64> = -62_135_596_800...253_402_300_799
}

extension Timestamp: CustomStringConvertible {
  /// The time as RFC 3339 in UTC with 0, 3 or 6 fractional digits, as in protobuf's JSON.
  public var description: String {
    let days = (seconds - Self.floorMod(seconds, 86_400)) / 86_400
    let secondOfDay = Self.floorMod(seconds, 86_400)
    let (year, month, day) = Self.civil(daysSince1970: days)
    let micros = Int64(nanoseconds) / 1000
    let fraction =
      micros == 0
      ? "" : micros % 1000 == 0 ? "." + Self.pad(micros / 1000, 3) : "." + Self.pad(micros, 6)
    return "\(Self.pad(year, 4))-\(Self.pad(month, 2))-\(Self.pad(day, 2))T"
      + "\(Self.pad(secondOfDay / 3600, 2)):\(Self.pad(secondOfDay / 60 % 60, 2)):"
      + "\(Self.pad(secondOfDay % 60, 2))\(fraction)Z"
  }

  /// Parses RFC 3339 with `Z` or an offset and any number of fractional digits; nil if malformed.
  public init?(_ text: String) {
    let bytes = Array(text.utf8)
    func number(_ range: Range<Int>) -> Int64? {
      guard range.upperBound <= bytes.count else { return nil }
      var result: Int64 = 0
      for byte in bytes[range] {
        guard (48...57).contains(byte) else { return nil }
        result = result * 10 + Int64(byte - 48)
      }
      return result
    }
    func has(_ character: Character, at index: Int) -> Bool {
      index < bytes.count && bytes[index] == character.asciiValue
    }
    guard let year = number(0..<4), has("-", at: 4), let month = number(5..<7), has("-", at: 7),
      let day = number(8..<10), has("T", at: 10) || has("t", at: 10), let hour = number(11..<13),
      has(":", at: 13), let minute = number(14..<16), has(":", at: 16),
      let second = number(17..<19), (1...12).contains(month),
      day >= 1, day <= Self.daysIn(month: month, year: year), hour < 24, minute < 60, second < 60
    else { return nil }
    var index = 19
    var nanos: Int64 = 0
    if has(".", at: index) {
      index += 1
      var digits = 0
      while index < bytes.count, (48...57).contains(bytes[index]) {
        if digits < 9 { nanos = nanos * 10 + Int64(bytes[index] - 48) }
        digits += 1
        index += 1
      }
      guard digits > 0 else { return nil }
      for _ in min(digits, 9)..<9 { nanos *= 10 }
    }
    var offset: Int64 = 0
    if has("Z", at: index) || has("z", at: index) {
      index += 1
    } else if has("+", at: index) || has("-", at: index) {
      guard let hours = number(index + 1..<index + 3), has(":", at: index + 3),
        let minutes = number(index + 4..<index + 6), hours < 24, minutes < 60
      else { return nil }
      offset = (hours * 3600 + minutes * 60) * (bytes[index] == 43 ? 1 : -1)
      index += 6
    }
    guard index == bytes.count, index > 19 else { return nil }
    guard bytes.last != 46 else { return nil }
    let days = Self.days(year: year, month: month, day: day)
    let total = days * 86_400 + hour * 3600 + minute * 60 + second - offset
    self.init(seconds: total, nanoseconds: Int32(nanos))
  }

  private static func pad(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }

  private static func floorMod(_ value: Int64, _ modulus: Int64) -> Int64 {
    let remainder = value % modulus
    return remainder < 0 ? remainder + modulus : remainder
  }

  /// Returns the number of days in a month, 28 to 31.
  package static func daysIn(month: Int64, year: Int64) -> Int64 {
    switch month {
    case 4, 6, 9, 11: 30
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    default: 31
    }
  }

  /// Returns the number of days from 1970-01-01 to a date of the proleptic Gregorian calendar.
  package static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
    // Years begin in March, so that the leap day comes last.
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted - floorMod(shifted, 400)) / 400
    let yearOfEra = floorMod(shifted, 400)
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  /// Returns the proleptic Gregorian date that is a number of days after 1970-01-01.
  package static func civil(daysSince1970: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = daysSince1970 + 719_468
    let era = (shifted - floorMod(shifted, 146_097)) / 146_097
    let dayOfEra = floorMod(shifted, 146_097)
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    let year = era * 400 + yearOfEra + (month <= 2 ? 1 : 0)
    return (year, month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
  }
}
