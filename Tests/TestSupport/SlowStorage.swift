package import StorageEngine
import Synchronization

/// A storage engine that behaves like a remote one.
///
/// Every call takes a while, and commits complete in any order. The guarantees of `OrderedStorage`
/// hold: commits become visible in the order of submission, and none completes before it is
/// visible.
package final class SlowStorage: OrderedStorage {
  private struct State {
    var random: SeededGenerator
    /// The task that ends when the last submitted commit is visible.
    var latest: Task<Void, Never>?
  }

  private let base: any OrderedStorage
  private let state: Mutex<State>

  /// Creates a wrapper around `base` with delays derived from `seed`.
  package init(_ base: any OrderedStorage = MemoryStorage(), seed: UInt64) {
    self.base = base
    state = Mutex(State(random: SeededGenerator(seed: seed)))
  }

  /// Yields to other tasks a random number of times.
  private func pause() async {
    let turns = state.withLock { Int.random(in: 0...20, using: &$0.random) }
    // Varies the order of what runs at once, by the seed.
    for _ in 0..<turns { await Task.yield() }
  }

  package func read<Result: Sendable>(
    _ body: (any StorageSnapshot) throws -> sending Result
  ) async throws -> sending Result {
    await pause()
    let result = try await base.read(body)
    await pause()
    return result
  }

  package func submit(
    _ batch: StorageBatch,
    expecting: [VersionExpectation],
    durability: Durability,
    completion: @escaping @Sendable (Result<UInt64, any Error>) -> Void
  ) {
    state.withLock { state in
      let earlier = state.latest
      state.latest = Task {
        await earlier?.value
        await pause()
        await withCheckedContinuation { visible in
          base.submit(batch, expecting: expecting, durability: durability) { result in
            visible.resume()
            Task {
              await self.pause()
              completion(result)
            }
          }
        }
      }
    }
  }

  package var sequence: UInt64 { base.sequence }

  package func close() async throws {
    await state.withLock { $0.latest }?.value
    try await base.close()
  }
}
