import FirestoreClient

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The time zone in which an assistant reads and writes times.
struct AssistantZone: Sendable, Hashable {
  private let zone: TimeZone

  /// Creates a zone by its name, such as `Europe/Berlin`; UTC if the name is unknown.
  init(_ name: String?) {
    zone = name.flatMap { TimeZone(identifier: $0) } ?? .gmt
  }

  var name: String { zone.identifier == "GMT" ? "UTC" : zone.identifier }

  /// Parses a time that a model wrote.
  ///
  /// It can be an RFC 3339 time, or a local time such as `2026-05-01T09:00`. Throws
  /// `ActionRefusedError` for anything else, for a time more than a minute ago, and for one more
  /// than two years ahead.
  func time(_ text: String, named name: String, after now: Timestamp) throws -> Timestamp {
    guard let time = Timestamp(text) ?? local(text) else {
      throw ActionRefusedError("\(name) is not a time; write it like 2026-05-01T09:00")
    }
    // A call may begin in the minute of the request.
    guard time.microseconds > now.microseconds - Self.minute else {
      throw ActionRefusedError("\(name) is past; it is \(self.text(now)) now")
    }
    guard time.microseconds < now.microseconds + Self.farthest else {
      throw ActionRefusedError("\(name) is more than two years ahead")
    }
    return time
  }

  private static let minute: Int64 = 60_000_000
  private static let farthest: Int64 = 2 * 366 * 86_400_000_000

  /// Formats a time in this zone, to the minute.
  func text(_ time: Timestamp) -> String {
    let style = Date.ISO8601FormatStyle(timeZone: zone).year().month().day()
      .dateTimeSeparator(.standard).time(includingFractionalSeconds: false)
    return String(time.date.formatted(style).prefix(16))
  }

  private func local(_ text: String) -> Timestamp? {
    let numbers = text.split { !$0.isASCII || !$0.isNumber }.map { Int($0) ?? -1 }
    guard text.contains("T"), (5...6).contains(numbers.count), text.count <= 19 else { return nil }
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = zone
    var parts = DateComponents()
    (parts.year, parts.month, parts.day) = (numbers[0], numbers[1], numbers[2])
    (parts.hour, parts.minute) = (numbers[3], numbers[4])
    parts.second = numbers.count == 6 ? numbers[5] : 0
    guard let date = calendar.date(from: parts),
      // A day such as April 31 would become another day.
      calendar.dateComponents([.year, .month, .day, .hour, .minute], from: date).matches(parts)
    else { return nil }
    return Timestamp(date)
  }
}

extension DateComponents {
  fileprivate func matches(_ other: DateComponents) -> Bool {
    year == other.year && month == other.month && day == other.day && hour == other.hour
      && minute == other.minute
  }
}
