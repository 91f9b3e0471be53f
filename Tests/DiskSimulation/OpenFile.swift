import CSQLite

/// An open handle of a file with the locks that it holds.
// Unchecked: SQLite uses a handle on one thread at a time; the disk's lock protects shared state.
final class OpenFile: @unchecked Sendable {
  let disk: SimulatedDisk
  let file: String
  let inode: Inode
  let isReadOnly: Bool
  let isDeletedOnClose: Bool
  /// True if the next sync also syncs the folder, as in SQLite's own file system.
  var syncsFolder: Bool
  /// The system error number of this handle's last failure.
  var lastNumber: Int32 = 0
  /// The number of the file's failed syncs that this handle has already reported.
  var knownFailedSyncs: Int
  private var level = SQLITE_LOCK_NONE
  var isMapped = false
  var sharedLocks: Set<Int> = []
  var exclusiveLocks: Set<Int> = []

  init(disk: SimulatedDisk, file: String, inode: Inode, flags: Int32) {
    self.disk = disk
    self.file = file
    self.inode = inode
    knownFailedSyncs = inode.failedSyncs
    isReadOnly = flags & SQLITE_OPEN_READWRITE == 0
    isDeletedOnClose = flags & SQLITE_OPEN_DELETEONCLOSE != 0
    let journals = SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL
    syncsFolder = flags & SQLITE_OPEN_CREATE != 0 && flags & journals != 0
    inode.openFiles.append(self)
  }

  private var others: some Sequence<OpenFile> { inode.openFiles.lazy.filter { $0 !== self } }

  func lock(_ wanted: Int32) -> Int32 {
    guard level < wanted else { return SQLITE_OK }
    switch wanted {
    case SQLITE_LOCK_SHARED:
      if others.contains(where: { $0.level >= SQLITE_LOCK_PENDING }) { return SQLITE_BUSY }
    case SQLITE_LOCK_RESERVED:
      if others.contains(where: { $0.level >= SQLITE_LOCK_RESERVED }) { return SQLITE_BUSY }
    default:
      if others.contains(where: { $0.level >= SQLITE_LOCK_RESERVED }) { return SQLITE_BUSY }
      level = SQLITE_LOCK_PENDING
      if others.contains(where: { $0.level >= SQLITE_LOCK_SHARED }) { return SQLITE_BUSY }
    }
    level = wanted
    return SQLITE_OK
  }

  func unlock(_ wanted: Int32) {
    level = min(level, wanted)
  }

  var isReserved: Bool { inode.openFiles.contains { $0.level >= SQLITE_LOCK_RESERVED } }

  func close() {
    inode.openFiles.removeAll { $0 === self }
    unmap()
  }

  func unmap() {
    isMapped = false
    sharedLocks = []
    exclusiveLocks = []
    if !inode.openFiles.contains(where: { $0.isMapped }) { inode.shared.free() }
  }

  func lockShared(_ slots: Range<Int>, _ flags: Int32) -> Int32 {
    if flags & SQLITE_SHM_UNLOCK != 0 {
      sharedLocks.subtract(slots)
      exclusiveLocks.subtract(slots)
      return SQLITE_OK
    }
    let isExclusive = flags & SQLITE_SHM_EXCLUSIVE != 0
    for other in others {
      if !other.exclusiveLocks.isDisjoint(with: slots) { return SQLITE_BUSY }
      if isExclusive, !other.sharedLocks.isDisjoint(with: slots) { return SQLITE_BUSY }
    }
    if isExclusive { exclusiveLocks.formUnion(slots) } else { sharedLocks.formUnion(slots) }
    return SQLITE_OK
  }
}

/// The shared memory in which the connections of a database find the pages of its write-ahead log.
final class SharedMemory {
  private var regions: [UnsafeMutableRawPointer] = []

  func region(_ index: Int, bytes: Int, extends: Bool) -> UnsafeMutableRawPointer? {
    while extends, regions.count <= index {
      let region = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 16)
      region.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
      regions.append(region)
    }
    return index < regions.count ? regions[index] : nil
  }

  func free() {
    for region in regions { region.deallocate() }
    regions = []
  }

  deinit {
    free()
  }
}
