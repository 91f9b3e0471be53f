package import DocumentModel
package import RuntimeSupport

/// When a scheduled function runs: cron's five fields or App Engine's sentences, in a zone.
///
/// Times are those of the zone's wall clock. Where the clock is changed, Cloud Scheduler promises
/// nothing ("jobs run or do not run unexpectedly"), so this does what vixie cron documents:
///
/// - A job that names its minute and hour runs exactly once for each time it names. A skipped time
///   runs at the moment the gap ends (several in one gap run together), and of a time that comes
///   twice only the first counts.
/// - A job whose minute or hour field begins with `*` follows the clock: it misses the skipped
///   times, and runs both times at the repeated ones.
///
/// Sentences of App Engine that name a time are of the first sort. `every N minutes` and `every N
/// hours` are measured in elapsed time. Without a window they count from 1970-01-01T00:00Z, so that
/// the times do not depend on when the server was started. With `from … to …` they count from the
/// start of each day's window, whose end is included; `synchronized` is the window of the whole
/// local day.
package struct Schedule: Sendable, Hashable {
  /// The schedule as the author wrote it.
  package let text: String
  private let pattern: Pattern
  private let zone: Zone

  enum Pattern: Sendable, Hashable {
    case times(TimePattern)
    case interval(IntervalPattern)
  }

  /// Reads a schedule; throws `INVALID_ARGUMENT` with what to change.
  ///
  /// A well-formed schedule that could never run, such as the 30th of February, is refused too.
  /// `timeZone` is a name of the IANA database; nil is UTC.
  package init(_ text: String, timeZone: String?) throws(StatusError) {
    self.text = text
    zone = try Zone(timeZone)
    do throws(ScheduleFault) {
      guard text.utf8.count <= Self.textBytesMax else {
        throw ScheduleFault("is longer than \(Self.textBytesMax) bytes")
      }
      pattern =
        try AppEngineSyntax.isMeant(by: text)
        ? AppEngineSyntax.pattern(text) : .times(CronSyntax.pattern(text))
      if case .times(let times) = pattern, times.firstDay(from: 0) == nil {
        throw ScheduleFault("never runs: none of its months has such a day")
      }
    } catch {
      throw .invalidArgument("The schedule \"\(text.prefix(100))\" \(error.reason).")
    }
  }

  /// The first run later than `time`; nil only past the year 9999.
  package func next(after time: Timestamp) -> Timestamp? {
    let earliest = time.seconds + 1
    let second: Int64? =
      switch pattern {
      case .times(let times): times.first(from: earliest, in: zone)
      case .interval(let interval): interval.first(from: earliest, in: zone)
      }
    return second.flatMap { Timestamp(seconds: $0, nanoseconds: 0) }
  }

  /// The last run that is not later than `time`; nil when there was none for sixty years.
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

  /// The last run up to `time`, given one such run; halves the remaining span repeatedly.
  private func last(from run: Timestamp, to time: Timestamp) -> Timestamp {
    var run = run
    var end = time.microseconds
    while run.microseconds < end {
      let middle = Timestamp(microseconds: run.microseconds + (end - run.microseconds) / 2)
      if let later = next(after: middle), later <= time {
        run = later
      } else {
        // No run lies between the middle and the end, but one may be at the middle or before it.
        guard let later = next(after: run), later <= time else { return run }
        run = later
        end = middle.microseconds
      }
    }
    return run
  }

  /// The longest schedule; far beyond what a person would read.
  private static let textBytesMax = 500
  /// Sixty years in microseconds, longer than the gap between two runs of any schedule.
  private static let spanMax: Int64 = 60 * 366 * 86_400_000_000
}

/// Why a text is not a schedule, as the rest of a sentence about it.
struct ScheduleFault: Error {
  var reason: String

  init(_ reason: String) { self.reason = reason }
}
