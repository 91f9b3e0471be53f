/// The decision logic for changed files.
///
/// It detects builds that write watched files, so that they do not trigger builds endlessly.
struct WatchPlan {
  /// The reaction to changed files.
  enum Action: Equatable {
    case build
    /// Restart the workers with the existing binaries, because only settings changed.
    case reload
    /// Do nothing, because the build itself seems to write these files.
    case pause(files: Set<String>)
  }

  /// The files that changed during a build and thereby started the next one.
  ///
  /// `rounds` counts how often this happened in a row.
  private var files: Set<String> = []
  private var rounds = 0

  /// Returns the reaction to changed files.
  ///
  /// `duringBuild` is true if the files changed while the last build was running.
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

  /// True if a path is one of the files that `UserEnvironment` reads.
  static func isSetting(_ path: String) -> Bool {
    let name = path.split(separator: "/").last ?? ""
    return name == ".env" || name.hasPrefix(".env.") || name == ".secret.local"
  }

  /// The number of builds in a row that the same files may trigger during builds.
  ///
  /// A person who saves a file during each build is asked to save it once more.
  private static let roundsMax = 3
}
