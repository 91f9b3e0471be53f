import StorageEngine
import Synchronization
import TestSupport

/// A storage engine that runs a hook between the evaluation and the submission of a commit.
final class HookedStorage: OrderedStorage {
  private let base: any OrderedStorage
  private let hook = Mutex<(@Sendable () async throws -> Void)?>(nil)
  private let isArmed = Mutex(false)

  init(_ base: any OrderedStorage = MemoryStorage()) { self.base = base }

  /// Sets the hook that runs after each read in which `arm` was called.
  func afterArmedReads(_ hook: @escaping @Sendable () async throws -> Void) {
    self.hook.withLock { $0 = hook }
  }

  /// Arms the hook; called inside the read that it should follow.
  func arm() { isArmed.withLock { $0 = true } }

  func read<Result: Sendable>(
    _ body: (any StorageSnapshot) throws -> sending Result
  ) async throws -> sending Result {
    let result = try await base.read(body)
    let wasArmed = isArmed.withLock { isArmed in
      defer { isArmed = false }
      return isArmed
    }
    if wasArmed, let hook = hook.withLock({ $0 }) { try await hook() }
    return result
  }

  func submit(
    _ batch: StorageBatch,
    expecting: [VersionExpectation],
    durability: Durability,
    completion: @escaping @Sendable (Result<UInt64, any Error>) -> Void
  ) {
    base.submit(batch, expecting: expecting, durability: durability, completion: completion)
  }

  var sequence: UInt64 { base.sequence }

  func close() async throws { try await base.close() }
}
