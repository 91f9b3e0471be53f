import DiskSimulation
import Dispatch
import LibC
import SQLiteStorage
import StatusCodes
import StorageEngine
import Synchronization
import Testing
import TestSupport

@Suite("The storage engine on a failing disk")
struct DiskFaultTests {
  private let folder: TemporaryFolder
  private let space = Keyspace("things")
  private let database = SQLiteStore.fileName

  init() throws {
    folder = try TemporaryFolder()
  }

  private func open(
    logPagesMax: Int = 20_000,
    bytesFree: Int? = nil,
    log: LogCapture = LogCapture(),
    onFailure: @escaping @Sendable (StorageError) -> Void = { _ in }
  ) throws -> SQLiteStore {
    try SQLiteStore(
      folder: folder.path,
      configuration: .init(
        logPagesMax: logPagesMax,
        fileSystem: SimulatedDisk.vfsName,
        bytesFree: { _ in bytesFree }
      ),
      logger: log.logger(),
      onFailure: onFailure
    )
  }

  private func putting(_ key: UInt8, bytes: Int = 1) -> StorageBatch {
    var batch = StorageBatch()
    batch.put(space, [key], [UInt8](repeating: key, count: bytes))
    return batch
  }

  private func keys(_ store: SQLiteStore) async throws -> [UInt8] {
    try await store.read { snapshot in
      var keys: [UInt8] = []
      try snapshot.scan(self.space, prefix: []) { key, _ in
        keys += key
        return true
      }
      return keys
    }
  }

  private func refusal(_ body: () async throws -> Void) async -> StorageError? {
    do {
      try await body()
      return nil
    } catch {
      return error as? StorageError
    }
  }

  // MARK: Syncs

  @Test("After a failed sync nothing is acknowledged until a restart, and reads go on")
  func failedSync() async throws {
    let disk = SimulatedDisk(folder: folder.path)
    let failures = Mutex<[StorageError]>([])
    let store = try open { failure in failures.withLock { $0.append(failure) } }
    try await store.commit(putting(1))
    disk.fail(DiskFault(.sync, count: 1))
    let first = await refusal { try await store.commit(putting(2)) }
    let second = await refusal { try await store.commit(putting(3)) }
    let relaxed = await refusal { try await store.commit(putting(4), durability: .relaxed) }
    // Readers of the log wait for the commit that the store reports.
    #expect(store.sequence == 1)
    let read = try await keys(store)
    let closing = await refusal { try await store.close() }

    #expect(first?.kind == .failed)
    #expect(second?.message.contains("refused until a restart") == true)
    #expect(second?.message.contains(folder.path) == true)
    #expect(relaxed?.message == second?.message)
    #expect(closing?.message == second?.message)
    #expect(store.failure?.message == second?.message)
    #expect(failures.withLock { $0.map(\.message) } == [second?.message])
    #expect(read == [1])
  }

  @Test("A failed sync of the file itself, which a checkpoint finds, refuses writes as well")
  func failedCheckpoint() async throws {
    let disk = SimulatedDisk(folder: folder.path)
    let store = try open(logPagesMax: 8)
    disk.fail(DiskFault(.sync, suffix: database))
    var error: StorageError?
    for number in 0..<200 where error == nil {
      error = await refusal { try await store.commit(putting(UInt8(number), bytes: 9000)) }
    }
    try? await store.close()

    #expect(error?.message.contains("refused until a restart") == true)
  }

