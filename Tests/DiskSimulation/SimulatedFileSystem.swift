import CSQLite
import LibC
import Synchronization

/// The VFS that SQLite calls; it finds the disk by the folder of a file's path.
///
/// It behaves like SQLite's Unix VFS but without memory-mapped reads, which are optional.
enum SimulatedFileSystem {
  static let name = "hearth-simulated"

  private struct Mounted {
    weak var disk: SimulatedDisk?
  }

  private static let mounts = Mutex<[String: Mounted]>([:])

  static func mount(_ disk: SimulatedDisk) {
    _ = registration
    mounts.withLock { $0[disk.folder] = Mounted(disk: disk) }
  }

  /// Removes a folder whose disk is gone, unless another disk has taken its place.
  static func unmount(_ folder: String) {
    mounts.withLock { mounts in
      if mounts[folder]?.disk == nil { mounts[folder] = nil }
    }
  }

  private static func find(_ path: UnsafePointer<CChar>?) -> (disk: SimulatedDisk, file: String)? {
    guard let path else { return nil }
    let text = String(cString: path)
    guard let slash = text.lastIndex(of: "/") else { return nil }
    let folder = String(text[..<slash])
    guard let disk = mounts.withLock({ $0[folder]?.disk }) else { return nil }
    return (disk, String(text[text.index(after: slash)...]))
  }

  // MARK: Registration

  private static let registration: Int32 = {
    // Never freed: SQLite keeps the pointers for the life of the process.
    let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    vfs.initialize(to: functions)
    return sqlite3_vfs_register(vfs, 0)
  }()

  private static var functions: sqlite3_vfs {
    var vfs = sqlite3_vfs()
    vfs.iVersion = 2
    vfs.szOsFile = Int32(handleOffset + MemoryLayout<UnsafeRawPointer>.size)
    vfs.mxPathname = 512
    vfs.zName = UnsafePointer(strdup(name))
    vfs.xOpen = { SimulatedFileSystem.open($1, $2, $3, $4) }
    vfs.xDelete = { _, path, syncsFolder in
      guard let (disk, file) = SimulatedFileSystem.find(path) else { return ResultCode.delete }
      return disk.state.withLock { $0.delete(file, syncsFolder: syncsFolder != 0) }
    }
    vfs.xAccess = { _, path, flags, result in
      let bytes = SimulatedFileSystem.find(path).flatMap { $0.disk.bytes(of: $0.file) }
      // As in SQLite's own VFS, an empty file does not exist.
      let isThere = flags == SQLITE_ACCESS_EXISTS ? bytes ?? 0 > 0 : bytes != nil
      result?.pointee = isThere ? 1 : 0
      return SQLITE_OK
    }
    vfs.xFullPathname = { _, path, size, output in
      guard let path, let output, strlen(path) < Int(size) else { return SQLITE_CANTOPEN }
      strcpy(output, path)
      return SQLITE_OK
    }
    vfs.xRandomness = { _, count, output in
      guard let output else { return 0 }
      for index in 0..<Int(count) { output[index] = .random(in: .min ... .max) }
      return count
    }
    vfs.xSleep = { _, microseconds in
      // SQLite sleeps on the threads of its connections.
      usleep(UInt32(microseconds))
      return microseconds
    }
    vfs.xCurrentTime = { _, days in
      days?.pointee = 2_440_587.5 + Double(time(nil)) / 86_400
      return SQLITE_OK
    }
    vfs.xCurrentTimeInt64 = { _, milliseconds in
      milliseconds?.pointee = 210_866_760_000_000 + Int64(time(nil)) * 1000
      return SQLITE_OK
    }
    vfs.xGetLastError = { _, _, _ in errno }
    return vfs
  }

  /// The offset of the handle's pointer: it follows SQLite's own structure.
  private static let handleOffset = MemoryLayout<sqlite3_file>.size

  // Never changed after initialization.
  nonisolated(unsafe) private static let methods: UnsafePointer<sqlite3_io_methods> = {
    let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    methods.initialize(to: fileFunctions)
    return UnsafePointer(methods)
  }()

