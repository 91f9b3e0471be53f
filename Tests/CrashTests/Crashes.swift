import CSQLite
import DiskSimulation
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
  /// Runs new subjects in the rounds of a random test, and gives each to `body`.
  static func run<Subject: CrashSubject>(
    _ type: Subject.Type,
    atLeast roundsMin: Int = 1,
    _ test: String = #function,
    _ body: (Subject) -> Void = { _ in }
  ) async {
    await run(atLeast: roundsMin, test) { generator in
      let subject = Subject()
      try await subject.run(using: &generator)
      body(subject)
    }
  }

  /// Calls `body` in each round of a random test.
  ///
  /// The first run uses the printed seed. A finding is recorded with the seed of its run.
  static func run(
    atLeast roundsMin: Int = 1,
    _ test: String = #function,
    _ body: (inout SeededGenerator) async throws -> Void
  ) async {
    var seeds = SeededGenerator.forTest(test)
    var seed = seeds.seed
    for round in RandomRounds(atLeast: roundsMin) {
      var generator = SeededGenerator(seed: seed)
      do {
        try await body(&generator)
      } catch {
        Issue.record("after \(round) runs, HEARTH_TEST_SEED=\(seed): \(error)")
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
