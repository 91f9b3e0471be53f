import Foundation

/// A slow reference implementation of cron that checks every minute.
///
/// Written from the documentation of vixie cron, not from the code under test. It supports only
/// zones whose clocks change by whole minutes.
struct ClockReference {
  private let zone: TimeZone
  private let isWildcard: Bool
  private let isEitherDay: Bool
  private let minutes: Set<Int>
  private let hours: Set<Int>
  private let monthDays: Set<Int>
  private let months: Set<Int>
  private let weekdays: Set<Int>
  private let calendar: Calendar
  private var knownDays: [Int: Bool] = [:]

  init(fields: [String], zone: TimeZone) {
    self.zone = zone
    isWildcard = fields[0].hasPrefix("*") || fields[1].hasPrefix("*")
    isEitherDay = !fields[2].hasPrefix("*") && !fields[4].hasPrefix("*")
    minutes = Self.numbers(fields[0], 0...59)
    hours = Self.numbers(fields[1], 0...23)
    monthDays = Self.numbers(fields[2], 1...31)
    months = Self.numbers(fields[3], 1...12)
    weekdays = Set(Self.numbers(fields[4], 0...6).map { $0 % 7 })
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = .gmt
    self.calendar = calendar
  }

  /// Returns all runs in a span of seconds since 1970 that starts on a full minute.
  mutating func runs(in span: Range<Int>) -> [Int] {
    var found: [Int] = []
    for second in stride(from: span.lowerBound, to: span.upperBound, by: 60)
    where runs(at: second) { found.append(second) }
    return found
  }

  private mutating func runs(at second: Int) -> Bool {
    let local = second + offset(second)
    if isWildcard { return matches(local) }
    for skipped in stride(from: second + offset(second - 60), to: local, by: 60)
    where matches(skipped) { return true }
    return matches(local) && !wasShown(local, before: second)
  }

  /// Indicates whether the clock already showed this local time within the last day.
  private func wasShown(_ local: Int, before second: Int) -> Bool {
    let offsets = Set((1...48).map { offset(second - $0 * 1800) })
    return offsets.contains { local - $0 < second && offset(local - $0) == $0 }
  }

  private func offset(_ second: Int) -> Int {
    zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(second)))
  }

  private mutating func matches(_ local: Int) -> Bool {
    let time = local % 86_400
    return minutes.contains(time / 60 % 60) && hours.contains(time / 3600)
      && dayMatches(local / 86_400)
  }

  private mutating func dayMatches(_ day: Int) -> Bool {
    if let known = knownDays[day] { return known }
    let date = Date(timeIntervalSince1970: Double(day) * 86_400)
    let isMonthDay = monthDays.contains(calendar.component(.day, from: date))
    let isWeekday = weekdays.contains(calendar.component(.weekday, from: date) - 1)
    let matches =
      months.contains(calendar.component(.month, from: date))
      && (isEitherDay ? isMonthDay || isWeekday : isMonthDay && isWeekday)
    knownDays[day] = matches
    return matches
  }

  private static func numbers(_ field: String, _ range: ClosedRange<Int>) -> Set<Int> {
    var all: Set<Int> = []
    for part in field.split(separator: ",") {
      let pieces = part.split(separator: "/")
      let step = pieces.count == 2 ? Int(pieces[1]) ?? 1 : 1
      let ends = pieces[0].split(separator: "-").compactMap { Int($0) }
      let first = ends.first ?? range.lowerBound
      let last = ends.isEmpty ? range.upperBound : ends[ends.count - 1]
      all.formUnion(stride(from: first, through: last, by: step))
    }
    return all
  }
}
