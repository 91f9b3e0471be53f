import CSQLite
import LibC
import StorageEngine

/// An error of SQLite, as the cause of a `StorageError`.
struct SQLiteError: Error, CustomStringConvertible {
  /// The extended result code.
  var code: Int32
  var description: String

  /// True if the system failed to make written data durable.
  ///
  /// After such a failure it is unknown which earlier writes are on the disk.
  var isSyncFailure: Bool {
    // The extended codes SQLITE_IOERR_FSYNC and SQLITE_IOERR_DIR_FSYNC are C macros that Swift
    // cannot import.
    code == SQLITE_IOERR | (4 << 8) || code == SQLITE_IOERR | (5 << 8)
  }
}

extension StorageError {
  /// True if the disk had no space but lost nothing that it had accepted.
  var isOnlyFull: Bool {
    kind == .full && (cause as? SQLiteError)?.isSyncFailure != true
  }

  init(sqliteCode code: Int32, words: String, systemNumber: Int32, path: String) {
    let cause = SQLiteError(code: code, description: "SQLite: \(words) (\(code))")
    // No space is left on the disk, in the user's quota, or in the size limit of a file.
    let noSpace = [ENOSPC, EDQUOT, EFBIG].contains(systemNumber)
    switch code & 0xFF {
    case SQLITE_FULL:
      self.init(.full, "no space is left for \(path); free some and retry", cause: cause)
    case SQLITE_IOERR where noSpace, SQLITE_CANTOPEN where noSpace:
      self.init(.full, "no space is left for \(path); free some and retry", cause: cause)
    case SQLITE_IOERR where systemNumber == EROFS, SQLITE_READONLY, SQLITE_PERM:
      self.init(.full, "\(path) cannot be written; check its permissions", cause: cause)
    case SQLITE_CORRUPT, SQLITE_NOTADB:
      self.init(.corrupt, "\(path) is damaged; move it away or restore a copy", cause: cause)
    case SQLITE_CANTOPEN:
      let reason = systemNumber == 0 ? words : systemError(systemNumber)
      self.init(.failed, "cannot open \(path): \(reason)", cause: cause)
    case SQLITE_BUSY, SQLITE_LOCKED:
      self.init(.failed, "\(path) is locked by another program; close it and retry", cause: cause)
    case SQLITE_TOOBIG:
      self.init(.failed, "a key or value is larger than SQLite holds", cause: cause)
    default:
      self.init(.failed, "\(path): \(words)", cause: cause)
    }
  }
}
