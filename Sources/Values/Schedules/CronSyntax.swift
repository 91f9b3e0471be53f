/// The syntax of Unix cron: minute, hour, day of month, month and day of week.
///
/// An alias such as `@daily` may replace the five fields.
enum CronSyntax {
  /// Parses the times that five fields or an alias specify.
  static func pattern(_ text: String) throws(ScheduleError) -> TimePattern {
    let words = text.split(whereSeparator: \.isWhitespace)
    if let word = words.first, word.hasPrefix("@") {
      guard words.count == 1, let fields = aliases[word.lowercased()] else {
        throw ScheduleError(
          "is not an alias; there are \(aliases.keys.sorted().joined(separator: ", "))"
        )
      }
      return try pattern(fields)
    }
    guard words.count == 5 else {
      throw ScheduleError(
        words.contains { $0.contains(where: \.isLetter) && $0.count > 3 }
          ? "is neither five cron fields (minute, hour, day of month, month, day of week) nor a "
            + "sentence such as \"every 5 minutes\" or \"every monday 09:00\""
          : "has \(words.count) fields; cron has five: minute, hour, day of month, month, day of "
            + "week" + (words.count == 6 ? ", and no seconds" : "")
      )
    }
    let monthDays = try Field.dayOfMonth.numbers(words[2])
    var weekdays = try Field.dayOfWeek.numbers(words[4])
    if weekdays.contains(7) { weekdays.insert(0) }
    let isEither = !words[2].hasPrefix("*") && !words[4].hasPrefix("*")
    return TimePattern(
      minutes: try Field.minute.numbers(words[0]),
      hours: try Field.hour.numbers(words[1]),
      days: isEither
        ? .either(monthDays: monthDays, weekdays: weekdays)
        : .both(monthDays: monthDays, weekdays: weekdays),
      months: try Field.month.numbers(words[3]),
      followsClock: words[0].hasPrefix("*") || words[1].hasPrefix("*")
    )
  }

  private static let aliases = [
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
  ]

  private struct Field {
    var name: String
    var range: ClosedRange<Int>
    /// The three-letter names of the numbers, from the start of the range.
    var names: [String] = []

    static let minute = Field(name: "minute", range: 0...59)
    static let hour = Field(name: "hour", range: 0...23)
    static let dayOfMonth = Field(name: "day of month", range: 1...31)
    static let month = Field(
      name: "month",
      range: 1...12,
      names: CalendarNames.months.map { String($0.prefix(3)) }
    )
    /// The days of the week; both 0 and 7 are Sunday.
    static let dayOfWeek = Field(
      name: "day of week",
      range: 0...7,
      names: CalendarNames.weekdays.map { String($0.prefix(3)) }
    )

    func numbers(_ text: Substring) throws(ScheduleError) -> NumberSet {
      var numbers = NumberSet()
      for part in text.split(separator: ",", omittingEmptySubsequences: false) {
        for number in try values(part) { numbers.insert(number) }
      }
      return numbers
    }

    /// Parses one list element: `*`, a number or a range; `*` and a range may have a step.
    private func values(_ part: Substring) throws(ScheduleError) -> StrideThrough<Int> {
      let pieces = part.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
      let bounds = try self.bounds(pieces[0])
      guard pieces.count == 2 else {
        return stride(from: bounds.lowerBound, through: bounds.upperBound, by: 1)
      }
      guard pieces[0] == "*" || pieces[0].contains("-") else {
        throw ScheduleError(
          "has \"\(part)\" as its \(name); a step follows a range: write "
            + "\(pieces[0])-\(range.upperBound)/\(pieces[1])"
        )
      }
      guard let step = number(pieces[1]), step >= 1 else {
        throw ScheduleError(
          "has \"\(part)\" as its \(name); the step after / is a number from 1 on"
        )
      }
      return stride(from: bounds.lowerBound, through: bounds.upperBound, by: step)
    }

    private func bounds(_ text: Substring) throws(ScheduleError) -> ClosedRange<Int> {
      // A wildcard stands for the seven days 0 to 6, without a second Sunday.
      if text == "*" { return names.count == 7 ? 0...6 : range }
      let ends = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
      let first = try value(ends[0])
      guard ends.count == 2 else { return first...first }
      let last = try value(ends[1])
      guard first <= last else {
        throw ScheduleError(
          "has the range \"\(text)\" as its \(name), which runs backwards; write two ranges: "
            + "\(ends[0])-\(names.count == 7 ? 6 : range.upperBound),\(range.lowerBound)-\(ends[1])"
        )
      }
      return first...last
    }

    private func value(_ text: Substring) throws(ScheduleError) -> Int {
      if let index = names.firstIndex(of: text.lowercased()) { return range.lowerBound + index }
      guard let number = number(text), range.contains(number) else {
        let choice =
          names.isEmpty
          ? "" : " or \(names[0].uppercased()) to \(names[names.count - 1].uppercased())"
        throw ScheduleError(
          text == "?" || text.isEmpty
            ? "has \"\(text)\" as its \(name); write * for all"
            : "has \"\(text)\" as its \(name); give \(range.lowerBound) to \(range.upperBound)\(choice)"
        )
      }
      return number
    }

    /// Parses digits only, because `Int` would also accept a sign.
    private func number(_ text: Substring) -> Int? {
      text.utf8.allSatisfy { (48...57).contains($0) } ? Int(text) : nil
    }
  }
}

enum CalendarNames {
  static let months = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
  ]
  static let weekdays = [
    "sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday",
  ]
}
