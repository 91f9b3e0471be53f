import CSQLite
import LibC
import TestSupport

/// The contents and planned failures of a disk; protected by the disk's lock.
struct DiskState: Sendable {
  /// The folder as all processes see it.
  var files: [String: Inode] = [:]
  /// The folder as of its last sync; `pendingEntries` holds the changes since then.
  private var syncedFiles: [String: Inode] = [:]
  private var pendingEntries: [(file: String, inode: Inode?)] = []

  var faults: [DiskFault] = []
  var bytesMax: Int?
  var changesLeft: Int?
  var changes = 0
  var isDead = false
  /// The system error number of the last failure.
  var lastNumber: Int32 = 0
  private var chance = SeededGenerator(seed: 1)

  /// Returns the result code if the access fails, or nil if it may proceed.
  mutating func failure(_ access: DiskFault.Access, _ file: String, _ code: Int32) -> Int32? {
    if isDead {
      lastNumber = EIO
      return code
    }
    for index in faults.indices where faults[index].strikes(access, file) {
      lastNumber = faults[index].number
      return lastNumber == ENOSPC && access == .write ? SQLITE_FULL : code
    }
    return nil
  }

  /// Counts a change; returns true if the power fails during it.
  private mutating func losesPower() -> Bool {
    changes += 1
    guard let left = changesLeft else { return false }
    changesLeft = left - 1
    isDead = left <= 1
    return isDead
  }

  // MARK: Folder

  mutating func create(_ file: String) -> Inode? {
    guard !losesPower() else { return nil }
    let inode = Inode()
    files[file] = inode
    pendingEntries.append((file, inode))
    return inode
  }

  mutating func delete(_ file: String, syncsFolder: Bool) -> Int32 {
    guard !isDead else { return ResultCode.delete }
    guard files.removeValue(forKey: file) != nil else { return ResultCode.deleteMissing }
    pendingEntries.append((file, nil))
    guard !losesPower() else { return ResultCode.delete }
    if syncsFolder { syncFolder() }
    return SQLITE_OK
  }

  private mutating func syncFolder() {
    syncedFiles = files
    pendingEntries = []
  }

  // MARK: Contents

  var bytes: Int { files.values.reduce(0) { $0 + $1.current.count } }

  mutating func write(_ open: OpenFile, _ bytes: UnsafeRawBufferPointer, at offset: Int) -> Int32 {
    if let code = failure(.write, open.file, ResultCode.write) { return code }
    let inode = open.inode
    var fitting = bytes
    if let bytesMax {
      let end = inode.current.count + max(bytesMax - self.bytes, 0)
      fitting = UnsafeRawBufferPointer(
        rebasing: bytes.prefix(max(min(bytes.count, end - offset), 0))
      )
    }
    if !fitting.isEmpty { inode.change(.write(offset: offset, Array(fitting))) }
    if losesPower() { return ResultCode.write }
    guard fitting.count == bytes.count else {
      lastNumber = ENOSPC
      return SQLITE_FULL
    }
    return SQLITE_OK
  }

  mutating func truncate(_ open: OpenFile, to size: Int) -> Int32 {
    if let code = failure(.truncate, open.file, ResultCode.truncate) { return code }
    open.inode.change(.truncate(size))
    return losesPower() ? ResultCode.truncate : SQLITE_OK
  }

  mutating func sync(_ open: OpenFile) -> Int32 {
    let wasDead = isDead
    if let code = failure(.sync, open.file, ResultCode.sync) {
      if !wasDead {
        open.inode.failSync(using: &chance)
        open.knownFailedSyncs = open.inode.failedSyncs
      }
      return code
    }
    guard open.knownFailedSyncs == open.inode.failedSyncs else {
      open.knownFailedSyncs = open.inode.failedSyncs
      lastNumber = EIO
      return ResultCode.sync
    }
    guard !losesPower() else { return ResultCode.sync }
    open.inode.sync()
    if open.syncsFolder {
      syncFolder()
      open.syncsFolder = false
    }
    return SQLITE_OK
  }

  // MARK: After a crash

  mutating func afterKill() -> DiskState {
    var next = DiskState()
    var copies: [ObjectIdentifier: Inode] = [:]
    func copy(_ inode: Inode) -> Inode {
      if let known = copies[ObjectIdentifier(inode)] { return known }
      let made = Inode(current: inode.current, synced: inode.synced, pending: inode.pending)
      copies[ObjectIdentifier(inode)] = made
      return made
    }
    next.files = files.mapValues(copy)
    next.syncedFiles = syncedFiles.mapValues(copy)
    next.pendingEntries = pendingEntries.map { ($0.file, $0.inode.map(copy)) }
    return next
  }

  mutating func afterPowerLoss(using generator: inout SeededGenerator) -> DiskState {
    var names = syncedFiles
    let sequences = Dictionary(grouping: pendingEntries, by: \.file)
    for file in sequences.keys.sorted() {
      // Entries of one name keep their order; entries of different names need not.
      let entries = sequences[file] ?? []
      for entry in entries.prefix(Int.random(in: 0...entries.count, using: &generator)) {
        names[file] = entry.inode
      }
    }
    var next = DiskState()
    for file in names.keys.sorted() {
      guard let inode = names[file] else { continue }
      let bytes = inode.afterPowerLoss(using: &generator)
      next.files[file] = Inode(current: bytes, synced: bytes, pending: [])
    }
    next.syncedFiles = next.files
    next.chance = SeededGenerator(seed: generator.next())
    return next
  }
}

/// SQLite's extended result codes, which are macros of C expressions.
enum ResultCode {
  static let read = SQLITE_IOERR | 1 << 8
  static let shortRead = SQLITE_IOERR | 2 << 8
  static let write = SQLITE_IOERR | 3 << 8
  static let sync = SQLITE_IOERR | 4 << 8
  static let truncate = SQLITE_IOERR | 6 << 8
  static let size = SQLITE_IOERR | 7 << 8
  static let delete = SQLITE_IOERR | 10 << 8
  static let deleteMissing = SQLITE_IOERR | 23 << 8
}
