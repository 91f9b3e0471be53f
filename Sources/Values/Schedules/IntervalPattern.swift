/// A run at a fixed interval in seconds, either always or within a daily window.
struct IntervalPattern: Sendable, Hashable {
  var seconds: Int64
  /// The window in minutes of the day, end included; an end before the start is on the next day.
  var window: Window?

  struct Window: Sendable, Hashable {
    var start: Int64
    var end: Int64
  }

  /// Returns the first run at or after `earliest`, in seconds since 1970.
  func first(from earliest: Int64, in zone: Zone) -> Int64 {
    guard let window else {
      return Floor.quotient(earliest + seconds - 1, seconds) * seconds
    }
    let today = Floor.quotient(earliest + zone.offset(at: earliest), 86_400)
    // The window of an earlier day may extend into today.
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
