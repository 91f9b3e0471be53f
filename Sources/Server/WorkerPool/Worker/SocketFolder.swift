import RuntimeSupport

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif
#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The private folder of one server's worker sockets.
///
/// The server holds a lock in it as long as it lives, so that the next server can recognise and
/// remove what a killed server left.
struct SocketFolder {
  /// The longest Unix socket path that every platform takes; macOS has room for 104 with the 0.
  static let socketPathBytesMax = 103
  /// A slash and the number of a socket.
  private static let socketNameBytesMax = 11
  private static let prefix = "hearth-workers-"

  /// The path, absolute and without a slash at the end.
  let path: String
  private let lock: CInt

  /// Makes a fresh folder that only this user can enter.
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
    // The lock file gets its name once it is locked, so that nobody takes it for a dead server's.
    let fresh = "\(Self.lockPath(path)).new"
    lock = open(fresh, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard lock >= 0, flock(lock, LOCK_EX | LOCK_NB) == 0,
      rename(fresh, Self.lockPath(path)) == 0
    else { throw Self.currentError(parent) }
  }

  /// Removes the folder and releases the lock.
  func remove() {
    Self.remove(path)
    close(lock)
  }

  private static func remove(_ path: String) {
    // The next server removes what is left over.
    try? FileManager.default.removeItem(atPath: path)
  }

  /// Removes the folders whose servers are gone.
  ///
  /// A folder without a lock file is just being made, or harms nobody.
  private static func removeStale(in parent: String) {
    // An unreadable parent causes an error when the folder is made.
    let names = (try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? []
    for name in names where name.hasPrefix(prefix) {
      let path = "\(parent)/\(name)"
      let lock = open(lockPath(path), O_RDWR | O_CLOEXEC)
      guard lock >= 0 else { continue }
      defer { close(lock) }
      guard flock(lock, LOCK_EX | LOCK_NB) == 0 else { continue }
      // Its workers ended with it; the processes they had started and detached end here.
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
