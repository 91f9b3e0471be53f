import SQLiteStorage
import StorageEngine
import TestSupport

/// The engines that every case of this suite runs over.
enum EngineUnderTest: String, CaseIterable {
  case memory, sqlite, sqliteEphemeral

  /// Runs `body` on a new, empty store and closes it.
  func withStorage<Result>(
    _ body: (any OrderedStorage) async throws -> Result
  ) async throws -> Result {
    let folder = try TemporaryFolder()
    let storage: any OrderedStorage =
      switch self {
      case .memory: MemoryStorage()
      case .sqlite: try SQLiteStore(folder: folder.path("data"), logger: .silent)
      case .sqliteEphemeral:
        try SQLiteStore(
          folder: folder.path("data"),
          configuration: .init(isDurable: false),
          logger: .silent
        )
      }
    let result = try await body(storage)
    try await storage.close()
    return result
  }
}

let letters = Keyspace("letters")
let others = Keyspace("others")
let few = Keyspace("few_of_these", .few)
let fewMore = Keyspace("few_of_those", .few)
let log = Keyspace("log", .log)

extension StorageBatch {
  /// A batch with the given changes.
  static func make(_ body: (inout StorageBatch) -> Void) -> StorageBatch {
    var batch = StorageBatch()
    body(&batch)
    return batch
  }

  /// A batch that stores the same value at each key.
  static func putting(
    _ keys: [[UInt8]],
    _ value: [UInt8] = [1],
    in keyspace: Keyspace = letters
  ) -> StorageBatch {
    make { batch in
      for key in keys { batch.put(keyspace, key, value) }
    }
  }
}

extension StorageSnapshot {
  /// The keys of a range.
  func keys(
    _ keyspace: Keyspace = letters,
    from: [UInt8]? = nil,
    to: [UInt8]? = nil,
    descending: Bool = false,
    limit: Int = .max
  ) throws -> [[UInt8]] {
    var keys: [[UInt8]] = []
    try scan(keyspace, from: from, to: to, descending: descending) { key, _ in
      keys.append(key)
      return keys.count < limit
    }
    return keys
  }
}
