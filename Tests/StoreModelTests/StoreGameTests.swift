import DocumentModel
import Foundation
import Logging
import StorageEngine
import SQLiteStorage
import TestSupport
import Testing

/// The whole store against a dictionary: random commits, queries of now and then, aggregations and
/// transactions, with indexes that come early, late and meanwhile, through imports, resets, trims
/// and restarts, and with listeners whose every snapshot is compared.
///
/// `HEARTH_OPERATIONS` sets how many operations each engine gets.
@Suite("The store against a model", .serialized)
struct StoreGameTests {
  private static let operations =
    ProcessInfo.processInfo.environment["HEARTH_OPERATIONS"].flatMap { Int($0) } ?? 1000

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

  @Test("Every answer is the model's, over SQLite, which is closed and opened meanwhile")
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
    for operation in 0..<Self.operations {
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
