import DiskSimulation
import SQLiteStorage
import StorageEngine
import Synchronization
import TestSupport

/// Committers of batches, over the storage engine.
///
/// Every batch stores its number under its sequence. After a crash the sequences tell which batches
/// made the state; all other batches must have left no trace.
final class StorageCrashes: CrashSubject {
  private static let order = Keyspace("order")
  private static let spaces = [Keyspace("first"), Keyspace("second"), Keyspace("third")]

  private struct Promises {
    /// All batches by their numbers, also from before earlier crashes.
    var batches: [UInt64: StorageBatch] = [:]
    var nextNumber: UInt64 = 0
    /// The numbers of acknowledged batches by sequence.
    var acknowledged: [UInt64: UInt64] = [:]
    /// The last sequence that no power loss may undo.
    var synced: UInt64 = 0
  }

  static let livesMax = 8
  static let tasks = 1...4

  private let promises = Mutex(Promises())

  /// Adds a disk fault before the power loss, in half of the lives.
  static func plan(_ disk: SimulatedDisk, using generator: inout SeededGenerator) -> String {
    let span = [20, 80, 300].randomElement(using: &generator) ?? 20
    disk.losePower(afterChanges: Int.random(in: 1...span, using: &generator))
    let skipped = Int.random(in: 0...60, using: &generator)
    switch Int.random(in: 0..<8, using: &generator) {
    case 0:
      disk.fail(DiskFault(.sync, after: skipped / 6, count: 1))
      return "a failed sync"
    case 1:
      disk.fail(DiskFault(.write, after: skipped, count: 1 + skipped % 3))
      return "failed writes"
    case 2:
      disk.fail(DiskFault(.read, after: skipped, count: 1 + skipped % 3))
      return "failed reads"
    case 3:
      disk.limit(bytes: disk.bytes + skipped * 4096)
      return "a full disk"
    default: return "nothing wrong"
    }
  }

  func open(_ storage: SQLiteStore) -> SQLiteStore { storage }

  func work(_ store: SQLiteStore, on site: CrashSite) async {
    await site.untilCrash { _, generator in await self.commit(to: store, using: &generator) }
  }

  private func commit(to store: SQLiteStore, using generator: inout SeededGenerator) async {
    let content = Self.batch(using: &generator)
    let isSynced = Bool.random(using: &generator)
    let (number, batch) = promises.withLock { promises in
      promises.nextNumber += 1
      var batch = content
      batch.putAtSequence(Self.order, Self.bytes(promises.nextNumber))
      promises.batches[promises.nextNumber] = batch
      return (promises.nextNumber, batch)
    }
    do {
      let sequence = try await store.commit(batch, durability: isSynced ? .synced : .relaxed)
      promises.withLock { promises in
        promises.acknowledged[sequence] = number
        if isSynced { promises.synced = max(promises.synced, sequence) }
      }
    } catch {
      // Not acknowledged: it may exist after the crash or not, but never in part.
    }
  }

  private static func batch(using generator: inout SeededGenerator) -> StorageBatch {
    var batch = StorageBatch()
    for _ in 0..<Int.random(in: 1...6, using: &generator) {
      let space = spaces[Int.random(in: 0..<spaces.count, using: &generator)]
      let key = [UInt8.random(in: 0..<100, using: &generator)]
      switch Int.random(in: 0..<8, using: &generator) {
      case 0: batch.delete(space, key)
      case 1: batch.deleteRange(space, from: key, to: [key[0] + 8])
      default:
        let size = [10, 300, 6000].randomElement(using: &generator) ?? 10
        let byte = UInt8.random(in: .min ... .max, using: &generator)
        batch.put(space, key, [UInt8](repeating: byte, count: size))
      }
    }
    return batch
  }

  // MARK: Checks

  func check(_ store: SQLiteStore, after ending: Ending) async throws {
    let (numbers, found, sequence) = try await store.read { snapshot in
      var numbers: [(sequence: UInt64, number: UInt64)] = []
      try snapshot.scan(Self.order, prefix: []) { key, value in
        numbers.append((Self.number(key), Self.number(value.bytes)))
        return true
      }
      var found: [Keyspace: [[UInt8]: StoredValue]] = [:]
      for space in Self.spaces {
        try snapshot.scan(space, prefix: []) { key, value in
          found[space, default: [:]][key] = value
          return true
        }
      }
      return (numbers, found, snapshot.sequence)
    }
    try promises.withLock { promises in
      let promised =
        ending == .powerLoss ? promises.synced : promises.acknowledged.keys.max() ?? 0
      guard sequence >= promised else {
        throw CrashTestError(
          "commit \(promised) was acknowledged, the last one left is \(sequence)"
        )
      }
      guard sequence == 0 || numbers.map(\.sequence) == Array(1...sequence) else {
        throw CrashTestError("of 1...\(sequence) there are \(numbers.map(\.sequence))")
      }
      for (sequence, number) in numbers {
        guard let acknowledged = promises.acknowledged[sequence] else { continue }
        guard acknowledged == number else {
          throw CrashTestError("commit \(sequence) is \(number), acknowledged was \(acknowledged)")
        }
      }
      guard found == Self.replay(numbers, promises.batches) else {
        throw CrashTestError("the state is not that of commits 1...\(sequence)")
      }
      // Everything that a store contains when it opens is safe; what is missing is lost for good.
      promises.synced = sequence
      promises.acknowledged = Dictionary(uniqueKeysWithValues: numbers.map { ($0, $1) })
    }
  }

  private static func replay(
    _ numbers: [(sequence: UInt64, number: UInt64)],
    _ batches: [UInt64: StorageBatch]
  ) -> [Keyspace: [[UInt8]: StoredValue]] {
    var state: [Keyspace: [[UInt8]: StoredValue]] = [:]
    for (sequence, number) in numbers {
      for operation in batches[number]?.operations ?? [] {
        switch operation {
        case .put(let space, let key, let value):
          state[space, default: [:]][key] = StoredValue(bytes: value, version: sequence)
        case .delete(let space, let key): state[space]?[key] = nil
        case .deleteRange(let space, let from, let to):
          for byte in (from?[0] ?? 0)..<(to?[0] ?? .max) { state[space]?[[byte]] = nil }
        case .putAtSequence: break
        }
      }
    }
    return state.filter { !$0.value.isEmpty }
  }

  private static func bytes(_ number: UInt64) -> [UInt8] {
    StorageBatch.Operation.key(prefix: [], sequence: number)
  }

  private static func number(_ bytes: [UInt8]) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}
