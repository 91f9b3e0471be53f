public import DocumentModel
import TriggerDelivery

/// The time of a suite, which stands still until a test lets it pass.
///
/// Documents, events, schedules and tasks follow it. `settle` also lets it jump to what is due.
/// Time-outs of functions use the machine's time.
public struct SuiteClock: Sendable {
  let core: SuiteCore

  /// The present time.
  public var now: Timestamp { core.time.now }

  /// Lets time pass, stopping at each retry, task and scheduled run that is due on the way.
  ///
  /// Each one runs at its time, and ends with everything it causes before the next. This takes only
  /// as long as the functions run. What is due later stays pending. Throws as
  /// `FunctionsSuite.settle` does.
  public func advance(
    by duration: Duration,
    timeout: Duration = .seconds(30),
    runsMax: Int = 100_000
  ) async throws {
    try await advance(to: now.advanced(by: duration), timeout: timeout, runsMax: runsMax)
  }

  /// Lets time pass until `time`; if that is past, only what is due now runs.
  ///
  /// Throws `FunctionsTestingError` as `FunctionsSuite.settle` does.
  public func advance(
    to time: Timestamp,
    timeout: Duration = .seconds(30),
    runsMax: Int = 100_000
  ) async throws {
    try await core.settle(until: time, timeout: timeout, runsMax: runsMax)
  }
}
