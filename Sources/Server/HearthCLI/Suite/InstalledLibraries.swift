import Foundation

/// The libraries for functions that `make install` compiled and put beside the binary.
struct InstalledLibraries {
  /// The absolute path of their package.
  var folder: String
  /// The first line of `swift --version` of the compiler that made them; nil if it is unknown.
  ///
  /// No other compiler can use them, because their modules have no stable format.
  var compiler: String?

  /// Finds the libraries of the running binary; nil if it was not installed with any.
  init?() {
    guard let program = Bundle.main.executableURL?.resolvingSymlinksInPath() else { return nil }
    let folder = program.deletingLastPathComponent().appending(path: "../lib/hearth")
      .standardizedFileURL
    let manifest = folder.appending(path: "Package.swift").path
    guard FileManager.default.fileExists(atPath: manifest) else { return nil }
    self.folder = folder.path
    // An installation without this file does not say which compiler built it.
    compiler = try? String(contentsOf: folder.appending(path: "compiler"), encoding: .utf8)
      .trimmingCharacters(in: .whitespacesAndNewlines)
  }
}
