import JSONText
import Subprocess

/// A watcher of a functions source that requests builds and reloads.
///
/// It polls the files, which works on every system and file system. It covers the package's targets
/// except tests, the packages that it depends on by path, and the `.env` files.
package actor SourceWatch {
  /// A request to the deployer.
  package enum Request: Sendable, Hashable {
    /// Build and deploy, because these files changed.
    case build([String])
    /// Restart the workers, because these settings changed.
    case reload([String])
    /// Do nothing, because the build itself changes these files.
    ///
    /// Only another change starts a build.
    case pause([String])
  }

  private let source: FunctionsSource
  private let excluded: Set<String>
  private let project: String
  private let clock: any Clock<Duration>
  private let swift: Executable
  private var files: WatchedFiles
  private var plan = WatchPlan()

  /// Creates a watcher of one source; changes below the `excluding` folders are ignored.
  package init(
    _ source: FunctionsSource,
    project: String,
    excluding: Set<String> = [],
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    self.init(source, project: project, excluding: excluding, clock: clock, swift: .name("swift"))
  }

  /// Creates a watcher that uses the command `swift` to read the layout of packages.
  init(
    _ source: FunctionsSource,
    project: String,
    excluding: Set<String>,
    clock: any Clock<Duration>,
    swift: Executable
  ) {
    self.source = source
    self.project = project
    self.clock = clock
    self.swift = swift
    excluded = excluding
    files = WatchedFiles(roots: [], excluded: excluding)
  }

  /// Records the current state of the files; only changes after this call count.
  package func begin() async {
    files = WatchedFiles(roots: await roots(), excluded: excluded)
    _ = files.changes()
  }

  /// Calls `act` for each change, one at a time, until the task is cancelled.
  ///
  /// Changes in quick succession count as one. Changes during `act` are reported after it returns.
  /// If `act` returns false, the request could not be accepted and is repeated.
  package func run(_ act: @Sendable (Request) async -> Bool) async throws {
    var isAfterBuild = false
    var untaken: Set<String> = []
    while true {
      try await clock.sleep(for: Self.interval)
      var changed = files.changes().union(untaken)
      guard !changed.isEmpty else {
        isAfterBuild = false
        continue
      }
      // Saving many files, or a checkout, is over when a scan finds no new changes.
      for _ in 0..<Self.looksMax {
        try await clock.sleep(for: Self.quiet)
        let more = files.changes()
        if more.isEmpty { break }
        changed.formUnion(more)
      }
      let action =
        untaken.isEmpty
        ? plan.action(for: changed, duringBuild: isAfterBuild)
        : plan.action(for: changed, duringBuild: false)
      let names = changed.sorted()
      switch action {
      case .build:
        if changed.contains(where: { $0.hasSuffix("/Package.swift") }) { await findRoots() }
        untaken = await act(.build(names)) ? [] : changed
        isAfterBuild = untaken.isEmpty
      case .reload:
        untaken = await act(.reload(names)) ? [] : changed
        isAfterBuild = false
      case .pause:
        untaken = []
        _ = await act(.pause(names))
        isAfterBuild = false
      }
    }
  }

  /// Updates the watched folders if the package's targets or dependencies have changed.
  private func findRoots() async {
    let roots = await roots()
    guard roots != files.roots else { return }
    files = WatchedFiles(roots: roots, excluded: excluded)
    _ = files.changes()
  }

  private func roots() async -> Set<String> {
    var roots = Set(
      UserEnvironment.files(project: project).map { "\(source.folder)/\($0)" }
    )
    switch source {
    case .executable(let path, _): roots.insert(path)
    case .package(let path, _, _):
      var packages = [path]
      var seen: Set<String> = []
      while let package = packages.popLast() {
        guard seen.count < Self.packagesMax, seen.insert(package).inserted else { continue }
        let layout = await PackageLayout(of: package, swift: swift)
        roots.formUnion(layout.roots)
        packages += layout.localDependencies
      }
    }
    return roots
  }

  private static let interval = Duration.milliseconds(500)
  /// The time that the files must stay unchanged before a build begins.
  private static let quiet = Duration.milliseconds(200)
  /// The maximum number of scans before a build, so that endless changes cannot postpone it.
  private static let looksMax = 25
  /// The maximum number of packages watched, including those it depends on by path.
  private static let packagesMax = 50
}

/// The files and folders that a package is built from.
struct PackageLayout {
  /// The package's manifest and the folders of its targets, except tests.
  var roots: Set<String>
  /// The paths of the packages that it depends on by path.
  var localDependencies: [String] = []

  /// Reads the layout from SwiftPM; if that fails, the layout is the whole folder.
  init(of path: String, swift: Executable) async {
    roots = ["\(path)/Package.swift", "\(path)/Package.resolved"]
    let result = try? await ChildProcess.run(
      swift,
      ["package", "--package-path", path, "describe", "--type", "json"]
    )
    let text = (result?.output ?? []).drop { !$0.hasPrefix("{") }.joined(separator: "\n")
    // A package that cannot be described is watched as a whole.
    guard result?.succeeded == true,
      let package = try? Description(decodingJSON: text.utf8)
    else {
      roots.insert(path)
      return
    }
    for target in package.targets where target.type != "test" {
      roots.insert(target.path.hasPrefix("/") ? target.path : "\(path)/\(target.path)")
    }
    localDependencies = (package.dependencies ?? []).compactMap {
      $0.type == "fileSystem" ? $0.path : nil
    }
  }

  private struct Description: Decodable {
    struct Target: Decodable {
      var path: String
      var type: String
    }
    struct Dependency: Decodable {
      var type: String
      var path: String?
    }
    var targets: [Target]
    var dependencies: [Dependency]?
  }
}
