import Dispatch
import StorageEngine
import Synchronization

/// One process's connection to a shared store; `cut` ends it as `kill -9` would.
final class SeveredStorage: OrderedStorage {
  private let base: any OrderedStorage
  private let isCut = Mutex(false)

  init(_ base: any OrderedStorage) {
    self.base = base
  }

  /// Cuts the connection: from now on every read and commit fails.
  func cut() { isCut.withLock { $0 = true } }

  func read<Result: Sendable>(
    _ body: (any StorageSnapshot) throws -> sending Result
  ) async throws -> sending Result {
    if isCut.withLock({ $0 }) { throw Self.gone }
    return try await base.read(body)
  }

  func submit(
    _ batch: StorageBatch,
    expecting: [VersionExpectation],
    durability: Durability,
    completion: @escaping @Sendable (Result<UInt64, any Error>) -> Void
  ) {
    // Submitted under the lock, so that nothing is written once `cut` has returned.
    isCut.withLock { isCut in
      guard !isCut else {
        return Self.queue.async { completion(.failure(Self.gone)) }
      }
      base.submit(batch, expecting: expecting, durability: durability, completion: completion)
    }
  }

  var sequence: UInt64 { base.sequence }

  func close() async throws {}

  private static let gone = StorageError(.closed, "the process is gone")
  private static let queue = DispatchQueue(label: "severed-storage")
}
