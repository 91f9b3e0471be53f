import Foundation
import Identifiers
import StatusCodes
import LibC

/// The folder for everything that a suite stores, created on demand.
struct DataFolder: Sendable {
  let path: String
  let isEphemeral: Bool
  /// The folders of ended suites that still owed an export, under their new paths.
  let unexported: [(path: String, project: String)]

  /// The folder of the deployments.
  var deployments: String { path + "/deployments" }

  /// Creates the folder, or a temporary one whose name contains this process's ID.
  ///
  /// Temporary folders of processes that have exited are removed first, or kept under another name
  /// if their export is due. Throws `FAILED_PRECONDITION` if the folder cannot be created or is not
  /// writable.
  init(configuration: SuiteConfiguration) throws {
    isEphemeral = configuration.isEphemeral
    unexported = Self.reap()
    if isEphemeral {
      path =
        FileManager.default.temporaryDirectory
        .appending(path: "\(Self.ephemeralPrefix)\(getpid())-\(RandomID.make(length: 6))").path
    } else {
      path = URL(filePath: configuration.dataFolder).standardizedFileURL.path
    }
    do {
      try FileManager.default.createDirectory(
        atPath: path,
        withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700]
      )
    } catch {
      throw StatusError(
        .failedPrecondition,
        "The data folder \(path) cannot be made: \(error.localizedDescription) "
          + "Name another one with --data."
      )
    }
    guard access(path, W_OK) == 0 else {
      throw StatusError(
        .failedPrecondition,
        "The data folder \(path) is not writable. Fix its permissions or name another one "
          + "with --data."
      )
    }
  }

  /// Removes a temporary folder with its contents; other folders are kept.
  func removeIfEphemeral() throws {
    guard isEphemeral else { return }
    try FileManager.default.removeItem(atPath: path)
  }

  /// True while the data of a temporary folder have to be exported before they may be removed.
  var isExportDue: Bool { isEphemeral && Self.projectOfDueExport(path) != nil }

  /// Records that an export of a project is due, so that the data outlive a killed process.
  func setExportDue(of project: String) throws {
    guard isEphemeral else { return }
    try Data(project.utf8).write(to: Self.exportMark(path))
  }

  /// Records that no export is due any more.
  func clearExportDue() throws {
    guard isEphemeral else { return }
    try FileManager.default.removeItem(at: Self.exportMark(path))
  }

  /// Moves a temporary folder to a name under which no later start removes it; returns its path.
  func keep() throws -> String { try Self.keep(path) }

  private static func keep(_ path: String) throws -> String {
    let kept = URL(filePath: path).deletingLastPathComponent()
      .appending(path: "hearth-kept-\(RandomID.make(length: 6))").path
    try FileManager.default.moveItem(atPath: path, toPath: kept)
    return kept
  }

  private static func exportMark(_ path: String) -> URL {
    URL(filePath: path).appending(path: "export-due")
  }

  private static func projectOfDueExport(_ path: String) -> String? {
    // Without a mark no export is due.
    try? String(contentsOf: exportMark(path), encoding: .utf8)
  }

  private static let ephemeralPrefix = "hearth-ephemeral-"

  /// The folders of ephemeral suites, with the IDs of their processes and of the folders' owners.
  static var ephemeralFolders: [(path: String, pid: pid_t, owner: uid_t)] {
    let folder = FileManager.default.temporaryDirectory
    // A temporary folder that cannot be listed has none.
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    return names.filter { $0.hasPrefix(ephemeralPrefix) }.compactMap { name in
      let path = folder.appending(path: name).path
      var status = stat()
      guard let pid = pid_t(name.dropFirst(ephemeralPrefix.count).prefix { $0 != "-" }),
        lstat(path, &status) == 0
      else { return nil }
      return (path, pid, status.st_uid)
    }
  }

  private static func reap() -> [(path: String, project: String)] {
    ephemeralFolders.filter { kill($0.pid, 0) != 0 && errno == ESRCH }.compactMap { folder in
      // What cannot be moved or removed is left to the next start.
      if folder.owner == geteuid(), let project = projectOfDueExport(folder.path) {
        return (try? keep(folder.path)).map { ($0, project) }
      }
      // Left to the next start, too.
      try? FileManager.default.removeItem(atPath: folder.path)
      return nil
    }
  }
}
