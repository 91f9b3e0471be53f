public import DocumentModel
import TriggerDelivery

/// The time of a suite, which stands still until a test lets it pass.
///
/// Documents, events, schedules and tasks go by it. `settle` lets it jump to what is due as well.
/// Time-outs of functions are those of the machine.
public struct SuiteClock: Sendable {
  let core: SuiteCore

  /// What time it is.
  public var now: Timestamp { core.time.now }

  /// Lets time pass: each retry, task and scheduled run that is due on the way runs at its time, and
  /// comes to its end with all that it causes before the next.
  ///
  /// Takes as long as the functions run and no longer. What is due later stays pending. Throws as
  /// `FunctionsSuite.settle` does.
  public func advance(
    by duration: Duration,
    timeout: Duration = .seconds(30),
    runsMax: Int = 100_000
  ) async throws {
    try await advance(to: now.advanced(by: duration), timeout: timeout, runsMax: runsMax)
  }

  /// Lets time pass until it is this late; for a time that is past only what is due now runs.
  public func advance(
    to time: Timestamp,
    timeout: Duration = .seconds(30),
    runsMax: Int = 100_000
  ) async throws {
    try await core.settle(until: time, timeout: timeout, runsMax: runsMax)
  }
}
