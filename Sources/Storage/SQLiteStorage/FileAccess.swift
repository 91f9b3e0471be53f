import CSQLite
import StorageEngine

/// Access to files through SQLite's file system layer, without opening them as a database.
struct FileAccess {
  private let vfs: UnsafeMutablePointer<sqlite3_vfs>

  /// Creates access through the file system with a name registered in SQLite; nil for the default.
  init(vfs name: String?) throws {
    // This registers the default file system if SQLite has not been used yet.
    sqlite3_initialize()
    guard let vfs = sqlite3_vfs_find(name) else {
      throw StorageError(.failed, "SQLite knows no file system \(name ?? "at all")")
    }
    self.vfs = vfs
  }

  /// Returns true if a file exists and is not empty.
  func exists(_ path: String) throws -> Bool {
    var result: Int32 = 0
    let code = vfs.pointee.xAccess(vfs, path, SQLITE_ACCESS_EXISTS, &result)
    guard code == SQLITE_OK else { throw error(code, "cannot look for", path) }
    return result != 0
  }

  /// Returns the first bytes of a file and its size.
  ///
  /// If the file is shorter, zeros follow.
  func read(_ path: String, bytes count: Int) throws -> (bytes: [UInt8], size: Int) {
    try withFile(path, SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB) { handle, methods in
      var bytes = [UInt8](repeating: 0, count: count)
      var size: Int64 = 0
      var result = methods.xFileSize(handle, &size)
      if result == SQLITE_OK { result = methods.xRead(handle, &bytes, Int32(count), 0) }
      // A short read is not a failure, because SQLite fills the rest with zeros.
      guard result == SQLITE_OK || result == SQLITE_IOERR | 2 << 8 else {
        throw error(result, "cannot read", path)
      }
      return (bytes, Int(size))
    }
  }

  /// Overwrites a file with its own content and syncs it.
  ///
  /// Does nothing for an empty file.
  func rewrite(_ path: String) throws {
    guard try exists(path) else { return }
    try withFile(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_WAL) { handle, methods in
      func check(_ code: Int32) throws {
        guard code != SQLITE_OK else { return }
        let number = vfs.pointee.xGetLastError(vfs, 0, nil)
        let words = String(cString: sqlite3_errstr(code))
        throw StorageError(sqliteCode: code, words: words, systemNumber: number, path: path)
      }
      var size: Int64 = 0
      try check(methods.xFileSize(handle, &size))
      var bytes = [UInt8](repeating: 0, count: Self.rewriteBytes)
      for offset in stride(from: 0, to: size, by: Self.rewriteBytes) {
        let count = Int32(min(size - offset, Int64(Self.rewriteBytes)))
        try check(methods.xRead(handle, &bytes, count, offset))
        try check(methods.xWrite(handle, bytes, count, offset))
      }
      try check(methods.xSync(handle, SQLITE_SYNC_FULL))
    }
  }

  private static let rewriteBytes = 1 << 20

  func withFile<Result>(
    _ path: String,
    _ flags: Int32,
    _ body: (UnsafeMutablePointer<sqlite3_file>, sqlite3_io_methods) throws -> Result
  ) throws -> Result {
    let file = UnsafeMutableRawPointer.allocate(
      byteCount: Int(vfs.pointee.szOsFile),
      alignment: MemoryLayout<sqlite3_file>.alignment
    )
    defer { file.deallocate() }
    let handle = file.initializeMemory(as: sqlite3_file.self, repeating: sqlite3_file(), count: 1)
    // SQLite expects parameters after the end of the name.
    let name = sqlite3_create_filename(path, "", "", 0, nil)
    defer { sqlite3_free_filename(name) }
    let code = vfs.pointee.xOpen(vfs, name, handle, flags, nil)
    guard code == SQLITE_OK, let methods = handle.pointee.pMethods else {
      throw error(code, "cannot open", path)
    }
    defer { _ = methods.pointee.xClose(handle) }
    return try body(handle, methods.pointee)
  }

  private func error(_ code: Int32, _ what: String, _ path: String) -> StorageError {
    let number = vfs.pointee.xGetLastError(vfs, 0, nil)
    let words = String(cString: sqlite3_errstr(code))
    return StorageError(
      .failed,
      "\(what) \(path): \(number == 0 ? words : systemError(number))",
      cause: SQLiteError(code: code, description: "SQLite: \(words) (\(code))")
    )
  }
}
