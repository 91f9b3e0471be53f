import DiskSimulation
import SQLiteStorage
import TestSupport

/// Work over a store that crashes repeatedly; it remembers what was acknowledged.
protocol CrashSubject: Sendable {
  /// What runs between two crashes.
  associatedtype Life: Sendable

  /// The number of crashes in a run.
  static var livesMax: Int { get }
  /// The number of tasks that work at once.
  static var tasks: ClosedRange<Int> { get }
  /// True if the remaining data is checked after each crash, and not only after the last one.
  static var checksEachCrash: Bool { get }

  init()

  /// Plans the power loss and the faults before it; returns the name of the faults.
  static func plan(_ disk: SimulatedDisk, using generator: inout SeededGenerator) -> String

  /// Starts what runs over the storage.
  func open(_ storage: SQLiteStore) async throws -> Life

  /// Works until the disk fails or loses power.
  func work(_ life: Life, on site: CrashSite) async throws

  /// Compares the remaining data with what was acknowledged; throws a finding.
  func check(_ life: Life, after ending: Ending) async throws
}

/// The end of the life before a check.
enum Ending: String {
  case killed
  case powerLoss = "power loss"
  /// A clean stop; it comes last.
  case stopped
}

/// The disk on which a subject works until it crashes.
struct CrashSite: Sendable {
  var disk: SimulatedDisk
  var storage: SQLiteStore
  /// A seed for each task.
  var seeds: [UInt64]

  /// True if the disk has failed or lost power.
  var hasCrashed: Bool { disk.isDead || storage.failure != nil }

  /// Repeats `body` in each task, whose number it gets, until the disk has crashed.
  func untilCrash(
    _ body: @escaping @Sendable (_ task: Int, inout SeededGenerator) async -> Void
  ) async {
    await withTaskGroup(of: Void.self) { group in
      for (task, seed) in seeds.enumerated() {
        group.addTask {
          var generator = SeededGenerator(seed: seed)
          while !hasCrashed { await body(task, &generator) }
        }
      }
    }
  }
}

extension CrashSubject {
  static var checksEachCrash: Bool { true }

  static func plan(_ disk: SimulatedDisk, using generator: inout SeededGenerator) -> String {
    disk.losePower(afterChanges: Int.random(in: 1...160, using: &generator))
    guard Int.random(in: 0..<6, using: &generator) == 0 else { return "nothing wrong" }
    disk.fail(DiskFault(.sync, after: Int.random(in: 0...10, using: &generator), count: 1))
    return "a failed sync"
  }

  /// Crashes `livesMax` times and checks what remains; throws a finding.
  func run(isDurable: Bool = true, using generator: inout SeededGenerator) async throws {
    let folder = try TemporaryFolder()
    var disk = SimulatedDisk(folder: folder.path)
    var history: [String] = []
    for number in 1...Self.livesMax {
      let logPagesMax = Int.random(in: 4...60, using: &generator)
      let trouble = Self.plan(disk, using: &generator)
      let seeds = (0..<Int.random(in: Self.tasks, using: &generator)).map { _ in generator.next() }
      try await live(on: disk, isDurable, logPagesMax, seeds)
      let ending = Int.random(in: 0..<6, using: &generator) == 0 ? Ending.killed : .powerLoss
      disk = ending == .killed ? disk.afterKill() : disk.afterPowerLoss(using: &generator)
      history.append("\(trouble), then \(ending.rawValue)")
      let isLast = number == Self.livesMax
      do {
        // Before it is opened again there may be no file yet.
        guard Self.checksEachCrash || isLast else { continue }
        try await check(disk, isDurable, after: ending)
        if isLast { try await check(disk, isDurable, after: .stopped) }
        if Int.random(in: 0..<8, using: &generator) == 0 { try Crashes.checkIntegrity(of: disk) }
      } catch {
        throw CrashTestError("\(error); lives: \(history.joined(separator: "; "))")
      }
    }
  }

  private func store(
    on disk: SimulatedDisk,
    _ isDurable: Bool,
    logPagesMax: Int = 1000
  ) throws -> SQLiteStore {
    try SQLiteStore(
      folder: disk.folder,
      configuration: .init(
        isDurable: isDurable,
        logPagesMax: logPagesMax,
        fileSystem: SimulatedDisk.vfsName
      ),
      logger: .silent
    )
  }

  /// Works until the disk fails or loses power.
  private func live(
    on disk: SimulatedDisk,
    _ isDurable: Bool,
    _ logPagesMax: Int,
    _ seeds: [UInt64]
  ) async throws {
    // Opening may fail without power or with a fault; a later check opens without either.
    guard let storage = try? store(on: disk, isDurable, logPagesMax: logPagesMax) else { return }
    if let life = try? await open(storage) {
      try await work(life, on: CrashSite(disk: disk, storage: storage, seeds: seeds))
    }
    // The disk has failed or lost power, so an error of closing does not matter.
    try? await storage.close()
  }

  private func check(_ disk: SimulatedDisk, _ isDurable: Bool, after ending: Ending) async throws {
    let storage: SQLiteStore
    do {
      storage = try store(on: disk, isDurable)
    } catch {
      throw CrashTestError("the store does not open: \(error)")
    }
    do {
      try await check(try await open(storage), after: ending)
    } catch {
      // The finding is the error to report.
      try? await storage.close()
      throw error
    }
    try await storage.close()
  }
}
