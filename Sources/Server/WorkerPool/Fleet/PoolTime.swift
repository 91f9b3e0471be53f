import Synchronization

/// The injected clock as the pool uses it: durations since the pool was made.
struct PoolTime: Sendable {
  /// The time now.
  let now: @Sendable () -> Duration
  /// Sleeps until a time; throws when the task is cancelled.
  let sleep: @Sendable (_ until: Duration) async throws -> Void

  /// The time of `clock`, from zero.
  init<C: Clock>(_ clock: C) where C.Duration == Duration {
    let start = clock.now
    now = { start.duration(to: clock.now) }
    sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
  }
}

/// Calls back once the earliest requested time has come.
///
/// One alarm serves all deadlines of the pool, so that an invocation costs a comparison and no
/// timer.
final class Alarm: Sendable {
  private let time: PoolTime
  /// The times for which a task sleeps, the earliest last: only an earlier one is ever added.
  private let sleeping = Mutex<[Duration]>([])
  private let requests: AsyncStream<Duration>
  private let request: AsyncStream<Duration>.Continuation

  /// An alarm that rings while `run` runs.
  init(_ time: PoolTime) {
    self.time = time
    (requests, request) = AsyncStream.makeStream()
  }

  /// Rings at `wake`, unless it rings earlier anyway; the callback then asks again.
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
