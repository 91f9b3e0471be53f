#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

extension Timestamp {
  /// The time of a date, rounded to the nearest microsecond; nil outside years 1 to 9999.
  public init?(_ date: Date) {
    let interval = date.timeIntervalSince1970
    guard interval.isFinite, abs(interval) < 1e12 else { return nil }
    // The whole seconds are split off first: a double just about holds microseconds of this
    // century, and multiplying the sum would round twice.
    let seconds = interval.rounded(.down)
    let microseconds = Int64(seconds) * 1_000_000 + Int64(((interval - seconds) * 1e6).rounded())
    self.init(microseconds: microseconds)
    guard Self.secondsRange.contains(self.seconds) else { return nil }
  }

  /// The same time as a date, to the resolution of a double: a microsecond in this century.
  public var date: Date {
    Date(timeIntervalSince1970: Double(seconds) + Double(nanoseconds) / 1e9)
  }
}
