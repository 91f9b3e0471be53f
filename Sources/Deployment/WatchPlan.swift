/// Decides what follows from changed files, so that a build that writes files does not start
/// builds for ever.
struct WatchPlan {
  /// What to do about changes.
  enum Action: Equatable {
    case build
    /// Only settings changed: the workers start anew with the binaries there are.
    case reload
    /// The build itself seems to write these files.
    case pause(files: Set<String>)
  }

  /// The files whose change during a build led to the last one, and how often in a row.
  private var files: Set<String> = []
  private var rounds = 0

  /// The action for files that changed; `duringBuild` when the last build was running meanwhile.
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

  /// Builds in a row that the same files started, by changing during the one before.
  ///
  /// A person who saves a file during each of them is told, and saves once more.
  private static let roundsMax = 3
}
