import StorageEngine

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// How much room a disk lacks for moving the whole log into the file.
///
/// A checkpoint that runs out of room has already taken the last of it, and then nothing is left
/// for what a start or a stop has to write. So the store asks first and leaves the log in place
/// instead, from which reads are served.
struct CheckpointRoom: Sendable {
  /// What a start writes besides: SQLite's shared memory, the suite's address, first small commits.
  static let reserveBytes = 256 << 10

  let folder: String
  /// The bytes that the disk still has for this user; nil when that is not known.
  let bytesFree: @Sendable (_ folder: String) -> Int?

  /// The bytes that are missing; nil when a checkpoint may be tried.
  func missingBytes(for connection: Connection) throws -> Int? {
    let growth = try connection.growthOfCheckpoint()
    guard growth > 0, let free = bytesFree(folder) else { return nil }
    let missing = growth + Self.reserveBytes - free
    return missing > 0 ? missing : nil
  }

  /// A sentence for the person who can free disk space.
  func advice(missingBytes: Int) -> String {
    "no space is left on the disk of \(folder) to empty the log of writes: \(missingBytes) bytes "
      + "are missing; free them. Until then the log keeps what was written, reads go on, and writes "
      + "are refused once the disk is full"
  }

  /// What the system says of a folder's disk.
  static func systemBytesFree(_ folder: String) -> Int? {
    var disk = statvfs()
    guard statvfs(folder, &disk) == 0 else { return nil }
    let bytes = UInt64(disk.f_bavail).multipliedFullWidth(by: UInt64(disk.f_frsize))
    return bytes.high == 0 ? Int(clamping: bytes.low) : .max
  }
}
