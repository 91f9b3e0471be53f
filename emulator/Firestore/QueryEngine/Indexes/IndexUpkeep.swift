import Synchronization

/// What each index has cost the writers since a query last used it.
final class IndexUpkeep: Sendable {
  private let writes = Mutex<[UInt64: Int]>([:])
  private let suspicion: Int

  /// Counts of nothing; an index becomes suspect with each `suspicion` writes.
  init(suspicion: Int) {
    self.suspicion = suspicion
  }

  /// Counts entries that a commit writes or deletes; true when the index has become suspect.
  func add(_ entries: Int, to id: UInt64) -> Bool {
    guard entries > 0 else { return false }
    return writes.withLock { writes in
      let before = writes[id, default: 0]
      writes[id] = before + entries
      return before / suspicion != (before + entries) / suspicion
    }
  }

  /// The entries written or deleted since the last use.
  func cost(of id: UInt64) -> Int { writes.withLock { $0[id] ?? 0 } }

  /// Starts anew, because the index was used or is gone.
  func reset(_ id: UInt64) { writes.withLock { $0[id] = nil } }
}
