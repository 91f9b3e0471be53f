import LibC
import StatusCodes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The private folder for the worker sockets of one server.
///
/// While the server runs, it holds a lock on a file in the folder. A later server can therefore
/// recognize and remove the folder of a killed server.
struct SocketFolder {
  /// The longest path of a Unix socket that all platforms accept.
  ///
  /// macOS has the lowest limit: 104 bytes including the final zero.
  static let socketPathBytesMax = 103
  /// The maximum length of a slash and a socket's number.
  private static let socketNameBytesMax = 11
  private static let prefix = "hearth-workers-"

  /// The absolute path, without a slash at the end.
  let path: String
  private let lock: CInt

  /// Creates a new folder that only the current user can enter.
  init(in parent: String) throws {
    Self.removeStale(in: parent)
    var template = Array("\(parent)/\(Self.prefix)XXXXXX".utf8CString)
    guard template.count - 1 + Self.socketNameBytesMax <= Self.socketPathBytesMax else {
      throw StatusError(
        .failedPrecondition,
        "The folder for worker sockets has too long a path: \(parent); choose a shorter one."
      )
    }
    guard mkdtemp(&template) != nil else { throw Self.currentError(parent) }
    path = template.withUnsafeBytes { String(decoding: $0.dropLast(), as: UTF8.self) }
    // The lock file is renamed only once it is locked, so no server takes it for a stale one.
    let newLockPath = "\(Self.lockPath(path)).new"
    lock = open(newLockPath, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard lock >= 0, flock(lock, LOCK_EX | LOCK_NB) == 0,
      rename(newLockPath, Self.lockPath(path)) == 0
    else { throw Self.currentError(parent) }
  }

  func remove() {
    Self.remove(path)
    close(lock)
  }

  private static func remove(_ path: String) {
    // The next server removes any remaining files.
    try? FileManager.default.removeItem(atPath: path)
  }

  /// Removes the folders of servers that have exited.
  ///
  /// A folder without a lock file is skipped: it is still being created, or it is harmless.
  private static func removeStale(in parent: String) {
    // If the parent is unreadable, creating the folder reports the error.
    let names = (try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? []
    for name in names where name.hasPrefix(prefix) {
      let path = "\(parent)/\(name)"
      let lock = open(lockPath(path), O_RDWR | O_CLOEXEC)
      guard lock >= 0 else { continue }
      defer { close(lock) }
      guard flock(lock, LOCK_EX | LOCK_NB) == 0 else { continue }
      // Its workers ended with the server; their detached descendants are killed here.
      ProcessFacts.endAll(inheriting: StraySweep.mark) { $0.hasPrefix("\(path)/") }
      remove(path)
    }
  }

  private static func lockPath(_ path: String) -> String { "\(path)/lock" }

  private static func currentError(_ parent: String) -> StatusError {
    StatusError(
      .failedPrecondition,
      "No folder for worker sockets can be made in \(parent): \(String(cString: strerror(errno)))"
    )
  }
}
