import Synchronization

/// The maintenance cost of each index since a query last used it.
final class IndexMaintenanceCost: Sendable {
  private let writes = Mutex<[UInt64: Int]>([:])
  private let evaluationInterval: Int

  /// Creates empty counts; an index is due for evaluation after every `suspicion` writes.
  init(evaluationInterval: Int) {
    self.evaluationInterval = evaluationInterval
  }

  /// Counts entries that a commit writes or deletes.
  ///
  /// Returns true if the index is due for evaluation.
  func add(_ entries: Int, to id: UInt64) -> Bool {
    guard entries > 0 else { return false }
    return writes.withLock { writes in
      let before = writes[id, default: 0]
      writes[id] = before + entries
      return before / evaluationInterval != (before + entries) / evaluationInterval
    }
  }

  /// Returns the number of entries written or deleted since the last use.
  func cost(of id: UInt64) -> Int { writes.withLock { $0[id] ?? 0 } }

  /// Resets the count, because the index was used or removed.
  func reset(_ id: UInt64) { writes.withLock { $0[id] = nil } }
}
