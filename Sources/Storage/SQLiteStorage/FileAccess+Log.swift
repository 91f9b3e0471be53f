import CSQLite
import StorageEngine

extension FileAccess {
  /// Truncates a write-ahead log after the part that SQLite's recovery can use.
  ///
  /// A process that was killed leaves unused parts: zeros that it reserved for later commits, or
  /// pages that have been moved to the database since. Recovery stops at the first frame without
  /// the salts of the log's header, so it needs nothing after that frame. Does nothing for a
  /// missing or empty log.
  func cutSpare(ofLog path: String) throws {
    guard try exists(path) else { return }
    try withFile(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_WAL) { file, methods in
      var size: Int64 = 0
      guard methods.xFileSize(file, &size) == SQLITE_OK, size >= LogLayout.headerBytes else {
        return
      }
      func salts(at offset: Int64) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: LogLayout.saltBytes)
        let code = methods.xRead(file, &bytes, Int32(bytes.count), offset)
        return code == SQLITE_OK ? bytes : nil
      }
      guard let present = salts(at: LogLayout.headerSaltOffset) else { return }
      // The frame before `low` has the salts, and the frame at `high` does not.
      var low: Int64 = 0
      var high = (size - LogLayout.headerBytes) / LogLayout.frameBytes
      while low < high {
        let middle = (low + high) / 2
        let offset = LogLayout.headerBytes + middle * LogLayout.frameBytes
        if salts(at: offset + LogLayout.frameSaltOffset) == present {
          low = middle + 1
        } else {
          high = middle
        }
      }
      let end = LogLayout.headerBytes + low * LogLayout.frameBytes
      // A failure to truncate is harmless: the log is still valid, and only its unused space is not
      // freed.
      if end < size { _ = methods.xTruncate(file, end) }
    }
  }
}

/// SQLite's format of the write-ahead log, for the page size of this program.
enum LogLayout {
  static let headerBytes: Int64 = 32
  static let frameBytes: Int64 = 24 + Int64(SQLiteStore.pageBytes)
  /// The two salts are in the header of the log and again in the header of each frame.
  static let saltBytes = 8
  static let headerSaltOffset: Int64 = 16
  static let frameSaltOffset: Int64 = 8
}
