/// A maker of document ids whose order is that in which they were made.
///
/// Messages are ordered by the time of the server, which has a precision of milliseconds. The order
/// of the ids decides between messages of one device within the same millisecond.
struct SortableID: Sendable {
  /// The microseconds since 1970 of the last id.
  private var last: UInt64 = 0

  /// Returns an id of 20 characters that sorts after all earlier ones.
  mutating func next(at microseconds: Int64, random: () -> UInt64) -> String {
    last = max(min(UInt64(clamping: microseconds), Self.timeMax), last + 1)
    return Self.digits(of: last, count: Self.timeLength)
      + Self.digits(of: random(), count: Self.randomLength)
  }

  /// Makes the following ids sort after an id of an earlier run.
  mutating func follow(_ id: String) {
    guard id.utf8.count == Self.timeLength + Self.randomLength else { return }
    var time: UInt64 = 0
    for byte in id.utf8.prefix(Self.timeLength) {
      guard let digit = Self.alphabet.firstIndex(of: byte) else { return }
      let (shifted, hasOverflow) = time.multipliedReportingOverflow(by: 62)
      guard !hasOverflow, shifted < .max - 62 else { return }
      time = shifted + UInt64(digit)
    }
    // An id of the far future, which only a damaged file has, must not exhaust the numbers.
    if time < Self.timeMax { last = max(last, time) }
  }

  private static func digits(of number: UInt64, count: Int) -> String {
    var rest = number
    var bytes: [UInt8] = []
    for _ in 0..<count {
      bytes.append(alphabet[Int(rest % 62)])
      rest /= 62
    }
    return String(decoding: bytes.reversed(), as: UTF8.self)
  }

  /// The digits in the order in which Firestore sorts them.
  private static let alphabet = Array(
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8
  )
  /// Enough digits for the microseconds until the year 27,000.
  private static let timeLength = 10
  private static let randomLength = 10
  /// The microseconds since 1970 at the end of the year 9999.
  private static let timeMax: UInt64 = 253_402_300_800_000_000
}
