import Foundation

/// A test's own folder, removed with its contents when the last reference goes.
///
/// The path is short, so that a Unix socket inside it stays below the 104 bytes of macOS.
package final class TemporaryFolder: Sendable {
  /// The path, absolute and without a slash at the end.
  package let path: String

  /// Makes a fresh, empty folder.
  package init() throws {
    var template = Array("/tmp/hearth-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }
    path = template.withUnsafeBytes { String(decoding: $0.dropLast(), as: UTF8.self) }
  }

  /// The path of a file or folder inside this folder.
  package func path(_ name: String) -> String { "\(path)/\(name)" }

  deinit {
    // Files left in the temporary folder harm nobody, and a deinit has nobody to tell.
    try? FileManager.default.removeItem(atPath: path)
  }
}
