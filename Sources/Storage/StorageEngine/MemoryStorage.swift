import Dispatch
import Synchronization

/// A storage engine that keeps sorted entries in memory, for tests.
///
/// A batch is applied and visible when `submit` returns. Completions are called later on the
/// engine's own queue, in the order of the sequences. A caller can therefore submit while it holds
/// a lock that the completion also takes.
///
/// `read` runs its body immediately on the caller's executor. The body sees a copy that shares all
/// unchanged entries with the store. Readers and writers do not wait for each other.
package final class MemoryStorage: OrderedStorage {
  private let state = Mutex(State())
  private let completions = DispatchQueue(label: "hearth.memory-storage.completions")

  /// Creates an empty store.
  package init() {}

  package func read<Result: Sendable>(
    _ body: (any StorageSnapshot) throws -> sending Result
  ) async throws -> sending Result {
    let snapshot = try state.withLock { state in
      guard !state.isClosed else { throw Self.closed }
      return state.contents
    }
    return try body(snapshot)
  }

  package func submit(
    _ batch: StorageBatch,
    expecting: [VersionExpectation],
    durability: Durability,
    completion: @escaping @Sendable (Result<UInt64, any Error>) -> Void
  ) {
    state.withLock { state in
      let result: Result<UInt64, any Error>
      if state.isClosed {
        result = .failure(Self.closed)
      } else if let failed = expecting.first(where: { !state.contents.holds($0) }) {
        result = .failure(StorageError.conflict(failed))
      } else {
        result = .success(state.contents.apply(batch))
      }
      // This is enqueued under the lock, so that completions run in the order of the sequences.
      completions.async { completion(result) }
    }
  }

  package var sequence: UInt64 {
    state.withLock { $0.contents.sequence }
  }

  /// Closes the store and frees its memory, after the completions of all earlier commits.
  package func close() async throws {
    state.withLock { state in
      state.isClosed = true
      state.contents = Contents(sequence: state.contents.sequence)
    }
    await withCheckedContinuation { continuation in
      completions.async { continuation.resume() }
    }
  }

  private static let closed = StorageError(.closed, "the store is closed")

  private struct State {
    var contents = Contents(sequence: 0)
    var isClosed = false
  }

  /// The content of the store as a value.
  ///
  /// A copy of it is a snapshot.
  private struct Contents: StorageSnapshot, Sendable {
    var sequence: UInt64
    var keyspaces: [Keyspace: SortedEntries] = [:]

    init(sequence: UInt64) {
      self.sequence = sequence
    }

    func get(_ keyspace: Keyspace, _ key: [UInt8]) -> StoredValue? {
      keyspaces[keyspace]?.get(key)
    }

    func scan(
      _ keyspace: Keyspace,
      from: [UInt8]?,
      to: [UInt8]?,
      descending: Bool,
      _ body: (_ key: [UInt8], _ value: StoredValue) throws -> Bool
    ) throws {
      try keyspaces[keyspace]?.scan(from: from, to: to, descending: descending, body)
    }

    func holds(_ expectation: VersionExpectation) -> Bool {
      get(expectation.keyspace, expectation.key)?.version == expectation.version
    }

    mutating func apply(_ batch: StorageBatch) -> UInt64 {
      sequence += 1
      for operation in batch.operations {
        switch operation {
        case .put(let keyspace, let key, let value):
          put(keyspace, key, value)
        case .putAtSequence(let keyspace, let prefix, let value):
          put(keyspace, Operation.key(prefix: prefix, sequence: sequence), value)
        case .delete(let keyspace, let key):
          keyspaces[keyspace]?.remove(key)
        case .deleteRange(let keyspace, let from, let to):
          keyspaces[keyspace]?.removeRange(from: from, to: to)
        }
      }
      return sequence
    }

    private typealias Operation = StorageBatch.Operation

    private mutating func put(_ keyspace: Keyspace, _ key: [UInt8], _ value: [UInt8]) {
      keyspaces[keyspace, default: SortedEntries()]
        .put(key, StoredValue(bytes: value, version: sequence))
    }
  }
}
