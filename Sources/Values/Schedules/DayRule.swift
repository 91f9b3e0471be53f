import DocumentModel

/// The days of a month that a schedule selects; weekdays count from Sunday as 0.
enum DayRule: Sendable, Hashable {
  /// The days that are in both sets.
  case both(monthDays: NumberSet, weekdays: NumberSet)
  /// The days that are in at least one of the sets, as in cron when both fields are restricted.
  case either(monthDays: NumberSet, weekdays: NumberSet)
  /// The first, second and so on of the given weekdays in a month, counted from 1.
  case ordinals(NumberSet, weekdays: NumberSet)

  /// Returns the first matching day of a month on or after `day`.
  func first(inMonth month: Int64, year: Int64, from day: Int) -> Int? {
    let count = Int(Timestamp.daysIn(month: month, year: year))
    // 1970-01-01 was a Thursday.
    let firstWeekday = Int((Timestamp.days(year: year, month: month, day: 1) % 7 + 11) % 7)
    var day = day
    while day <= count {
      if contains(day, weekday: (firstWeekday + day - 1) % 7) { return day }
      day += 1
    }
    return nil
  }

  private func contains(_ day: Int, weekday: Int) -> Bool {
    switch self {
    case .both(let monthDays, let weekdays):
      monthDays.contains(day) && weekdays.contains(weekday)
    case .either(let monthDays, let weekdays):
      monthDays.contains(day) || weekdays.contains(weekday)
    case .ordinals(let ordinals, let weekdays):
      ordinals.contains((day - 1) / 7 + 1) && weekdays.contains(weekday)
    }
  }
}
