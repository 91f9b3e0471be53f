package import Testing

/// Returns once a condition holds, or records an issue after `limit`.
///
/// For what offers no event to wait for. It looks again from a timer, because a task that yields in
/// a loop takes the threads that all tasks share from the awaited work. The time is the machine's,
/// also where the tested code has a `ManualClock`. After an issue or a cancellation it returns like
/// after success, so that the test can release what it holds.
package func eventually(
  _ awaited: String,
  within limit: Duration = .seconds(60),
  sourceLocation: SourceLocation = #_sourceLocation,
  _ holds: () async throws -> Bool
) async rethrows {
  let end = ContinuousClock.now + limit
  while try await !holds() {
    guard ContinuousClock.now < end else {
      Issue.record("Not within \(limit): \(awaited)", sourceLocation: sourceLocation)
      return
    }
    do { try await Task.sleep(for: .milliseconds(2)) } catch { return }
  }
}
