import ArgumentParser

/// Which ids a project may have on the command line.
enum ProjectID {
  /// The project where neither `--project` nor .firebaserc names one.
  static let standard = "demo-psst"

  /// Throws for an id that cannot stand in an address or an environment variable as it is.
  ///
  /// Ids that Google would refuse, such as short ones, pass: emulators take them.
  static func check(_ id: String?) throws {
    guard let id else { return }
    let isFine = id.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      default: "-_.:".utf8.contains(byte)
      }
    }
    guard isFine, !id.isEmpty else {
      throw ValidationError("--project is \"\(id)\"; give letters, digits and hyphens.")
    }
  }
}