  // commit 1    relaxed: written, not synced
  // commit 2    synced: its sync fails, and the system forgets that commit 1 was not safe
  // restart     the system still shows commit 1
  // commit 3    synced; depends on commit 1
  // power loss
  @Test("What is acknowledged after the restart that follows a failed sync survives power loss")
  func restartAfterFailedSync() async throws {
    await Crashes.run(atLeast: 10) { generator in
      var disk = SimulatedDisk(folder: folder.path)
      var store = try open()
      try await store.commit(putting(0))
      try await store.commit(putting(1, bytes: 9000), durability: .relaxed)
      disk.fail(DiskFault(.sync, count: 1))
      _ = await refusal { try await store.commit(putting(2)) }
      try? await store.close()

      disk = disk.afterKill()
      store = try open()
      try await store.commit(putting(3))
      disk.losePower()
      try? await store.close()
      disk = disk.afterPowerLoss(using: &generator)
      store = try open()
      let left = try await keys(store)
      try await store.close()

      guard left.starts(with: [0, 1]), left.last == 3 else {
        throw CrashTestError("of 0, 1 and 3 there are \(left)")
      }
    }
  }

  // commit 1    relaxed; its sync fails, and the medium holds a part of it
  // restart     moves the log that the system shows to the file
  // power loss  during that move
  @Test("A loss of power while a restart repairs what a failed sync left harms nothing")
  func powerLossInRestartAfterFailedSync() async throws {
    await Crashes.run(atLeast: 10) { generator in
      var disk = SimulatedDisk(folder: folder.path)
      var store = try open()
      for number in 0..<4 { try await store.commit(putting(UInt8(number), bytes: 9000)) }
      for number in 4..<8 {
        try await store.commit(putting(UInt8(number), bytes: 9000), durability: .relaxed)
      }
      disk.fail(DiskFault(.sync, count: 1))
      _ = await refusal { try await store.commit(putting(8)) }
      try? await store.close()

      disk = disk.afterKill()
      disk.losePower(afterChanges: Int.random(in: 1...24, using: &generator))
      try? await open().close()
      disk = disk.afterPowerLoss(using: &generator)
      store = try open()
      let left = try await keys(store)
      try await store.close()

      try Crashes.checkIntegrity(of: disk)
      guard left.starts(with: 0..<4), left == Array(0..<UInt8(left.count)) else {
        throw CrashTestError("of 0 to 8 there are \(left)")
      }
    }
  }

  // MARK: Disk space

  @Test("A full disk refuses batches whole and names the folder; with space again it goes on")
  func fullDisk() async throws {
    let disk = SimulatedDisk(folder: folder.path)
    let store = try open(logPagesMax: 16)
    try await store.commit(putting(1))
    disk.limit(bytes: disk.bytes + 100_000)
    var written = 1
    var error: StorageError?
    for number in 2..<100 where error == nil {
      error = await refusal { try await store.commit(putting(UInt8(number), bytes: 9000)) }
      if error == nil { written += 1 }
    }
    // A large group is refused too, each batch of it.
    let refused = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<20 {
        group.addTask {
          await refusal { try await store.commit(putting(200, bytes: 60_000)) }?.kind == .full
        }
      }
      return await group.reduce(true) { $0 && $1 }
    }
    let whileFull = try await keys(store)
    disk.heal()
    let sequence = try await store.commit(putting(201, bytes: 9000))
    let afterwards = try await keys(store)
    try await store.close()
    try Crashes.checkIntegrity(of: disk)

