import DocumentModel
import Logging
import StorageEngine
import SQLiteStorage
import TestSupport
import Testing

/// Compares the whole store with a dictionary.
///
/// Operations are random commits, queries of present and past, aggregations and transactions.
/// Indexes appear at any time, imports, resets, trims and restarts occur, and every snapshot of the
/// listeners is compared.
@Suite("The store against a model", .serialized)
struct StoreGameTests {
  @Test("Every answer is the model's, over the engine in memory")
  func memory() async throws {
    let storage = MemoryStorage()
    try await play { storage }
  }

  @Test("Every answer is the model's, over an engine that is far away")
  func slow() async throws {
    let storage = SlowStorage(seed: SeededGenerator.forTest().seed)
    try await play { storage }
  }

  @Test("Every result equals the model's over SQLite, which is closed and reopened in between")
  func sqlite() async throws {
    let folder = try TemporaryFolder()
    var open: SQLiteStore?
    try await play {
      try await open?.close()
      let store = try SQLiteStore(
        folder: folder.path,
        configuration: .init(isDurable: false),
        logger: .init(label: "test") { _ in SwiftLogNoOpLogHandler() }
      )
      open = store
      return store
    }
    try await open?.close()
  }

  private func play(_ open: () async throws -> any OrderedStorage) async throws {
    var game = try await StoreGame(seed: SeededGenerator.forTest().seed, storage: try await open())
    for operation in RandomRounds(share: 3, atLeast: 500) {
      if operation % 250 == 249 {
        await game.stop()
        try await game.restart(over: try await open())
      }
      try await game.play()
      guard !game.hasFailed else { break }
    }
    if !game.hasFailed {
      try await game.checkListeners()
      try await game.checkEverything()
    }
    await game.stop()
  }
}
