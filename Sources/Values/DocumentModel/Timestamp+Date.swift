#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

extension Timestamp {
  /// Creates the time of a date, rounded to the nearest microsecond.
  ///
  /// Nil outside the years 1 to 9999.
  public init?(_ date: Date) {
    let interval = date.timeIntervalSince1970
    guard interval.isFinite, abs(interval) < 1e12 else { return nil }
    // The whole seconds are split off first. A double only just resolves microseconds in this
    // century, and multiplying the whole interval would round twice.
    let seconds = interval.rounded(.down)
    let microseconds = Int64(seconds) * 1_000_000 + Int64(((interval - seconds) * 1e6).rounded())
    self.init(microseconds: microseconds)
    guard Self.secondsRange.contains(self.seconds) else { return nil }
  }

  /// The time as a date, to the resolution of a double: a microsecond in this century.
  public var date: Date {
    Date(timeIntervalSince1970: Double(seconds) + Double(nanoseconds) / 1e9)
  }
}

/// A point in time: a `Timestamp` or a `Date`.
///
/// Functions of Hearth that take a time take either.
public protocol PointInTime: Sendable {
  /// The time to the microsecond, as Firestore stores it.
  var timestamp: Timestamp { get }
}

extension Timestamp: PointInTime {
  /// The time itself.
  public var timestamp: Timestamp { self }

  /// The first and the last time that Firestore can store.
  static let range =
    Timestamp(
      microseconds: secondsRange.lowerBound * 1_000_000
    )...Timestamp(
      microseconds: secondsRange.upperBound * 1_000_000 + 999_999
    )
}

extension Date: PointInTime {
  /// The date rounded to the nearest microsecond.
  ///
  /// A date outside the years 1 to 9999, such as `distantPast`, becomes the first or the last time
  /// that Firestore can store.
  public var timestamp: Timestamp {
    Timestamp(self)
      ?? (timeIntervalSince1970 < 0 ? Timestamp.range.lowerBound : Timestamp.range.upperBound)
  }
}
