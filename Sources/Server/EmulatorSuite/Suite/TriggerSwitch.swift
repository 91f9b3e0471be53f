import Logging
import ServiceLifecycle
import Synchronization
import TriggerDelivery

/// A service that a trigger switch enables and disables.
protocol TriggerTarget: Sendable {
  /// Sets whether later events reach functions.
  func setEnabled(_ isEnabled: Bool) async throws
  /// The number of events that reached no function because triggers were off.
  var eventsSkipped: Int { get }
}

extension DeliveryService: TriggerTarget {}

/// The switch that controls whether events reach functions, set through the hub.
///
/// It is on after each start of the suite.
final class TriggerSwitch: Sendable {
  private struct State {
    var lease = TriggerLease()
    /// The value of `eventsSkipped` when triggers were disabled.
    var skippedBefore = 0
  }

  private let clock: any Clock<Duration>
  private let now: @Sendable () -> Duration
  private let logger: Logger
  private let state = Mutex(State())
  private let changes: AsyncStream<Void>
  private let change: AsyncStream<Void>.Continuation

  /// Creates a switch that is on; `now` returns the time since a fixed moment.
  init(
    clock: any Clock<Duration> = ContinuousClock(),
    now: @escaping @Sendable () -> Duration = TriggerSwitch.timeSinceStart(),
    logger: Logger
  ) {
    self.clock = clock
    self.now = now
    self.logger = logger
    (changes, change) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// True if events reach functions now.
  var isEnabled: Bool { state.withLock { $0.lease.isOn } }

  /// The time since triggers were disabled and the time left; nil while they are enabled.
  var off: (since: Duration, left: Duration)? {
    let now = now()
    return state.withLock { state in
      guard let since = state.lease.offSince, let left = state.lease.timeLeft(at: now) else {
        return nil
      }
      return (now - since, left)
    }
  }

  /// Enables or disables all triggers; earlier events are still delivered.
  ///
  /// `run` enables them again unless another request disables them within `TriggerLease.offMax`.
  func set(enabled: Bool, in target: some TriggerTarget) async throws {
    try await target.setEnabled(enabled)
    guard !enabled else { return noteOn(target, isExpired: false) }
    let skipped = target.eventsSkipped
    let now = now()
    let isNews = state.withLock { state in
      let isNews = state.lease.switchOff(at: now)
      if isNews { state.skippedBefore = skipped }
      return isNews
    }
    change.yield()
    guard isNews else { return }
    logger.warning(
      "Triggers are off: events reach no function, and are lost to them",
      metadata: ["seconds.max": "\(TriggerLease.offMax / .seconds(1))"]
    )
  }

  /// Enables triggers again whenever the lease expires, until cancelled.
  func run(_ target: some TriggerTarget) async {
    for await _ in changes {
      while let left = state.withLock({ $0.lease.timeLeft(at: now()) }) {
        do {
          if left > .zero {
            try await clock.sleep(for: left)
          } else {
            try await expire(target)
          }
        } catch {
          // Only cancellation ends the wait with an error.
          return
        }
      }
    }
  }

  private func expire(_ target: some TriggerTarget) async throws {
    try await target.setEnabled(true)
    // Another request may have renewed the lease in the meantime.
    if let left = state.withLock({ $0.lease.timeLeft(at: now()) }), left > .zero {
      return try await target.setEnabled(false)
    }
    noteOn(target, isExpired: true)
  }

  private func noteOn(_ target: some TriggerTarget, isExpired: Bool) {
    let before = state.withLock { $0.lease.switchOn() ? $0.skippedBefore : nil }
    guard let before else { return }
    let count = target.eventsSkipped - before
    let text: Logger.Message =
      isExpired
      ? "Triggers are on again: the time for which they were switched off has ended"
      : "Triggers are on again"
    logger.log(
      level: isExpired || count > 0 ? .warning : .notice,
      text,
      metadata: ["events.skipped": "\(count)"]
    )
  }

  private static func timeSinceStart() -> @Sendable () -> Duration {
    let start = ContinuousClock.now
    return { ContinuousClock.now - start }
  }
}

/// The service that enables triggers again when their lease expires.
struct TriggerLeaseService: Service {
  let triggers: TriggerSwitch
  let deliveries: DeliveryService

  func run() async {
    await cancelWhenGracefulShutdown { await triggers.run(deliveries) }
  }
}
