/// Decides what to do about changed files.
///
/// A build that writes files does not start builds for ever.
struct WatchPlan {
  /// What to do about changes.
  enum Action: Equatable {
    case build
    /// Only settings changed: restart the workers with the existing binaries.
    case reload
    /// The build itself seems to write these files.
    case pause(files: Set<String>)
  }

  /// The files whose change during a build started the last one, and how often in a row.
  private var files: Set<String> = []
  private var rounds = 0

  /// The action for changed files; `duringBuild` says whether the last build ran meanwhile.
  mutating func action(for changed: Set<String>, duringBuild: Bool) -> Action {
    if changed.allSatisfy(Self.isSetting) { return .reload }
    guard duringBuild else {
      files = []
      rounds = 0
      return .build
    }
    if !files.isEmpty, changed.isSubset(of: files) {
      rounds += 1
    } else {
      files = changed
      rounds = 1
    }
    return rounds < Self.roundsMax ? .build : .pause(files: changed)
  }

  /// Whether a path is one of the files that `UserEnvironment` reads.
  static func isSetting(_ path: String) -> Bool {
    let name = path.split(separator: "/").last ?? ""
    return name == ".env" || name.hasPrefix(".env.") || name == ".secret.local"
  }

  /// The builds in a row that the same files may start by changing during the previous build.
  ///
  /// A person who saves a file during each build is told to save once more.
  private static let roundsMax = 3
}
