/// The injected clock of the pool, as durations since the pool was created.
struct PoolTime: Sendable {
  let now: @Sendable () -> Duration
  /// Sleeps until a time; throws if the task is cancelled.
  let sleep: @Sendable (_ until: Duration) async throws -> Void

  /// Creates a time source that measures `clock` from now on.
  init<C: Clock>(_ clock: C) where C.Duration == Duration {
    let start = clock.now
    now = { start.duration(to: clock.now) }
    sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
  }
}
