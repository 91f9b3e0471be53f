public import DocumentModel
import TriggerDelivery

/// The time of a suite, which stands still until a test advances it.
///
/// Documents, events, schedules and tasks use this time. `settle` also advances it to the next due
/// work. The timeouts of functions use the machine's time instead.
public struct SuiteClock: Sendable {
  let core: SuiteCore

  /// The suite's current time.
  public var now: Timestamp { core.time.now }

  /// Advances the time, and runs each retry, task and scheduled run that becomes due on the way.
  ///
  /// Each of them runs at its own time and ends, with everything that it causes, before the next
  /// begins. The call takes only as long as the functions run. Work that is due later stays
  /// pending. Records the same issues as `FunctionsSuite.settle`, and one for a duration below 0,
  /// because the time never goes back.
  public func advance(
    by duration: Duration,
    timeout: Duration = .seconds(30),
    runsMax: Int = 100_000,
    fileID: StaticString = #fileID,
    filePath: StaticString = #filePath,
    line: UInt = #line,
    column: UInt = #column
  ) async throws {
    guard duration >= .zero else {
      let text = "The clock goes only forward, and advance(by:) got \(duration)."
      try CallSite(fileID, filePath, line, column).record(FunctionsTestingError(.invalidTime, text))
      return
    }
    try await advance(
      to: now.advanced(by: duration),
      timeout: timeout,
      runsMax: runsMax,
      fileID: fileID,
      filePath: filePath,
      line: line,
      column: column
    )
  }

  /// Advances the time to `time`.
  ///
  /// If that time has passed, only the work that is due now runs.
  ///
  /// Records the same issues as `FunctionsSuite.settle`.
  public func advance(
    to time: any PointInTime,
    timeout: Duration = .seconds(30),
    runsMax: Int = 100_000,
    fileID: StaticString = #fileID,
    filePath: StaticString = #filePath,
    line: UInt = #line,
    column: UInt = #column
  ) async throws {
    try await CallSite(fileID, filePath, line, column).record {
      try await core.settle(until: time.timestamp, timeout: timeout, runsMax: runsMax)
    }
  }
}
