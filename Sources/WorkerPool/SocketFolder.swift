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
/// Its name holds the server's process id, so that the next server removes what a killed one left.
enum SocketFolder {
  /// The longest path of a Unix socket that every platform takes; macOS has room for 104 with the 0.
  static let socketPathBytesMax = 103
  /// A slash and the number of a socket.
  private static let socketNameBytesMax = 11
  private static let prefix = "hearth-workers-"

  /// Makes a fresh folder that only this user can enter.
  static func make(in parent: String) throws -> String {
    removeStale(in: parent)
    var template = Array("\(parent)/\(prefix)\(getpid())-XXXXXX".utf8CString)
    guard template.count - 1 + socketNameBytesMax <= socketPathBytesMax else {
      throw StatusError(
        .failedPrecondition,
        "The folder for worker sockets has too long a path: \(parent); choose a shorter one."
      )
    }
    guard mkdtemp(&template) != nil else {
      throw StatusError(
        .failedPrecondition,
        "No folder for worker sockets can be made in \(parent): \(String(cString: strerror(errno)))"
      )
    }
    return template.withUnsafeBytes { String(decoding: $0.dropLast(), as: UTF8.self) }
  }

  /// Removes a folder of sockets.
  static func remove(_ path: String) {
    // What is left over is removed by the next server.
    try? FileManager.default.removeItem(atPath: path)
  }

  private static func removeStale(in parent: String) {
    // An unreadable parent shows itself when the folder is made.
    let names = (try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? []
    for name in names where name.hasPrefix(prefix) {
      let digits = name.dropFirst(prefix.count).prefix { $0 != "-" }
      guard let pid = pid_t(digits), pid > 0 else { continue }
      if kill(pid, 0) != 0 && errno == ESRCH { remove("\(parent)/\(name)") }
    }
  }
}
