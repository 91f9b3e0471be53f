import DocumentModel

/// A set of wall-clock times: minutes of hours on days of months.
struct TimePattern: Sendable, Hashable {
  var minutes: NumberSet
  var hours: NumberSet
  var days: DayRule
  /// The months, from 1 to 12.
  var months: NumberSet
  /// True if minute or hour is a wildcard, so that the job follows clock changes.
  ///
  /// Any other job has fixed times, each of which occurs exactly once.
  var followsClock: Bool

  /// Returns the first match at or after `earliest`, in seconds since 1970.
  ///
  /// Between two clock changes local time advances evenly, so the match is found in the local
  /// calendar. Only clock changes right after `earliest` or shortly before the result matter.
  func first(from earliest: Int64, in zone: Zone) -> Int64? {
    var cursor = earliest
    var local = cursor + zone.offset(at: cursor)
    if !followsClock, let change = zone.lastChange(upTo: cursor), change.repeatsTimes {
      local = max(local, change.second + change.before)
    }
    while true {
      guard let match = first(fromLocal: local) else { return nil }
      let instant = match - zone.offset(at: cursor)
      guard let change = zone.change(after: cursor), change.second <= instant else {
        return instant
      }
      if change.second - cursor > Zone.changeSecondsMax,
        instant - change.second > 2 * Zone.changeSecondsMax
      {
        // There is no match until long after this change and any changes that follow it.
        cursor = instant - 2 * Zone.changeSecondsMax
        local = cursor + zone.offset(at: cursor)
        continue
      }
      cursor = change.second
      if change.repeatsTimes {
        local = cursor + (followsClock ? change.after : change.before)
      } else {
        local = cursor + change.after
        if !followsClock, match < local { return cursor }
      }
    }
  }

  /// Returns the first match at or after `local`; both are local times in seconds.
  private func first(fromLocal local: Int64) -> Int64? {
    let minute = Floor.quotient(local + 59, 60)
    let day = Floor.quotient(minute, 1440)
    guard let found = firstDay(from: day) else { return nil }
    if found.day == day {
      if let time = firstTime(from: Int(minute - day * 1440)) { return day * 86_400 + time }
      guard let later = firstDay(from: day + 1) else { return nil }
      return firstTime(from: 0).map { later.day * 86_400 + $0 }
    }
    return firstTime(from: 0).map { found.day * 86_400 + $0 }
  }

  /// Returns the first time of a day, in seconds, at or after a minute of the day.
  private func firstTime(from minute: Int) -> Int64? {
    let hour = minute / 60
    if hours.contains(hour), let match = minutes.first(from: minute % 60) {
      return Int64(hour * 3600 + match * 60)
    }
    guard let later = hours.first(from: hour + 1), let match = minutes.first(from: 0) else {
      return nil
    }
    return Int64(later * 3600 + match * 60)
  }

  /// Returns the first matching day since 1970 at or after `day`, and the number of months tried.
  func firstDay(from day: Int64) -> (day: Int64, monthsTried: Int)? {
    var (year, month, dayOfMonth) = Timestamp.civil(daysSince1970: day)
    for tried in 1...Self.monthsMax {
      if months.contains(Int(month)),
        let match = days.first(inMonth: month, year: year, from: Int(dayOfMonth))
      {
        return (Timestamp.days(year: year, month: month, day: Int64(match)), tried)
      }
      dayOfMonth = 1
      if let later = months.first(from: Int(month) + 1) {
        month = Int64(later)
      } else {
        guard let first = months.first(from: 1) else { return nil }
        month = Int64(first)
        year += 1
      }
    }
    return nil
  }

  /// The number of months searched, enough for the rarest day: a fifth weekday of February.
  ///
  /// That day occurs every 28 years, or after 40 years around 2100.
  private static let monthsMax = 41 * 12
}
