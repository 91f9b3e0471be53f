import Foundation

/// A temporary folder that is removed with its contents when the last reference goes away.
///
/// The path is short, so that a Unix socket inside it stays below the 104 bytes of macOS.
package final class TemporaryFolder: Sendable {
  /// The absolute path, without a trailing slash.
  package let path: String

  /// Creates a new, empty folder.
  package init() throws {
    var template = Array("/tmp/hearth-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }
    path = template.withUnsafeBytes { String(decoding: $0.dropLast(), as: UTF8.self) }
  }

  /// Returns the path of a file or folder inside this folder.
  package func path(_ name: String) -> String { "\(path)/\(name)" }

  deinit {
    // Files left in the temporary folder do no harm, and a deinit cannot report an error.
    try? FileManager.default.removeItem(atPath: path)
  }
}
