/// For how long triggers stay off: a value that decides, with times since any one moment.
///
/// Firebase's tools switch triggers off, do something and switch them on again. A tool that dies in
/// between would leave them off for good, so being off ends by itself unless it is renewed.
struct TriggerLease: Sendable, Hashable {
  /// When triggers were switched off; nil while they are on.
  private(set) var offSince: Duration?
  private var until = Duration.zero

  /// Whether triggers are on.
  var isOn: Bool { offSince == nil }

  /// Switches triggers off, or prolongs it; returns whether they were on.
  mutating func switchOff(at now: Duration) -> Bool {
    until = now + Self.offMax
    guard offSince == nil else { return false }
    offSince = now
    return true
  }

  /// Switches triggers on; returns whether they were off.
  mutating func switchOn() -> Bool {
    defer { offSince = nil }
    return offSince != nil
  }

  /// How long triggers stay off if nobody renews it; nil while they are on, zero when it is over.
  func timeLeft(at now: Duration) -> Duration? { isOn ? nil : max(.zero, until - now) }

  /// The longest time between two requests to switch triggers off.
  ///
  /// A tool has them off while it clears or imports data, which takes seconds.
  static let offMax = Duration.seconds(600)
}
