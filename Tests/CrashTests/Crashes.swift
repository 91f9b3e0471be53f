import CSQLite
import DiskSimulation
import Foundation
import SQLiteStorage
import TestSupport
import Testing

/// A violated guarantee found after a crash.
struct CrashTestError: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) {
    self.description = description
  }
}

/// Repeated crashes, with a seed for each run.
enum Crashes {
  /// The number of crashes in each test; `HEARTH_CRASHES` overrides it.
  static let count = count(unlessSet: 120)

  /// The number of crashes for tests whose crashes take longer; `HEARTH_CRASHES` overrides it.
  static func count(unlessSet count: Int) -> Int {
    ProcessInfo.processInfo.environment["HEARTH_CRASHES"].flatMap { Int($0) } ?? count
  }

  /// Calls `body`, which returns its number of crashes, until there were `count`.
  ///
  /// The first run uses the printed seed. A finding is recorded with the seed of its run.
  static func run(
    _ count: Int = Crashes.count,
    _ test: String = #function,
    _ body: (inout SeededGenerator) async throws -> Int
  ) async {
    var seeds = SeededGenerator.forTest(test)
    var seed = seeds.seed
    var done = 0
    while done < count {
      var generator = SeededGenerator(seed: seed)
      do {
        done += try await body(&generator)
      } catch {
        Issue.record("after \(done) crashes, HEARTH_TEST_SEED=\(seed): \(error)")
        return
      }
      seed = seeds.next() >> 32
    }
  }

  /// Checks the database file with SQLite; throws what it finds.
  static func checkIntegrity(of disk: SimulatedDisk) throws {
    var handle: OpaquePointer?
    defer { sqlite3_close_v2(handle) }
    let path = "\(disk.folder)/\(SQLiteStore.fileName)"
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX
    var statement: OpaquePointer?
    defer { sqlite3_finalize(statement) }
    guard sqlite3_open_v2(path, &handle, flags, SimulatedDisk.vfsName) == SQLITE_OK,
      sqlite3_prepare_v2(handle, "pragma integrity_check", -1, &statement, nil) == SQLITE_OK,
      sqlite3_step(statement) == SQLITE_ROW, let text = sqlite3_column_text(statement, 0)
    else { throw CrashTestError("the file cannot be checked") }
    let words = String(cString: text)
    guard words == "ok" else { throw CrashTestError("integrity check: \(words)") }
  }
}
