import LibC
import StorageEngine

/// The exclusive lock of one process on a data folder.
///
/// It is an advisory lock on the file `lock`, which contains the owner's process id. The system
/// releases it when the process ends for any reason. Child processes do not inherit it.
final class FolderLock: Sendable {
  private let descriptor: Int32

  /// Creates the folder if necessary and takes the lock.
  ///
  /// Throws a `StorageError` of kind `.inUse` that names the process with the lock, or of kind
  /// `.failed`.
  init(folder: String) throws {
    guard !folder.isEmpty else { throw StorageError(.failed, "the data folder has no name") }
    try Self.makeFolder(folder)
    let path = "\(folder)/lock"
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw StorageError(.failed, "cannot write to the data folder \(folder): \(systemError())")
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let reason = errno
      let owner = Self.owner(descriptor)
      close(descriptor)
      guard reason == EWOULDBLOCK else {
        throw StorageError(.failed, "cannot lock \(path): \(systemError(reason))")
      }
      throw StorageError(
        .inUse,
        "the data folder \(folder) is in use by process \(owner); stop it, or choose another folder "
          + "with --data"
      )
    }
    self.descriptor = descriptor
    let text = Array("\(getpid())\n".utf8)
    // The lock works without the process id, which only improves the error message of the next
    // process.
    _ = ftruncate(descriptor, 0)
    _ = pwrite(descriptor, text, text.count, 0)
  }

  deinit {
    // A child process that is just being started shares the lock until it executes its own program.
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  /// Creates a folder and its parents, accessible only to the user and safe from power loss.
  private static func makeFolder(_ path: String) throws {
    var end = path.startIndex
    while end < path.endIndex {
      end = path[path.index(after: end)...].firstIndex(of: "/") ?? path.endIndex
      let part = String(path[..<end])
      if mkdir(part, 0o700) == 0 {
        try syncFolder(above: part)
      } else if errno != EEXIST, end == path.endIndex {
        throw StorageError(.failed, "cannot make the data folder \(path): \(systemError())")
      }
    }
  }

  /// Syncs the parent folder, which makes a new folder durable.
  ///
  /// SQLite syncs the files in the folder.
  private static func syncFolder(above path: String) throws {
    let slash = path.lastIndex(of: "/")
    let parent = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let descriptor = open(parent, O_RDONLY | O_CLOEXEC)
    // A folder that is writable but not readable cannot be synced. The error is ignored.
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    guard syncToDisk(descriptor) == 0 || errno == EINVAL else {
      throw StorageError(.failed, "cannot make the data folder \(path) safe: \(systemError())")
    }
  }

  private static func owner(_ descriptor: Int32) -> String {
    var buffer = [UInt8](repeating: 0, count: 20)
    let count = pread(descriptor, &buffer, buffer.count, 0)
    let digits = buffer.prefix(max(count, 0)).prefix { (48...57).contains($0) }
    return digits.isEmpty ? "unknown" : String(decoding: digits, as: UTF8.self)
  }
}

/// Returns the system's message for an error number.
func systemError(_ number: Int32 = errno) -> String {
  String(cString: strerror(number))
}
