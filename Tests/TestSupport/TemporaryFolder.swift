import Foundation

/// A folder of a test's own, removed with everything in it when the last reference goes.
///
/// The path is short, so that a Unix socket inside it stays below the 104 bytes of macOS.
package final class TemporaryFolder: Sendable {
  /// Absolute, without a slash at the end.
  package let path: String

  /// Makes a fresh, empty folder.
  package init() throws {
    var template = Array("/tmp/hearth-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }
    path = template.withUnsafeBytes { String(decoding: $0.dropLast(), as: UTF8.self) }
  }

  /// The path of something inside.
  package func path(_ name: String) -> String { "\(path)/\(name)" }

  deinit {
    // What is left in the temporary folder harms nobody, and a deinit has no one to tell.
    try? FileManager.default.removeItem(atPath: path)
  }
}