    #expect(error?.kind == .full)
    #expect(error?.statusCode == .resourceExhausted)
    #expect(error?.message.contains(folder.path) == true)
    #expect(refused)
    #expect(whileFull == (1...UInt8(written)).map { $0 })
    #expect(afterwards == whileFull + [201])
    #expect(sequence == UInt64(written) + 1)
    #expect(store.failure == nil)
  }

  @Test("What a process left in the log opens on a full disk, to be read and to be deleted")
  func opensOnFullDisk() async throws {
    var disk = SimulatedDisk(folder: folder.path)
    var store = try open()
    for number in 0..<40 { try await store.commit(putting(UInt8(number), bytes: 9000)) }
    disk.losePower()
    try? await store.close()
    disk = disk.afterKill()
    disk.limit(bytes: disk.bytes)
    store = try open()
    let found = try await keys(store)
    disk.heal()
    try await store.commit(putting(40))
    try await store.close()

    #expect(found == (0..<40).map { $0 })
  }

  // killed      the log holds 40 batches and the space reserved after them; the disk is full
  // restart     frees the reserved space, moves nothing, and reports how much is missing
  // stop        moves nothing either, and leaves the log
  // restart     with space again: moves everything
  @Test("After a kill a full disk opens with what was reserved and says how much is missing")
  func killedOnFullDisk() async throws {
    var disk = SimulatedDisk(folder: folder.path)
    var store = try open()
    for number in 0..<40 { try await store.commit(putting(UInt8(number), bytes: 9000)) }
    disk.losePower()
    try? await store.close()
    disk = disk.afterKill()
    let killed = disk.bytes
    let size = try #require(disk.bytes(of: database))
    disk.limit(bytes: killed)
    let log = LogCapture()
    store = try open(bytesFree: 0, log: log)
    let opened = disk.bytes
    let found = try await keys(store)
    // Small commits fit into the reserved space; large ones are refused whole.
    try await store.commit(putting(40))
    let refused = await refusal { try await store.commit(putting(41, bytes: 4 << 20)) }
    let whileFull = try await keys(store)
    try await store.close()
    let left = disk.bytes(of: database)

    disk = disk.afterKill()
    store = try open(bytesFree: .max)
    let afterwards = try await keys(store)
    let moved = disk.bytes(of: database) ?? 0
    try await store.close()
    try Crashes.checkIntegrity(of: disk)

    #expect(opened <= killed - 500_000)
    #expect(found == (0..<40).map { $0 })
    #expect(refused?.kind == .full)
    #expect(whileFull == (0...40).map { $0 })
    #expect(left == size)
    #expect(afterwards == whileFull)
    #expect(moved > size + 40 * 9000)
    let warnings = log.entries.map(\.message).filter { $0.contains("missing") }
    #expect(warnings.count == 2)
    for warning in warnings {
      let missing = warning.split(separator: " ").compactMap { Int($0) }.first
      // The file lacks all batches, and a start needs some extra space.
      #expect(missing ?? 0 > 40 * 9000 && missing ?? 0 < 40 * 9000 * 2 + 300_000, "\(warning)")
      #expect(warning.contains("no space is left on the disk of \(folder.path)"))
    }
  }

  @Test("Of a log that was started over, a start cuts off the old pages and no new one")
  func cutsOldGeneration() async throws {
    await Crashes.run(atLeast: 10) { generator in
      var disk = SimulatedDisk(folder: folder.path)
      var store = try open(logPagesMax: 32)
      let count = UInt8.random(in: 20...60, using: &generator)
      for number in 0..<count { try await store.commit(putting(number, bytes: 9000)) }
      disk.losePower()
      try? await store.close()
      disk = disk.afterKill()
      let before = disk.bytes(of: "\(database)-wal") ?? 0
      store = try open(logPagesMax: 32, bytesFree: 0)
      let after = disk.bytes(of: "\(database)-wal") ?? 0
      let left = try await keys(store)
      try await store.close()

      try Crashes.checkIntegrity(of: disk)
      guard left == Array(0..<count), after <= before else {
        throw CrashTestError(
          "of \(count) there are \(left); the log went from \(before) to \(after)"
        )
      }
    }
  }

  @Test(
    "A quota or a bound on files that is used up is reported as missing space",
    arguments: [EDQUOT, EFBIG]
  )
  func usedUpQuota(number: Int32) async throws {
    let disk = SimulatedDisk(folder: folder.path)
    let store = try open()
    try await store.commit(putting(1))
    disk.fail(DiskFault(.write, number: number))
    let error = await refusal { try await store.commit(putting(2)) }
    disk.heal()
    try await store.commit(putting(3))
    let found = try await keys(store)
    try await store.close()

    #expect(error?.kind == .full)
    #expect(error?.message.contains("no space is left for \(folder.path)") == true)
    #expect(found == [1, 3])
  }

  @Test("A disk that turns read-only refuses writes, says so, and is read on")
  func readOnly() async throws {
    let disk = SimulatedDisk(folder: folder.path)
    let store = try open()
    try await store.commit(putting(1))
    disk.fail(DiskFault(.write, number: EROFS))
    let error = await refusal { try await store.commit(putting(2)) }
    let found = try await keys(store)
    disk.heal()
    try await store.commit(putting(3))
    try await store.close()

    #expect(error?.kind == .full)
    #expect(error?.message.contains("cannot be written") == true)
    #expect(found == [1])
  }

  // MARK: Reads and writes

  @Test("A failed write leaves nothing of its batch and harms no later one", arguments: 0..<12)
  func failedWrite(skipped: Int) async throws {
    var generator = SeededGenerator(seed: UInt64(skipped))
    var disk = SimulatedDisk(folder: folder.path)
    var store = try open()
    try await store.commit(putting(1))
    disk.fail(DiskFault(.write, after: skipped, count: 1))
    let error = await refusal { try await store.commit(putting(2, bytes: 15_000)) }
    try await store.commit(putting(3))
    disk.losePower()
    try? await store.close()
    disk = disk.afterPowerLoss(using: &generator)
    store = try open()
    let left = try await keys(store)
    try await store.close()

    #expect(left == (error == nil ? [1, 2, 3] : [1, 3]))
  }

  @Test("A failed read is an error of that read alone")
  func failedRead() async throws {
    var disk = SimulatedDisk(folder: folder.path)
    var store = try open()
    for number in 0..<40 { try await store.commit(putting(UInt8(number), bytes: 9000)) }
    try await store.close()
    disk = disk.afterKill()
    store = try open()
    disk.fail(DiskFault(.read, suffix: database))
    let error = await refusal { _ = try await keys(store) }
    disk.heal()
    let found = try await keys(store)
    try await store.close()

    #expect(error?.kind == .failed)
    #expect(error?.statusCode == .internal)
    #expect(found.count == 40)
  }

  @Test("Damaged files are errors or wrong values, never the end of the process")
  func damage() async throws {
    var opened = 0
    var complete = 0
    var rounds = 0
    await Crashes.run(atLeast: 40) { generator in
      rounds += 1
      let disk = SimulatedDisk(folder: folder.path)
      var store = try open()
      for number in 0..<20 { try await store.commit(putting(UInt8(number), bytes: 700)) }
      try await store.close()
      let size = disk.bytes(of: database) ?? 0
      for _ in 0..<Int.random(in: 1...20, using: &generator) {
        disk.damage(
          database,
          at: Int.random(in: 0..<size, using: &generator),
          bits: 1 << UInt8.random(in: 0..<8, using: &generator)
        )
      }
      do {
        store = try open()
      } catch let error as StorageError {
        guard [.corrupt, .failed].contains(error.kind) else { throw error }
        return
      }
      opened += 1
      if let found = try? await keys(store), found == Array(0..<20) { complete += 1 }
      for _ in 0..<2 {
        let errors = [
          await refusal { _ = try await keys(store) },
          await refusal { try await store.commit(putting(200, bytes: 9000)) },
        ]
        for error in errors {
          guard error.map({ [.corrupt, .failed, .full].contains($0.kind) }) ?? true else {
            throw CrashTestError("\(String(describing: error))")
          }
        }
      }
      try? await store.close()
    }

    // Most damage is in a single page, not in the pages that every file needs.
    #expect(opened > rounds / 10)
    #expect(complete > 0)
  }

  // MARK: The log's size

  @Test("Readers that are busy all the time do not keep the log growing")
  func boundsLogUnderReads() async throws {
    let disk = SimulatedDisk(folder: folder.path)
    let store = try open(logPagesMax: 20)
    let flag = Flag()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          while !flag.isSet.load(ordering: .relaxed) {
            _ = try await keys(store)
            // A read does not suspend: the readers would keep the pool's threads from the writer.
            await Task.yield()
          }
        }
      }
      for number in 0..<400 {
        try await store.commit(putting(UInt8(number % 50), bytes: 3000), durability: .relaxed)
      }
      flag.isSet.store(true, ordering: .relaxed)
      try await group.waitForAll()
    }
    let bytes = disk.bytes(of: database + "-wal") ?? 0
    try await store.close()

    // Four times the limit and one commit.
    #expect(bytes < (4 * 20 + 10) * 4200)
  }

  @Test("The log keeps its space, which commits fill again and again")
  func keepsLogsSpace() async throws {
    let disk = SimulatedDisk(folder: folder.path)
    let store = try open(logPagesMax: 20)
    var sizes: [Int] = []
    for number in 0..<200 {
      try await store.commit(putting(UInt8(number % 5), bytes: 1000))
      sizes.append(disk.bytes(of: database + "-wal") ?? 0)
    }
    try await store.close()

    // The log grows in steps, ahead of the commits, and never shrinks.
    #expect(sizes == sizes.sorted())
    #expect(Set(sizes.prefix(10)).count < 6)
  }

  @Test("A full disk gets back the space that the log keeps ahead")
  func givesBackLogsSpace() async throws {
    let disk = SimulatedDisk(folder: folder.path)
    let store = try open(logPagesMax: 4000)
    try await store.commit(putting(1))
    // The space is reserved after the first commit completes and before the second begins.
    try await store.commit(putting(1))
    let ahead = disk.bytes(of: database + "-wal") ?? 0
    disk.limit(bytes: disk.bytes)
    var error: StorageError?
    for number in 0..<200 where error == nil {
      error = await refusal { try await store.commit(putting(UInt8(number), bytes: 20_000)) }
    }
    let full = disk.bytes(of: database + "-wal") ?? 0
    disk.heal()
    try await store.commit(putting(2))
    let later = disk.bytes(of: database + "-wal") ?? 0
    try await store.close()

    #expect(ahead > 1 << 20)
    #expect(error?.kind == .full)
    #expect(full < ahead)
    // From now on it takes no more space than it needs.
    #expect(later < full + 100_000)
  }

  @Test("A read that does not end makes writers wait for it with a clear status, and then no more")
  func refusesWhileLogIsHeld() async throws {
    let disk = SimulatedDisk(folder: folder.path)
    let store = try open(logPagesMax: 20)
    try await store.commit(putting(0))
    let error = try await store.read { snapshot -> StorageError? in
      _ = try snapshot.get(self.space, [0])
      for number in 0..<200 {
        if let error = commitBlocking(putting(UInt8(number % 50), bytes: 3000), store) {
          return error
        }
      }
      return nil
    }
    let bytes = disk.bytes(of: database + "-wal") ?? 0
    try await store.commit(putting(51))
    try await store.close()

    #expect(error?.kind == .full)
    #expect(error?.message.contains("reads that began long ago still use it") == true)
    #expect(bytes < (4 * 20 + 10) * 4200)
  }
}

private final class Flag: Sendable {
  let isSet = Atomic(false)
}

/// Commits from synchronous code and blocks the thread, which only a test may do.
private func commitBlocking(_ batch: StorageBatch, _ storage: any OrderedStorage) -> StorageError? {
  let semaphore = DispatchSemaphore(value: 0)
  let outcome = Mutex<StorageError?>(nil)
  storage.submit(batch, expecting: [], durability: .relaxed) { result in
    if case .failure(let error) = result { outcome.withLock { $0 = error as? StorageError } }
    semaphore.signal()
  }
  semaphore.wait()
  return outcome.withLock { $0 }
}
