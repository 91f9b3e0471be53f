import Synchronization

/// The maximum time without data from a stream.
struct SilenceLimit: Sendable {
  let longest: Duration
  let clock: any Clock<Duration>

  /// The number of checks in that time, so that a silence is noticed at most a quarter late.
  private static let looks = 4

  /// The error thrown if no data arrived for too long.
  struct SilenceError: Error {
    /// The maximum time without data, in seconds.
    var seconds: Int64
  }

  /// A counter of arrivals.
  private final class Count: Sendable {
    let value = Mutex(0)
  }

  /// Runs work that calls `heard` whenever data arrives.
  ///
  /// If no data arrives for too long, the work is cancelled and `SilenceError` thrown. Otherwise
  /// any error of the work is thrown.
  func watch(
    _ work: @escaping @Sendable (_ heard: @escaping @Sendable () -> Void) async throws -> Void
  ) async throws {
    let count = Count()
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { group.cancelAll() }
      group.addTask { try await work { count.value.withLock { $0 += 1 } } }
      group.addTask {
        var (last, silentLooks) = (0, 0)
        while silentLooks < Self.looks {
          try await clock.sleep(for: longest / Self.looks)
          let now = count.value.withLock(\.self)
          silentLooks = now == last ? silentLooks + 1 : 0
          last = now
        }
        throw SilenceError(seconds: longest.components.seconds)
      }
      try await group.next()
    }
  }
}
