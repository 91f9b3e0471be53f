import Synchronization

/// An alarm that rings at the earliest of the times for which it was set.
///
/// One alarm serves any number of deadlines, so a deadline costs a comparison rather than a timer.
package final class Alarm<Time: Comparable & Sendable>: Sendable {
  private let sleep: @Sendable (Time) async throws -> Void
  /// The times that tasks sleep until, earliest last: only earlier times are ever appended.
  private let sleeping = Mutex<[Time]>([])
  private let requests: AsyncStream<Time>
  private let request: AsyncStream<Time>.Continuation

  /// Creates an alarm that rings only while `run` is running.
  ///
  /// `sleep` waits until a time, or returns early, which makes the alarm ring early; it throws if
  /// the task is cancelled.
  package init(sleep: @escaping @Sendable (_ until: Time) async throws -> Void) {
    self.sleep = sleep
    // Bounded by `sleeping`: `run` takes each request at once.
    (requests, request) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
  }

  /// Schedules the alarm for `wake`, unless it already rings earlier.
  ///
  /// Whoever hears the alarm must set it again for later deadlines.
  package func set(_ wake: Time) {
    let isNew = sleeping.withLock { sleeping in
      if let next = sleeping.last, next <= wake { return false }
      sleeping.append(wake)
      return true
    }
    if isNew { request.yield(wake) }
  }

  /// Forgets all times for which the alarm was set; it may still ring for them.
  package func reset() { sleeping.withLock { $0 = [] } }

  /// Calls `ring` at each requested time until the task is cancelled.
  package func run(ring: @escaping @Sendable () -> Void) async {
    await withDiscardingTaskGroup { group in
      for await wake in requests {
        group.addTask {
          do { try await self.sleep(wake) } catch { return }
          self.sleeping.withLock { $0.removeAll { $0 == wake } }
          ring()
        }
      }
      group.cancelAll()
    }
  }
}
