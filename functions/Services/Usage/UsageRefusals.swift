import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The payers whose calls a worker refuses without asking the ledger, because it refused them lately.
///
/// Thousands of events that wait for the next day then cost no writes.
final class UsageRefusals: Sendable {
  private struct State {
    var day: UsageDay?
    var refused: [Payer: (reason: String, end: Date)] = [:]
  }

  private let state = Mutex(State())

  /// Where nothing is left, calls of others that fail may give something back.
  private static let spentSeconds = 3600.0
  /// Where something is left, other calls give back what they reserved and did not use.
  private static let fullSeconds = 60.0
  /// The most payers remembered: a megabyte or two, after which the ledger is asked again.
  private static let payersMax = 10_000

  /// Throws `limitReached` while the payer's calls, or all calls, are refused.
  func check(_ payer: Payer, on day: UsageDay, now: Date) throws {
    try state.withLock { state in
      guard state.day == day else { return }
      for payer in [payer, .app] {
        if let refused = state.refused[payer], now < refused.end {
          throw Self.error(refused.reason, until: refused.end, now: now)
        }
      }
    }
  }

  /// Notes a refusal, and returns the error that says so, with the time until the next attempt.
  ///
  /// That is the next day at the latest. Only a limit that is used up holds the payer's next calls.
  func add(
    _ payer: Payer,
    _ reason: String,
    on day: UsageDay,
    isSpent: Bool,
    now: Date
  ) -> ServiceError {
    let end = min(day.end, now + (isSpent ? Self.spentSeconds : Self.fullSeconds))
    var error = Self.error(reason, until: end, now: now)
    error.isNews = state.withLock { state in
      if state.day != day || state.refused.count == Self.payersMax { state = State(day: day) }
      let isNews = state.refused[payer] == nil
      state.refused[payer] = (reason, isSpent ? end : now)
      return isNews
    }
    return error
  }

  private static func error(_ reason: String, until end: Date, now: Date) -> ServiceError {
    let milliseconds = (end.timeIntervalSince(now) * 1000).rounded(.up)
    return ServiceError(.limitReached, reason, retryAfter: .milliseconds(Int(milliseconds)))
  }
}
