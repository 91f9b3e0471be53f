import Foundation

/// Executables of this package, as built for the test run.
package enum BuiltProduct {
  /// The path of `name` beside the test bundle; throws when it does not exist.
  package static func path(_ name: String) throws -> String {
    var folder = Bundle.main.bundleURL
    // On Darwin the test bundle is a folder whose executable lies three levels below it.
    for _ in 0..<4 {
      let candidate = folder.appending(path: name).path
      if FileManager.default.isExecutableFile(atPath: candidate) { return candidate }
      folder.deleteLastPathComponent()
    }
    throw CocoaError(.fileNoSuchFile, userInfo: [NSFilePathErrorKey: name])
  }
}
