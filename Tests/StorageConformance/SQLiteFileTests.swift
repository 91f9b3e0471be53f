import Foundation
import SQLiteStorage
import StatusCodes
import StorageEngine
import Testing
import TestSupport

@Suite("SQLite data folder")
struct SQLiteFileTests {
  private let folder: TemporaryFolder
  private var data: String { folder.path("data") }
  private var file: String { "\(data)/\(SQLiteStore.fileName)" }

  init() throws {
    folder = try TemporaryFolder()
  }

  private func open(_ configuration: SQLiteStore.Configuration = .init()) throws -> SQLiteStore {
    try SQLiteStore(folder: data, configuration: configuration, logger: .silent)
  }

  @Test("Only their owner reads the files, whatever folder they lie in")
  func rights() async throws {
    try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: false)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: data)
    let store = try open()
    try await store.commit(.putting([[1]]))
    for suffix in ["", "-wal", "-shm"] {
      let attributes = try FileManager.default.attributesOfItem(atPath: file + suffix)
      let rights = attributes[.posixPermissions] as? Int
      #expect(rights == 0o600, "\(suffix)")
    }
    try await store.close()
  }

  @Test("Commits, versions and the sequence survive a reopening")
  func reopens() async throws {
    let first = try open()
    try await first.commit(.putting([[1], [2]]))
    try await first.commit(.putting([[2]], [9], in: others), durability: .relaxed)
    try await first.close()
    let second = try open()
    let (keys, value) = try await second.read { snapshot in
      (try snapshot.keys(), try snapshot.get(others, [2]))
    }
    let next = try await second.commit(.putting([[3]]))
    try await second.close()

    #expect(keys == [[1], [2]])
    #expect(value == StoredValue(bytes: [9], version: 2))
    #expect(next == 3)
  }

  @Test("Commits survive without a close")
  func survivesAbandonment() async throws {
    do {
      let first = try open()
      try await first.commit(.putting([[1]]))
    }
    let second = try open()
    let keys = try await second.read { try $0.keys() }
    try await second.close()

    #expect(keys == [[1]])
    #expect(second.sequence == 1)
  }

  @Test("A second opening is refused and names the process; after a close it is not")
  func excludesOthers() async throws {
    let first = try open()
    let error = #expect(throws: StorageError.self) { _ = try open() }
    try await first.close()
    let second = try open()
    try await second.close()

    #expect(error?.kind == .inUse)
    #expect(error?.message.contains("\(getpid())") == true)
  }

  @Test(
    "A file that is not ours is refused and left alone",
    arguments: [
      Array("just some notes that were never a database".utf8),
      Array("SQLite format 3\0".utf8) + [UInt8](repeating: 0, count: 4080),
      [UInt8](repeating: 0xA5, count: 8192),
    ]
  )
  func refusesForeignFiles(bytes: [UInt8]) throws {
    try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
    try Data(bytes).write(to: URL(filePath: file))
    let error = #expect(throws: StorageError.self) { _ = try open() }

    #expect(error?.kind == .corrupt)
    #expect(error?.message.contains(file) == true)
    #expect(try Data(contentsOf: URL(filePath: file)) == Data(bytes))
    #expect(!FileManager.default.fileExists(atPath: file + "-wal"))
  }

  @Test("A file of a newer version is refused and left alone")
  func refusesNewerVersions() async throws {
    try await open().close()
    var bytes = try Data(contentsOf: URL(filePath: file))
    bytes[63] = 3
    try bytes.write(to: URL(filePath: file))
    let error = #expect(throws: StorageError.self) { _ = try open() }

    #expect(error?.kind == .corrupt)
    #expect(error?.message.contains("version 3") == true)
    #expect(try Data(contentsOf: URL(filePath: file)) == bytes)
  }

  @Test("A file cut short is refused and left alone")
  func refusesTruncatedFiles() async throws {
    let storage = try open()
    try await storage.commit(.putting((0..<200).map { [$0] }, [UInt8](repeating: 1, count: 500)))
    try await storage.close()
    let bytes = try Data(contentsOf: URL(filePath: file)).prefix(9000)
    try bytes.write(to: URL(filePath: file))
    let error = #expect(throws: StorageError.self) { _ = try open() }

    #expect(error?.kind == .corrupt)
    #expect(try Data(contentsOf: URL(filePath: file)) == bytes)
  }

  @Test("A damaged page throws when it is read, and other keyspaces go on")
  func reportsDamagedPages() async throws {
    let storage = try open()
    try await storage.commit(.putting([[1]], in: others))
    try await storage.commit(.putting([[1]]))
    try await storage.close()
    // Pages 1 to 4: the schema, `meta`, `others`, `letters`.
    var bytes = try Data(contentsOf: URL(filePath: file))
    #expect(bytes.count == 4 * 4096)
    bytes.replaceSubrange(3 * 4096..<4 * 4096, with: Data(repeating: 0xEE, count: 4096))
    try bytes.write(to: URL(filePath: file))

    let damaged = try open()
    let error = await #expect(throws: StorageError.self) {
      try await damaged.read { try $0.keys(letters) }
    }
    let intact = try await damaged.read { try $0.keys(others) }
    try await damaged.close()

    #expect(error?.kind == .corrupt)
    #expect(intact == [[1]])
  }

  @Test("A folder that cannot be made is an error that names it")
  func refusesUnwritableFolders() throws {
    try Data("a file".utf8).write(to: URL(filePath: data))
    let error = #expect(throws: StorageError.self) { _ = try open() }
    let below = #expect(throws: StorageError.self) {
      _ = try SQLiteStore(folder: data + "/deeper", logger: .silent)
    }

    #expect(error?.kind == .failed)
    #expect(error?.message.contains(data) == true)
    #expect(below?.kind == .failed)
  }

  @Test("A full disk refuses the batch whole, reads go on, and freed space is used")
  func survivesFullDisk() async throws {
    let storage = try open(.init(bytesMax: 64 * 4096))
    let value = [UInt8](repeating: 3, count: 10_000)
    var written = 0
    var refusal: StorageError?
    while refusal == nil, written < 100 {
      do {
        try await storage.commit(
          .make { batch in
            batch.put(letters, [UInt8(written), 0], [1])
            batch.put(others, [UInt8(written)], value)
            batch.put(letters, [UInt8(written), 1], [1])
          }
        )
        written += 1
      } catch let error as StorageError {
        refusal = error
      }
    }
    let (keys, big) = try await storage.read { snapshot in
      (try snapshot.keys(), try snapshot.keys(others))
    }
    try await storage.commit(.make { $0.deleteRange(others, from: nil, to: nil) })
    let after = try await storage.commit(.putting([[0xFF]], value, in: others))
    try await storage.close()

    #expect(refusal?.kind == .full)
    #expect(refusal?.statusCode == .resourceExhausted)
    #expect(written > 0)
    #expect(keys.count == 2 * written)
    #expect(big.count == written)
    #expect(after == UInt64(written) + 2)
  }

  @Test("In a group the batch that the disk refuses fails alone")
  func groupSurvivesOneRefusal() async throws {
    let storage = try open(.init(bytesMax: 64 * 4096))
    let outcomes = await withTaskGroup(of: (Int, Bool).self) { group in
      for number in 0..<20 {
        group.addTask {
          let size = number == 7 ? 1_000_000 : 10
          let batch = StorageBatch.make { batch in
            batch.put(letters, [UInt8(number)], [UInt8](repeating: 1, count: size))
          }
          do {
            try await storage.commit(batch)
            return (number, true)
          } catch {
            return (number, false)
          }
        }
      }
      return await group.reduce(into: [Int: Bool]()) { $0[$1.0] = $1.1 }
    }
    let keys = try await storage.read { try $0.keys() }
    try await storage.close()

    #expect(outcomes.filter { !$0.value }.keys.sorted() == [7])
    #expect(keys.count == 19)
    #expect(storage.sequence == 19)
  }

  @Test("A refused batch that first used a keyspace does not leave it behind")
  func rolledBackKeyspace() async throws {
    let storage = try open(.init(bytesMax: 16 * 4096))
    let big = [UInt8](repeating: 1, count: 100_000)
    await #expect(throws: StorageError.self) {
      try await storage.commit(.putting([[1]], big, in: others))
    }
    let absent = try await storage.read { try $0.keys(others) }
    try await storage.commit(.putting([[2]], in: others))
    let present = try await storage.read { try $0.keys(others) }
    try await storage.close()

    #expect(absent.isEmpty)
    #expect(present == [[2]])
  }

  @Test("More readers than connections wait for their turn")
  func readersTakeTurns() async throws {
    let storage = try open(.init(readersMax: 1))
    try await storage.commit(.putting([[1]]))
    let counts = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<40 {
        group.addTask { try await storage.read { try $0.keys().count } }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    try await storage.close()

    #expect(counts == Array(repeating: 1, count: 40))
  }
}
