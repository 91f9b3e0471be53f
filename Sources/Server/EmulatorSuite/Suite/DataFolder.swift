import Foundation
import Identifiers
import StatusCodes
import LibC

/// The folder for everything that a suite stores, created on demand.
struct DataFolder: Sendable {
  let path: String
  let isEphemeral: Bool
  /// The new paths of the folders of ended suites that still owed an export.
  let unexported: [String]

  /// The folder of the deployments.
  var deployments: String { path + "/deployments" }

  /// Creates the folder, or a temporary one whose name contains this process's ID.
  ///
  /// Temporary folders of processes that have exited are removed first, or kept under another name
  /// if their export is due. Throws `FAILED_PRECONDITION` if the folder cannot be created or is not
  /// writable.
  init(configuration: SuiteConfiguration) throws {
    isEphemeral = configuration.isEphemeral
    if isEphemeral {
      unexported = Self.reap()
      path =
        FileManager.default.temporaryDirectory
        .appending(path: "\(Self.ephemeralPrefix)\(getpid())-\(RandomID.make(length: 6))").path
    } else {
      unexported = []
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
  var isExportDue: Bool { isEphemeral && Self.isExportDue(path) }

  /// Records whether an export is due, so that the data outlive a process that is killed before it.
  func setExportDue(_ isDue: Bool) throws {
    guard isEphemeral else { return }
    let mark = Self.exportMark(path)
    if isDue {
      try Data().write(to: mark)
    } else {
      try FileManager.default.removeItem(at: mark)
    }
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

  private static func isExportDue(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: exportMark(path).path)
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

  private static func reap() -> [String] {
    ephemeralFolders.filter { kill($0.pid, 0) != 0 && errno == ESRCH }.compactMap { folder in
      // What cannot be moved or removed is left to the next start.
      if folder.owner == geteuid(), isExportDue(folder.path) { return try? keep(folder.path) }
      try? FileManager.default.removeItem(atPath: folder.path)
      return nil
    }
  }
}
