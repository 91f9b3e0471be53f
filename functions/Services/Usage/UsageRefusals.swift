import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Calls that a worker refuses without asking the ledger, because it refused such a one just now.
///
/// Thousands of events that wait for the next day then cost few writes.
final class UsageRefusals: Sendable {
  /// A call that the ledger refused.
  struct Refusal: Sendable {
    /// Whose limit it was; the app's is that of all payers.
    var payer: Payer
    /// A sentence for the log.
    var reason: String
    /// What the call could use, in the unit of the limit; larger ones fit as little.
    var size: Double
    /// Whether nothing is left, so that no call fits.
    var isSpent: Bool
  }

  private struct State {
    var day: UsageDay?
    var refusals: [Payer: (refusal: Refusal, end: Date)] = [:]
  }

  private let state = Mutex(State())

  /// The wait where nothing is left: until the next day, in steps as long as an event's longest
  /// wait, because a limit may be raised.
  private static let spentSeconds = 600.0
  /// The time for which further calls are then refused without asking.
  private static let spentHoldSeconds = 60.0
  /// The wait, and this time, where calls under way have reserved what is left: they take seconds,
  /// and mostly use little of it.
  private static let fullSeconds = 2.0
  /// The most payers remembered: a megabyte or two, after which the ledger is asked again.
  private static let payersMax = 10_000

  /// Throws `limitReached` for a call like one that was refused just now.
  func check(_ payer: Payer, tokens: Int, dollars: Double, on day: UsageDay, now: Date) throws {
    try state.withLock { state in
      guard state.day == day else { return }
      // The app has a limit of dollars, and only users have one of tokens.
      for (payer, size) in [(payer, payer == .app ? dollars : Double(tokens)), (.app, dollars)] {
        guard let (refusal, end) = state.refusals[payer], now < end else { continue }
        if refusal.isSpent || size >= refusal.size { throw Self.error(refusal, day, now) }
      }
    }
  }

  /// Notes a refusal, and returns the error that says so, with the time until the next attempt.
  ///
  /// That is the next day at the latest. The payer's first refusal of the day is news.
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
