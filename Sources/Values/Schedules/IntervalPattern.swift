/// Every so many seconds, all the time or in a window of each day.
struct IntervalPattern: Sendable, Hashable {
  var seconds: Int64
  /// The window in minutes of the day, end included; an end before the start is on the next day.
  var window: Window?

  struct Window: Sendable, Hashable {
    var start: Int64
    var end: Int64
  }

  /// The first run that is not before `earliest`, in seconds since 1970.
  func first(from earliest: Int64, in zone: Zone) -> Int64 {
    guard let window else {
      return Floor.quotient(earliest + seconds - 1, seconds) * seconds
    }
    let today = Floor.quotient(earliest + zone.offset(at: earliest), 86_400)
    // An earlier day's window may last until today.
    var day = today - 2
    while true {
      let start = zone.moment(ofLocal: day * 86_400 + window.start * 60)
      let nextStart = zone.moment(ofLocal: (day + 1) * 86_400 + window.start * 60)
      let endDay = window.end < window.start ? day + 1 : day
      let end = zone.moment(ofLocal: endDay * 86_400 + window.end * 60)
      let steps = max(0, Floor.quotient(earliest - start + seconds - 1, seconds))
      let run = start + steps * seconds
      if run <= end, run < nextStart { return run }
      day += 1
    }
  }
}
