import Synchronization

/// The longest time for which somebody who answers may say nothing.
struct SilenceLimit: Sendable {
  let longest: Duration
  let clock: any Clock<Duration>

  /// The looks in that time, so that a silence is noticed at most a quarter of it too late.
  private static let looks = 4

  /// Nothing was said for too long.
  struct Silence: Error {
    /// The silence that was allowed.
    var seconds: Int64
  }

  /// How often something was said.
  private final class Count: Sendable {
    let value = Mutex(0)
  }

  /// Does work that calls `heard` whenever something is said.
  ///
  /// Throws `Silence`, and cancels the work, when nothing was; otherwise what the work throws.
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
        throw Silence(seconds: longest.components.seconds)
      }
      try await group.next()
    }
  }
}
