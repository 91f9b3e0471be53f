/// The schedule syntax of App Engine, which Cloud Scheduler and Firebase accept as well.
///
///     every N (hours | mins | minutes) [from HH:MM to HH:MM | synchronized]
///     (every | ORDINALS) (day | WEEKDAYS) [of MONTHS] HH:MM
///     DAYS of MONTHS HH:MM
///
/// ORDINALS are `1st` or `first` up to the fifth, and DAYS are numbers; both are comma-separated.
/// MONTHS are `month`, names, `quarter` or `first,second month of quarter`. Names may be shortened
/// to three letters.
enum AppEngineSyntax {
  /// Returns true if a text is in App Engine's syntax rather than cron's.
  ///
  /// A schedule in cron's syntax has neither a colon nor the word `every`.
  static func isMeant(by text: String) -> Bool {
    text.contains(":") || text.split(whereSeparator: \.isWhitespace).first?.lowercased() == "every"
  }

  /// Parses the pattern that a text describes.
  static func pattern(_ text: String) throws(ScheduleError) -> Schedule.Pattern {
    var words = Words(text)
    if words.next == "every", let count = words.number(at: 1) {
      return .interval(try interval(count, &words))
    }
    return .times(try times(&words))
  }

  private static func interval(
    _ count: Int,
    _ words: inout Words
  ) throws(ScheduleError) -> IntervalPattern {
    words.skip(2)
    guard count >= 1 else { throw ScheduleError("has an interval of 0; give 1 or more") }
    let unit: Int64
    switch words.next {
    case "hours": unit = 3600
    case "mins", "minutes": unit = 60
    default: throw words.expected("hours, minutes or mins after the number")
    }
    words.skip(1)
    var pattern = IntervalPattern(seconds: Int64(count) * unit)
    if words.take("from") {
      let start = try words.time()
      guard words.take("to") else { throw words.expected("\"to\" and the end of the time") }
      pattern.window = .init(start: start, end: try words.time())
    } else if words.take("synchronized") {
      guard 86_400 % pattern.seconds == 0 else {
        throw ScheduleError("is synchronized, for which its interval must divide 24 hours evenly")
      }
      pattern.window = .init(start: 0, end: 24 * 60 - 1)
    }
    guard words.next == nil else { throw words.expected("nothing more, or from … to …") }
    return pattern
  }

  private static func times(_ words: inout Words) throws(ScheduleError) -> TimePattern {
    let days: DayRule
    var mayOmitMonths = true
    if words.number(at: 0) != nil {
      days = .both(monthDays: try words.list("a day from 1 to 31", monthDay), weekdays: allWeekdays)
      mayOmitMonths = false
    } else {
      let ordinals =
        words.take("every")
        ? NumberSet(1...5)
        : try words.list("\"every\" or an ordinal such as 1st or second", ordinal)
      if words.take("day") {
        // "2nd day" is a day of the month, not every day of the second week.
        let isEvery = ordinals == NumberSet(1...5)
        days = .both(monthDays: isEvery ? NumberSet(1...31) : ordinals, weekdays: allWeekdays)
      } else {
        days = .ordinals(ordinals, weekdays: try words.list("day or a weekday", weekday))
      }
    }
    var months = NumberSet(1...12)
    if words.take("of") {
      months = try self.months(&words)
    } else if !mayOmitMonths {
      throw words.expected("\"of\" and the months")
    }
    let time = try words.time()
    guard words.next == nil else { throw words.expected("nothing after the time") }
    return TimePattern(
      minutes: NumberSet([Int(time % 60)]),
      hours: NumberSet([Int(time / 60)]),
      days: days,
      months: months,
      followsClock: false
    )
  }

  private static func months(_ words: inout Words) throws(ScheduleError) -> NumberSet {
    if words.take("month") { return NumberSet(1...12) }
    if words.take("quarter") { return NumberSet([1, 4, 7, 10]) }
    guard words.next.flatMap(ordinal) != nil else {
      return try words.list("month, quarter or the name of a month", month)
    }
    let offsets = try words.list("first, second or third", ordinal)
    guard words.take("month"), words.take("of"), words.take("quarter") else {
      throw words.expected("\"month of quarter\"")
    }
    guard !offsets.contains(4), !offsets.contains(5) else {
      throw ScheduleError("names a fourth month of a quarter, which has three")
    }
    return NumberSet((1...12).filter { offsets.contains(($0 - 1) % 3 + 1) })
  }

  private static let allWeekdays = NumberSet(0...6)

  private static func monthDay(_ word: String) -> Int? {
    guard word.utf8.allSatisfy({ (48...57).contains($0) }), let day = Int(word) else { return nil }
    return (1...31).contains(day) ? day : nil
  }

  private static func ordinal(_ word: String) -> Int? {
    let names = [
      ["1st", "first"], ["2nd", "second"], ["3rd", "third"], ["4th", "fourth"], ["5th", "fifth"],
    ]
    return names.firstIndex { $0.contains(word) }.map { $0 + 1 }
  }

  private static func weekday(_ word: String) -> Int? {
    index(of: word, in: CalendarNames.weekdays)
  }

  private static func month(_ word: String) -> Int? {
    index(of: word, in: CalendarNames.months).map { $0 + 1 }
  }

  private static func index(of word: String, in names: [String]) -> Int? {
    names.firstIndex { $0 == word || $0.prefix(3) == word }
  }
}

/// The words of a schedule in lower case; a comma is a word of its own.
private struct Words {
  private var rest: ArraySlice<String>

  init(_ text: String) {
    rest =
      text.lowercased().replacing(",", with: " , ").split(whereSeparator: \.isWhitespace)
      .map(String.init)[...]
  }

  var next: String? { rest.first }

  /// Returns the number at a distance from the next word; nil for any other word.
  func number(at distance: Int) -> Int? {
    let word = rest.dropFirst(distance).first ?? ""
    return word.utf8.count <= 5 && word.utf8.allSatisfy { (48...57).contains($0) } ? Int(word) : nil
  }

  mutating func skip(_ count: Int) { rest = rest.dropFirst(count) }

  mutating func take(_ word: String) -> Bool {
    guard next == word else { return false }
    skip(1)
    return true
  }

  /// Consumes comma-separated words, each of which `value` must recognize.
  mutating func list(
    _ expectation: String,
    _ value: (String) -> Int?
  ) throws(ScheduleError) -> NumberSet {
    var numbers = NumberSet()
    repeat {
      guard let number = next.flatMap(value) else { throw expected(expectation) }
      numbers.insert(number)
      skip(1)
    } while take(",")
    return numbers
  }

  /// Consumes a time such as `9:30` or `09:30` and returns it in minutes.
  mutating func time() throws(ScheduleError) -> Int64 {
    let parts = (next ?? "").split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, (1...2).contains(parts[0].utf8.count), parts[1].utf8.count == 2,
      parts.allSatisfy({ $0.utf8.allSatisfy { (48...57).contains($0) } }),
      let hour = Int64(parts[0]), let minute = Int64(parts[1]), hour < 24, minute < 60
    else { throw expected("a time such as 09:30") }
    skip(1)
    return hour * 60 + minute
  }

  func expected(_ what: String) -> ScheduleError {
    ScheduleError(
      next.map { "has \"\($0)\" where \(what) should be" } ?? "ends where \(what) should be"
    )
  }
}
