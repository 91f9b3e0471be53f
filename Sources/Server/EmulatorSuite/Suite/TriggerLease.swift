/// A time limit for disabled triggers, as a value without a clock of its own.
///
/// Firebase's tools disable triggers, do some work and enable them again. If a tool exits in
/// between, triggers would stay disabled. Therefore the state ends by itself unless it is renewed.
/// All times are measured from the same arbitrary moment.
struct TriggerLease: Sendable, Hashable {
  /// The time at which triggers were disabled; nil while they are enabled.
  private(set) var offSince: Duration?
  private var until = Duration.zero

  var isOn: Bool { offSince == nil }

  /// Disables triggers or renews the lease; returns true if they were enabled.
  mutating func switchOff(at now: Duration) -> Bool {
    until = now + Self.offMax
    guard offSince == nil else { return false }
    offSince = now
    return true
  }

  /// Enables triggers; returns true if they were disabled.
  mutating func switchOn() -> Bool {
    defer { offSince = nil }
    return offSince != nil
  }

  /// Returns the time until triggers are enabled again; nil if they are, zero if it has expired.
  func timeLeft(at now: Duration) -> Duration? { isOn ? nil : max(.zero, until - now) }

  /// The time that triggers stay disabled after a request.
  ///
  /// Tools disable triggers while they clear or import data, which takes seconds.
  static let offMax = Duration.seconds(600)
}
