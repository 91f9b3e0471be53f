import DocumentModel
import Foundation
import RuntimeSupport

/// A time zone, queried in whole seconds since 1970.
struct Zone: Sendable, Hashable {
  private let zone: TimeZone

  /// The zone of this name in the IANA database; nil is UTC.
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

  /// A moment at which the clock is put forward or back.
  struct Change {
    var second: Int64
    /// The offsets from UTC before and after the change, in seconds.
    var before: Int64
    var after: Int64

    /// Whether the clock is put back, so that local times come twice.
    var repeatsTimes: Bool { after < before }
  }

  /// Local time minus UTC.
  func offset(at second: Int64) -> Int64 {
    Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(second))))
  }

  /// The first change that is later than `second`.
  func change(after second: Int64) -> Change? {
    var date = Date(timeIntervalSince1970: Double(second))
    // A zone may change its name or its rule but keep its offset.
    while let next = zone.nextDaylightSavingTimeTransition(after: date), next > date {
      let at = Int64(next.timeIntervalSince1970)
      let change = Change(second: at, before: offset(at: at - 1), after: offset(at: at))
      if change.before != change.after { return change }
      date = next
    }
    return nil
  }

  /// The latest change that may still make local times at `second` come twice.
  func lastChange(upTo second: Int64) -> Change? {
    var last: Change?
    var from = second - Self.changeSecondsMax
    while let change = change(after: from), change.second <= second {
      last = change
      from = change.second
    }
    return last
  }

  /// The moment of a local time: the gap's end for a skipped one, the first of a repeated one.
  func moment(ofLocal local: Int64) -> Int64 {
    var cursor = local - Self.changeSecondsMax
    while true {
      let moment = local - offset(at: cursor)
      guard let change = change(after: cursor), change.second <= moment else { return moment }
      if local < change.second + change.after { return change.second }
      cursor = change.second
    }
  }

  /// The largest clock change, made by islands that cross the date line.
  static let changeSecondsMax: Int64 = 26 * 3600
}

/// Division that rounds down, for times before 1970.
enum Floor {
  static func quotient(_ value: Int64, _ divisor: Int64) -> Int64 {
    value / divisor - (value % divisor < 0 ? 1 : 0)
  }
}