  private static var fileFunctions: sqlite3_io_methods {
    var methods = sqlite3_io_methods()
    methods.iVersion = 2
    methods.xClose = { SimulatedFileSystem.close($0) }
    methods.xRead = { SimulatedFileSystem.read($0, $1, Int($2), Int($3)) }
    methods.xWrite = { file, bytes, count, offset in
      SimulatedFileSystem.with(file) { open, state in
        let buffer = UnsafeRawBufferPointer(start: bytes, count: Int(count))
        return state.write(open, buffer, at: Int(offset))
      }
    }
    methods.xTruncate = { file, size in
      SimulatedFileSystem.with(file) { $1.truncate($0, to: Int(size)) }
    }
    methods.xSync = { file, _ in SimulatedFileSystem.with(file) { $1.sync($0) } }
    methods.xFileSize = { file, size in
      SimulatedFileSystem.with(file) { open, state in
        guard !state.isDead else { return ResultCode.size }
        size?.pointee = Int64(open.inode.current.count)
        return SQLITE_OK
      }
    }
    methods.xLock = { file, level in SimulatedFileSystem.with(file) { open, _ in open.lock(level) }
    }
    methods.xUnlock = { file, level in
      SimulatedFileSystem.with(file) { open, _ in
        open.unlock(level)
        return SQLITE_OK
      }
    }
    methods.xCheckReservedLock = { file, result in
      SimulatedFileSystem.with(file) { open, _ in
        result?.pointee = open.isReserved ? 1 : 0
        return SQLITE_OK
      }
    }
    methods.xFileControl = { file, operation, result in
      guard operation == SQLITE_FCNTL_LAST_ERRNO else { return SQLITE_NOTFOUND }
      return SimulatedFileSystem.with(file) { open, _ in
        result?.storeBytes(of: open.lastNumber, as: Int32.self)
        return SQLITE_OK
      }
    }
    methods.xSectorSize = { _ in 4096 }
    methods.xDeviceCharacteristics = { _ in SQLITE_IOCAP_POWERSAFE_OVERWRITE }
    methods.xShmMap = { file, index, bytes, extends, result in
      SimulatedFileSystem.with(file) { open, _ in
        open.isMapped = true
        result?.pointee = open.inode.shared.region(
          Int(index),
          bytes: Int(bytes),
          extends: extends != 0
        )
        return SQLITE_OK
      }
    }
    methods.xShmLock = { file, first, count, flags in
      SimulatedFileSystem.with(file) { open, _ in
        open.lockShared(Int(first)..<Int(first + count), flags)
      }
    }
    // Taking the lock makes one thread's writes visible to the next.
    methods.xShmBarrier = { file in _ = SimulatedFileSystem.with(file) { _, _ in SQLITE_OK } }
    methods.xShmUnmap = { file, _ in
      SimulatedFileSystem.with(file) { open, _ in
        open.unmap()
        return SQLITE_OK
      }
    }
    return methods
  }

  // MARK: Files

  private static func open(
    _ path: UnsafePointer<CChar>?,
    _ file: UnsafeMutablePointer<sqlite3_file>?,
    _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?
  ) -> Int32 {
    guard let file else { return SQLITE_CANTOPEN }
    file.pointee.pMethods = nil
    guard let (disk, name) = find(path) else { return SQLITE_CANTOPEN }
    let (opened, number) = disk.state.withLock { state -> (OpenFile?, Int32) in
      if state.failure(.open, name, SQLITE_CANTOPEN) != nil {
        return (nil, state.lastNumber)
      }
      let isMade = flags & SQLITE_OPEN_CREATE != 0 && state.files[name] == nil
      guard let inode = isMade ? state.create(name) : state.files[name] else {
        return (nil, isMade ? EIO : ENOENT)
      }
      return (OpenFile(disk: disk, file: name, inode: inode, flags: flags), 0)
    }
    guard let opened else {
      errno = number
      return SQLITE_CANTOPEN
    }
    outFlags?.pointee = flags
    UnsafeMutableRawPointer(file).storeBytes(
      of: Unmanaged.passRetained(opened).toOpaque(),
      toByteOffset: handleOffset,
      as: UnsafeMutableRawPointer.self
    )
    file.pointee.pMethods = methods
    return SQLITE_OK
  }

  private static func handle(_ file: UnsafeMutablePointer<sqlite3_file>) -> Unmanaged<OpenFile> {
    Unmanaged.fromOpaque(
      UnsafeRawPointer(file).load(fromByteOffset: handleOffset, as: UnsafeRawPointer.self)
    )
  }

  private static func with(
    _ file: UnsafeMutablePointer<sqlite3_file>?,
    _ body: (OpenFile, inout DiskState) -> Int32
  ) -> Int32 {
    guard let file else { return SQLITE_MISUSE }
    let open = handle(file).takeUnretainedValue()
    let (code, number) = open.disk.state.withLock { state in
      let code = body(open, &state)
      if code & 0xFF == SQLITE_IOERR { open.lastNumber = state.lastNumber }
      return (code, open.lastNumber)
    }
    // SQLite reads the system error from `errno`.
    if code & 0xFF == SQLITE_IOERR { errno = number }
    return code
  }

  private static func read(
    _ file: UnsafeMutablePointer<sqlite3_file>?,
    _ output: UnsafeMutableRawPointer?,
    _ count: Int,
    _ offset: Int
  ) -> Int32 {
    with(file) { open, state in
      if let code = state.failure(.read, open.file, ResultCode.read) { return code }
      guard let output else { return SQLITE_MISUSE }
      let found = max(min(count, open.inode.current.count - offset), 0)
      if found > 0 {
        open.inode.current.withUnsafeBytes { bytes in
          UnsafeMutableRawBufferPointer(start: output, count: found).copyMemory(
            from: UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + found])
          )
        }
      }
      guard found < count else { return SQLITE_OK }
      memset(output + found, 0, count - found)
      return ResultCode.shortRead
    }
  }

  private static func close(_ file: UnsafeMutablePointer<sqlite3_file>?) -> Int32 {
    guard let file else { return SQLITE_OK }
    let open = handle(file).takeRetainedValue()
    open.disk.state.withLock { state in
      open.close()
      if open.isDeletedOnClose { _ = state.delete(open.file, syncsFolder: false) }
    }
    return SQLITE_OK
  }
}
