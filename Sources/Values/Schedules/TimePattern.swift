import DocumentModel

/// Times of the wall clock: minutes of hours of days of months.
struct TimePattern: Sendable, Hashable {
  var minutes: NumberSet
  var hours: NumberSet
  var days: DayRule
  /// The months, from 1 to 12.
  var months: NumberSet
  /// Whether minute or hour is a wildcard, so that the job follows the clock through its changes.
  ///
  /// Other jobs name times, each of which comes exactly once.
  var followsClock: Bool

  /// The first match that is not before `earliest`, in seconds since 1970.
  ///
  /// Between two changes of the clock the local time grows evenly, so the match is found in the
  /// local calendar; only changes shortly before the result or right after `earliest` matter.
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
        // Nothing matches until long after this change and any others that follow.
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

  /// The first match in local time that is not before `local`; both are in seconds.
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

  /// The first time of a day, in seconds, that is not before `minute` of the day.
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

  /// The first matching day since 1970 that is not before `day`, and how many months were tried.
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

  /// The months searched, for the rarest day: a fifth weekday of February.
  ///
  /// It comes every 28 years, or 40 around 2100.
  private static let monthsMax = 41 * 12
}
