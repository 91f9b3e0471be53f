import Logging
import ServiceLifecycle
import Synchronization
import TriggerDelivery

/// What a switch turns on and off.
protocol TriggerTarget: Sendable {
  /// Sets whether later events reach functions.
  func setEnabled(_ isEnabled: Bool) async throws
  /// The events that were passed over so far.
  var eventsPassedOver: Int { get }
}

extension DeliveryService: TriggerTarget {}

/// Whether events reach functions, as last set through the hub; they do after each start.
final class TriggerSwitch: Sendable {
  private struct State {
    var lease = TriggerLease()
    /// The events that were passed over before triggers were switched off.
    var passedOverBefore = 0
  }

  private let clock: any Clock<Duration>
  private let now: @Sendable () -> Duration
  private let logger: Logger
  private let state = Mutex(State())
  private let changes: AsyncStream<Void>
  private let change: AsyncStream<Void>.Continuation

  /// A switch that is on; `now` tells the time since any one moment.
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

  /// Whether events reach functions now.
  var isEnabled: Bool { state.withLock { $0.lease.isOn } }

  /// How long triggers have been off, and how long they stay so; nil while they are on.
  var off: (since: Duration, left: Duration)? {
    let now = now()
    return state.withLock { state in
      guard let since = state.lease.offSince, let left = state.lease.timeLeft(at: now) else {
        return nil
      }
      return (now - since, left)
    }
  }

  /// Turns all triggers on or off; earlier events are still delivered.
  ///
  /// `run` turns them on again unless another request turns them off within `TriggerLease.offMax`.
  func set(enabled: Bool, in target: some TriggerTarget) async throws {
    try await target.setEnabled(enabled)
    guard !enabled else { return noteOn(target, isExpired: false) }
    let passedOver = target.eventsPassedOver
    let now = now()
    let isNews = state.withLock { state in
      let isNews = state.lease.switchOff(at: now)
      if isNews { state.passedOverBefore = passedOver }
      return isNews
    }
    change.yield()
    guard isNews else { return }
    logger.warning(
      "Triggers are off: events reach no function, and are lost to them",
      metadata: ["seconds.max": "\(TriggerLease.offMax / .seconds(1))"]
    )
  }

  /// Turns triggers on again when the time of being off is over, until cancelled.
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
          // Only a cancellation ends a wait.
          return
        }
      }
    }
  }

  private func expire(_ target: some TriggerTarget) async throws {
    try await target.setEnabled(true)
    // Somebody may have renewed it in between.
    if let left = state.withLock({ $0.lease.timeLeft(at: now()) }), left > .zero {
      return try await target.setEnabled(false)
    }
    noteOn(target, isExpired: true)
  }

  private func noteOn(_ target: some TriggerTarget, isExpired: Bool) {
    let before = state.withLock { $0.lease.switchOn() ? $0.passedOverBefore : nil }
    guard let before else { return }
    let count = target.eventsPassedOver - before
    let text: Logger.Message =
      isExpired
      ? "Triggers are on again: the time for which they were switched off has ended"
      : "Triggers are on again"
    logger.log(
      level: isExpired || count > 0 ? .warning : .notice,
      text,
      metadata: ["events.passed_over": "\(count)"]
    )
  }

  private static func timeSinceStart() -> @Sendable () -> Duration {
    let start = ContinuousClock.now
    return { ContinuousClock.now - start }
  }
}

/// The part of a switch that runs beside the suite.
struct TriggerLeaseService: Service {
  let triggers: TriggerSwitch
  let deliveries: DeliveryService

  func run() async {
    await cancelWhenGracefulShutdown { await triggers.run(deliveries) }
  }
}
