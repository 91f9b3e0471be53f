import LibC
import StorageEngine

/// A check of whether the disk has enough space to move the whole log into the database file.
///
/// A checkpoint that runs out of space has already used the last of it. Then no space is left for
/// what a start or a stop has to write. The store therefore checks first, and otherwise leaves the
/// log in place. Reads are served from the log.
struct CheckpointSpace: Sendable {
  /// The space that a start needs for its other writes.
  ///
  /// These are SQLite's shared memory, the suite's address, and first small commits.
  static let reserveBytes = 256 << 10

  let folder: String
  /// The function that returns the bytes free for this user on a folder's disk; nil if unknown.
  let bytesFree: @Sendable (_ folder: String) -> Int?

  /// Returns the number of missing bytes; nil if a checkpoint can be attempted.
  func missingBytes(for connection: SQLiteConnection) throws -> Int? {
    let growth = try connection.growthOfCheckpoint()
    guard growth > 0, let free = bytesFree(folder) else { return nil }
    let missing = growth + Self.reserveBytes - free
    return missing > 0 ? missing : nil
  }

  /// Returns a message for the person who can free disk space.
  func advice(missingBytes: Int) -> String {
    "no space is left on the disk of \(folder) to empty the log of writes: \(missingBytes) bytes "
      + "are missing; free them. Until then the log keeps what was written, reads continue, and "
      + "writes are refused once the disk is full"
  }

  /// Returns the free bytes that the system reports for the disk of a folder.
  static func systemBytesFree(_ folder: String) -> Int? {
    var disk = statvfs()
    guard statvfs(folder, &disk) == 0 else { return nil }
    let bytes = UInt64(disk.f_bavail).multipliedFullWidth(by: UInt64(disk.f_frsize))
    return bytes.high == 0 ? Int(clamping: bytes.low) : .max
  }
}
