import DocumentModel
import Foundation
import StatusCodes

/// A time zone whose times are in whole seconds since 1970.
struct Zone: Sendable, Hashable {
  private let zone: TimeZone

  /// Creates the zone with a name in the IANA database; nil is UTC.
  init(_ name: String?) throws(StatusError) {
    guard let name else {
      zone = .gmt
      return
    }
    guard let found = TimeZone(identifier: name) else {
      let known = TimeZone.knownTimeZoneIdentifiers.first { Self.isMeant($0, by: name) }
      throw .invalidArgument(
        "There is no time zone \"\(name)\"; "
          + (known.map { "did you mean \($0)?" } ?? "use an IANA name such as Europe/Berlin.")
      )
    }
    zone = found
  }

  private static func isMeant(_ identifier: String, by name: String) -> Bool {
    let wanted = name.lowercased().replacing(" ", with: "_")
    let known = identifier.lowercased()
    return known == wanted || known.hasSuffix("/" + wanted)
  }

  /// A change of the clock forward or backward.
  struct Change {
    var second: Int64
    /// The offset from UTC before the change and, in `after`, the offset after it, in seconds.
    var before: Int64
    var after: Int64

    /// True if the clock is set back, so that local times are repeated.
    var repeatsTimes: Bool { after < before }
  }

  /// Returns local time minus UTC, in seconds.
  func offset(at second: Int64) -> Int64 {
    Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(second))))
  }

  /// Returns the first clock change later than `second`.
  func change(after second: Int64) -> Change? {
    var date = Date(timeIntervalSince1970: Double(second))
    // A transition may change the zone's name or rule but keep its offset.
    while let next = zone.nextDaylightSavingTimeTransition(after: date), next > date {
      let at = Int64(next.timeIntervalSince1970)
      let change = Change(second: at, before: offset(at: at - 1), after: offset(at: at))
      if change.before != change.after { return change }
      date = next
    }
    return nil
  }

  /// Returns the latest clock change that may cause local times to be repeated at `second`.
  func lastChange(upTo second: Int64) -> Change? {
    var last: Change?
    var from = second - Self.changeSecondsMax
    while let change = change(after: from), change.second <= second {
      last = change
      from = change.second
    }
    return last
  }

  /// Returns the moment of a local time.
  ///
  /// For a skipped time it is the end of the gap; for a repeated time, the first occurrence.
  func moment(ofLocal local: Int64) -> Int64 {
    var cursor = local - Self.changeSecondsMax
    while true {
      let moment = local - offset(at: cursor)
      guard let change = change(after: cursor), change.second <= moment else { return moment }
      if local < change.second + change.after { return change.second }
      cursor = change.second
    }
  }

  /// The largest clock change; islands that switch sides of the date line make such changes.
  static let changeSecondsMax: Int64 = 26 * 3600
}

/// Division that rounds down, as needed for times before 1970.
enum Floor {
  static func quotient(_ value: Int64, _ divisor: Int64) -> Int64 {
    value / divisor - (value % divisor < 0 ? 1 : 0)
  }
}
