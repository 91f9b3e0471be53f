#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A day of the ledger, from midnight to midnight in UTC.
struct UsageDay: Sendable, Hashable {
  /// The day as `yyyy-MM-dd`.
  let name: String
  /// The start of the next day.
  let end: Date

  private static let seconds = 86_400.0

  /// Creates the day that contains a time.
  init(of time: Date) {
    name = time.formatted(Date.ISO8601FormatStyle(timeZone: .gmt).year().month().day())
    let day = (time.timeIntervalSince1970 / Self.seconds).rounded(.down)
    end = Date(timeIntervalSince1970: (day + 1) * Self.seconds)
  }
}
