import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The recent refusals of the ledger, by which a worker refuses similar calls directly.
///
/// Thousands of events that wait for the next day then cause few writes.
final class UsageRefusals: Sendable {
  /// A call that the ledger refused.
  struct Refusal: Sendable {
    /// The payer whose limit was reached; the app's limit is for all payers together.
    var payer: Payer
    /// The reason, as a sentence for the log.
    var reason: String
    /// The most that the call could use, in the unit of the limit.
    ///
    /// Larger calls do not fit either.
    var size: Double
    /// True if nothing is left, so that no call fits.
    var isSpent: Bool
  }

  private struct State {
    var day: UsageDay?
    var refusals: [Payer: (refusal: Refusal, end: Date)] = [:]
  }

  private let state = Mutex(State())

  /// The maximum delay of a retry if nothing is left.
  ///
  /// Events wait until the next day in steps as long as an event's longest delay, because a limit
  /// may be raised in the meantime.
  private static let spentSeconds = 600.0
  /// The time for which further calls are refused directly if nothing is left.
  private static let spentHoldSeconds = 60.0
  /// The delay, and the time of direct refusals, if calls in progress have reserved the rest.
  ///
  /// Such calls take seconds, and usually use little of their reservation.
  private static let fullSeconds = 2.0
  /// The maximum number of payers remembered, one to two megabytes.
  ///
  /// After that, the ledger is asked again.
  private static let payersMax = 10_000

  /// Throws `limitReached` for a call similar to one that was refused recently.
  func check(_ payer: Payer, tokens: Int, dollars: Double, on day: UsageDay, now: Date) throws {
    try state.withLock { state in
      guard state.day == day else { return }
      // Only the app has a limit of dollars, and only users have a limit of tokens.
      for (payer, size) in [(payer, payer == .app ? dollars : Double(tokens)), (.app, dollars)] {
        guard let (refusal, end) = state.refusals[payer], now < end else { continue }
        if refusal.isSpent || size >= refusal.size { throw Self.error(refusal, day, now) }
      }
    }
  }

  /// Records a refusal and returns its error, with the delay until the next attempt.
  ///
  /// The delay ends at the latest with the day. The error is news if it is the payer's first
  /// refusal of the day.
  func add(_ refusal: Refusal, on day: UsageDay, now: Date) -> ServiceError {
    var error = Self.error(refusal, day, now)
    error.isNews = state.withLock { state in
      if state.day != day || state.refusals.count == Self.payersMax { state = State(day: day) }
      let isNews = state.refusals[refusal.payer] == nil
      let hold = refusal.isSpent ? Self.spentHoldSeconds : Self.fullSeconds
      state.refusals[refusal.payer] = (refusal, now + hold)
      return isNews
    }
    return error
  }

  private static func error(_ refusal: Refusal, _ day: UsageDay, _ now: Date) -> ServiceError {
    let seconds = refusal.isSpent ? spentSeconds : fullSeconds
    let wait = min(seconds, day.end.timeIntervalSince(now))
    return ServiceError(
      .limitReached,
      refusal.reason,
      retryAfter: .milliseconds(Int((wait * 1000).rounded(.up)))
    )
  }
}
