import Foundation
import StatusCodes
import LibC

/// The destination of an export, which is written beside it and moved once all of it is on disk.
///
/// Until then an earlier export stays untouched, even after a crash. The next export to the same
/// path removes the files that a killed export has left.
final class ExportDestination {
  /// The absolute path, with symbolic links resolved.
  let path: String
  /// The folder to which the export is written, beside `path`, so that it can be renamed.
  let workPath: String
  private let parent: String
  private let lockPath: String
  private let lock: CInt

  /// Claims a path for one export.
  ///
  /// `isExport` decides by the names in a folder whether the folder contains an export and nothing
  /// else. Throws `FAILED_PRECONDITION` for a folder with other contents or one that cannot be
  /// written. Throws `ALREADY_EXISTS` for an earlier export unless `replaces` is true, and
  /// `ABORTED` while another export to the same path is in progress.
  init(
    path: String,
    replaces: Bool,
    isExport: ([String]) -> Bool
  ) throws {
    let resolved = URL(filePath: path).standardizedFileURL.resolvingSymlinksInPath()
    let name = resolved.lastPathComponent
    guard name != "/", !name.isEmpty else {
      throw StatusError.invalidArgument("\(path) cannot hold an export; name a folder below it.")
    }
    self.path = resolved.path
    parent = resolved.deletingLastPathComponent().path
    try Self.makeFolder(parent)
    let prefix = "\(parent)/.\(name).\(Self.mark)"
    lockPath = prefix + "lock"
    lock = try Self.claim(lockPath, self.path)
    workPath = prefix + "new"
    // From here on `deinit` releases the lock if an error is thrown. No other process holds the
    // lock, so these folders are leftovers of a killed export.
    try Self.restore(self.path)
    for suffix in ["new", "old"] where Self.exists(prefix + suffix) {
      try Self.remove(prefix + suffix)
    }
    try Self.check(self.path, replaces: replaces, isExport: isExport)
    guard mkdir(workPath, 0o700) == 0 else { throw DiskError.writing(workPath) }
  }

  deinit {
    unlink(lockPath)
    close(lock)
  }

  /// Restores the earlier export at a path if a kill interrupted its replacement.
  static func restore(_ path: String) throws {
    let resolved = URL(filePath: path).standardizedFileURL.resolvingSymlinksInPath()
    let old =
      resolved.deletingLastPathComponent().path
      + "/.\(resolved.lastPathComponent).\(mark)old"
    guard !exists(resolved.path), exists(old) else { return }
    guard rename(old, resolved.path) == 0 else { throw DiskError.writing(resolved.path) }
  }

  /// Creates a folder in the new export and returns its path.
  func makeFolder(_ name: String) throws -> String {
    let path = "\(workPath)/\(name)"
    guard mkdir(path, 0o700) == 0 else { throw DiskError.writing(path) }
    return path
  }

  /// Replaces the old export with the new export.
  ///
  /// `folders` are the folders that were created in the new export.
  func publish(folders: [String]) throws {
    for folder in folders + [workPath] { try Self.sync(folder) }
    if rename(workPath, path) != 0 {
      guard errno == EEXIST || errno == ENOTEMPTY else { throw DiskError.writing(path) }
      try exchange()
      try Self.remove(workPath)
    }
    try Self.sync(parent)
  }

  /// Removes the files written so far.
  func abandon() throws { try Self.remove(workPath) }

  /// Swaps the new and the old export, so that there is always an export at the path.
  private func exchange() throws {
    if Self.swap(workPath, path) { return }
    // This file system cannot swap folders. After a kill in between, the next export restores the
    // old one.
    let old = workPath.dropLast(3) + "old"
    guard rename(path, String(old)) == 0, rename(workPath, path) == 0,
      rename(String(old), workPath) == 0
    else { throw DiskError.writing(path) }
  }

  /// Swaps two folders in one step; false if the system or the file system does not support it.
  private static func swap(_ one: String, _ other: String) -> Bool {
    #if canImport(Darwin)
      return renamex_np(one, other, UInt32(RENAME_SWAP)) == 0
    #else
      // The C library's modules do not show this function, and older C libraries lack it.
      typealias Function =
        @convention(c) (CInt, UnsafePointer<CChar>, CInt, UnsafePointer<CChar>, CUnsignedInt) ->
        CInt
      guard let symbol = dlsym(nil, "renameat2") else { return false }
      let exchange: CUnsignedInt = 2
      return unsafeBitCast(symbol, to: Function.self)(AT_FDCWD, one, AT_FDCWD, other, exchange) == 0
    #endif
  }

  /// The common part of the names of Hearth's own files beside an export.
  private static let mark = "hearth-export."

  /// Locks a path.
  ///
  /// The lock ends with the process, even if the process crashes.
  private static func claim(_ lockPath: String, _ path: String) throws -> CInt {
    while true {
      let lock = open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
      guard lock >= 0 else { throw DiskError.writing(path) }
      guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
        close(lock)
        throw StatusError(
          .aborted,
          "Another export to \(path) is under way; wait for it or name another folder."
        )
      }
      // The previous holder may have removed the lock file after it was opened here.
      var held = stat()
      var named = stat()
      if fstat(lock, &held) == 0, stat(lockPath, &named) == 0, held.st_ino == named.st_ino {
        return lock
      }
      close(lock)
    }
  }

  /// Throws `FAILED_PRECONDITION` for something else than an export, and `ALREADY_EXISTS` for an
  /// export that may not be replaced.
  static func check(
    _ path: String,
    replaces: Bool,
    isExport: ([String]) -> Bool
  ) throws {
    guard exists(path) else { return }
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: path)
    } catch {
      throw StatusError(
        .failedPrecondition,
        "\(path) is not a folder that can be read; name another one for the export."
      )
    }
    guard !names.isEmpty else { return }
    guard isExport(names) else {
      let shown = names.sorted().prefix(namesShown).joined(separator: ", ")
      throw StatusError(
        .failedPrecondition,
        "\(path) holds something else than an export of Hearth (it has \(shown)) and is left alone; "
          + "name a new folder."
      )
    }
    guard replaces else {
      throw StatusError(.alreadyExists, "\(path) already holds an export.")
    }
  }

  /// The number of names that a refusal repeats.
  private static let namesShown = 5

  private static func makeFolder(_ path: String) throws {
    do {
      try FileManager.default.createDirectory(
        atPath: path,
        withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700]
      )
    } catch {
      throw StatusError(
        .failedPrecondition,
        "The folder \(path) cannot be made: \(error.localizedDescription)"
      )
    }
  }

  private static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  private static func remove(_ path: String) throws {
    do {
      try FileManager.default.removeItem(atPath: path)
    } catch {
      throw StatusError(
        .failedPrecondition,
        "\(path), which an export left, cannot be removed: \(error.localizedDescription)"
      )
    }
  }

  private static func sync(_ folder: String) throws {
    let descriptor = open(folder, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw DiskError.writing(folder) }
    defer { close(descriptor) }
    guard syncToDisk(descriptor) == 0 else { throw DiskError.writing(folder) }
  }
}
