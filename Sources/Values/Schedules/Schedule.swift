package import DocumentModel
package import StatusCodes

/// The schedule of a function in a time zone, in the syntax of cron or App Engine.
///
/// Times are those of the zone's wall clock. For clock changes Cloud Scheduler promises nothing
/// ("jobs run or do not run unexpectedly"), so this type follows the documentation of Vixie cron:
///
/// - A job with a fixed minute and hour runs exactly once for each of its times. A skipped time
///   runs at the moment the gap ends; several times in one gap run together. Of a repeated time
///   only the first occurrence counts.
/// - A job whose minute or hour field begins with `*` follows the clock: it misses the skipped
///   times and runs at both occurrences of a repeated time.
///
/// App Engine schedules with a time of day are of the first kind. `every N minutes` and `every N
/// hours` are measured in elapsed time. Without a window they count from 1970-01-01T00:00Z, so that
/// the times do not depend on when the server was started. With `from … to …` they count from the
/// start of each day's window, whose end is included. `synchronized` is a window of the whole local
/// day.
package struct Schedule: Sendable, Hashable {
  /// The schedule as the author wrote it.
  package let text: String
  private let pattern: Pattern
  private let zone: Zone

  enum Pattern: Sendable, Hashable {
    case times(TimePattern)
    case interval(IntervalPattern)
  }

  /// Parses a schedule; throws `INVALID_ARGUMENT` with a message that says what to change.
  ///
  /// A well-formed schedule that could never run, such as February 30, is refused too. `timeZone`
  /// is a name in the IANA database; nil is UTC.
  package init(_ text: String, timeZone: String?) throws(StatusError) {
    self.text = text
    zone = try Zone(timeZone)
    do throws(ScheduleError) {
      guard text.utf8.count <= Self.textBytesMax else {
        throw ScheduleError("is longer than \(Self.textBytesMax) bytes")
      }
      pattern =
        try AppEngineSyntax.isMeant(by: text)
        ? AppEngineSyntax.pattern(text) : .times(CronSyntax.pattern(text))
      if case .times(let times) = pattern, times.firstDay(from: 0) == nil {
        throw ScheduleError("never runs: none of its months has such a day")
      }
    } catch {
      throw .invalidArgument("The schedule \"\(text.prefix(100))\" \(error.reason).")
    }
  }

  /// Returns the first run later than `time`; nil only after the year 9999.
  package func next(after time: Timestamp) -> Timestamp? {
    let earliest = time.seconds + 1
    let second: Int64? =
      switch pattern {
      case .times(let times): times.first(from: earliest, in: zone)
      case .interval(let interval): interval.first(from: earliest, in: zone)
      }
    return second.flatMap { Timestamp(seconds: $0, nanoseconds: 0) }
  }

  /// Returns the last run at or before `time`; nil if there was none for almost sixty years.
  package func previous(atOrBefore time: Timestamp) -> Timestamp? {
    var span: Int64 = 60_000_000
    while span < Self.spanMax {
      if let run = next(after: Timestamp(microseconds: time.microseconds - span)), run <= time {
        return last(from: run, to: time)
      }
      span *= 8
    }
    return nil
  }

  /// Returns the last run up to `time`, starting from an earlier run, by bisection.
  private func last(from run: Timestamp, to time: Timestamp) -> Timestamp {
    var run = run
    var end = time.microseconds
    while run.microseconds < end {
      let middle = Timestamp(microseconds: run.microseconds + (end - run.microseconds) / 2)
      if let later = next(after: middle), later <= time {
        run = later
      } else {
        // No run is between the middle and the end, but there may be one at or before the middle.
        guard let later = next(after: run), later <= time else { return run }
        run = later
        end = middle.microseconds
      }
    }
    return run
  }

  /// The maximum length of a schedule, far more than a readable schedule needs.
  private static let textBytesMax = 500
  /// Sixty years in microseconds, which is longer than the gap between two runs of any schedule.
  private static let spanMax: Int64 = 60 * 366 * 86_400_000_000
}

/// The reason why a text is not a schedule, as the end of a sentence about it.
struct ScheduleError: Error {
  var reason: String

  init(_ reason: String) { self.reason = reason }
}
