import ArgumentParser

/// The rules for project IDs on the command line.
enum ProjectID {
  /// The project ID if neither `--project` nor `.firebaserc` names one.
  ///
  /// It is the one that Firebase's tools use then.
  static let standard = "demo-no-project"

  /// Throws if an ID cannot be used unchanged in a URL or an environment variable.
  ///
  /// IDs that Google would refuse, such as short ones, are allowed, because emulators accept them.
  static func check(_ id: String?) throws {
    guard let id, !isUsable(id) else { return }
    throw ValidationError("--project is \"\(id)\"; give letters, digits and hyphens.")
  }

  /// Returns true for an ID that can be used unchanged in a URL or an environment variable.
  static func isUsable(_ id: String) -> Bool {
    !id.isEmpty
      && id.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"):
          true
        default: "-_.:".utf8.contains(byte)
        }
      }
  }
}
