import Synchronization

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

/// An alarm that calls back at the earliest requested time.
///
/// One alarm serves all deadlines of the pool, so an invocation costs a comparison rather than a
/// timer.
final class Alarm: Sendable {
  private let time: PoolTime
  /// The times that tasks sleep until, earliest last: only earlier times are ever appended.
  private let sleeping = Mutex<[Duration]>([])
  private let requests: AsyncStream<Duration>
  private let request: AsyncStream<Duration>.Continuation

  /// Creates an alarm that rings only while `run` is running.
  init(_ time: PoolTime) {
    self.time = time
    // Only a time before all others is requested, and `run` takes it at once.
    (requests, request) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
  }

  /// Schedules the alarm for `wake`, unless it already rings earlier.
  ///
  /// The callback must schedule the alarm again for later deadlines.
  func set(_ wake: Duration) {
    let isNew = sleeping.withLock { sleeping in
      if let next = sleeping.last, next <= wake { return false }
      sleeping.append(wake)
      return true
    }
    if isNew { request.yield(wake) }
  }

  /// Calls `ring` at each requested time until the task is cancelled.
  func run(ring: @escaping @Sendable () -> Void) async {
    await withDiscardingTaskGroup { group in
      for await wake in requests {
        group.addTask {
          do { try await self.time.sleep(wake) } catch { return }
          self.sleeping.withLock { $0.removeAll { $0 == wake } }
          ring()
        }
      }
      group.cancelAll()
    }
  }
}
