import JSONText
import Manifests
import LibC

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The `DATA/deployments` folder, with a folder per deployment and the current one's ID.
struct DeploymentFolder: Sendable {
  let path: String
  /// The number of other deployments kept for a rollback.
  static let keptMax = 3

  private var currentPath: String { "\(path)/\(Self.currentName)" }

  func folder(_ id: String) -> String { "\(path)/\(id)" }
  func binary(_ id: String) -> String { "\(path)/\(id)/functions" }

  /// The maximum size of the binaries that only those others need, in bytes.
  ///
  /// It is room for three in release, and for one in debug, whose binaries have about 100 MB.
  var keptBytesMax = 128 << 20

  /// Copies a binary and its resources to a new folder, and syncs the binary to disk.
  ///
  /// A binary that another deployment has already is linked, so that it takes no room.
  func stage(_ binary: String, id: String) throws {
    try FileManager.default.createDirectory(
      atPath: folder(id),
      withIntermediateDirectories: true
    )
    // A copied link could later lead to another binary, or to none.
    let binary = URL(filePath: binary).resolvingSymlinksInPath().path
    try place(binary, at: self.binary(id))
    // SwiftPM puts resources beside the binary, where the binary looks for them.
    let built = binary.lastIndex(of: "/").map { String(binary[..<$0]) } ?? "."
    for name in try FileManager.default.contentsOfDirectory(atPath: built)
    where name.hasSuffix(".resources") || name.hasSuffix(".bundle") {
      try FileManager.default.copyItem(atPath: "\(built)/\(name)", toPath: folder(id) + "/\(name)")
    }
    try Self.sync(self.binary(id))
  }

  private func place(_ binary: String, at path: String) throws {
    // A folder that cannot be listed has nothing to link to.
    let ids = (try? FileManager.default.contentsOfDirectory(atPath: self.path)) ?? []
    for id in ids.sorted(by: >) where Self.isOfDeployment(id) {
      let known = self.binary(id)
      guard let bytes = Self.bytes(ofFile: known), bytes == Self.bytes(ofFile: binary),
        FileManager.default.contentsEqual(atPath: known, andPath: binary),
        link(known, path) == 0
      else { continue }
      return
    }
    try FileManager.default.copyItem(atPath: binary, toPath: path)
  }

  /// Removes a staged folder that was never deployed.
  func discard(_ id: String) {
    // A folder that cannot be removed is pruned after the next deployment.
    try? FileManager.default.removeItem(atPath: folder(id))
  }

  /// Writes the record and makes it the current one, atomically even if the machine crashes.
  func makeCurrent(_ record: DeploymentRecord) throws {
    try FileManager.default.createDirectory(
      atPath: folder(record.id),
      withIntermediateDirectories: true
    )
    let recordPath = recordPath(record.id)
    try Data(record.jsonBytes(isPretty: true)).write(
      to: URL(filePath: recordPath),
      options: .atomic
    )
    try Self.sync(recordPath)
    try Self.sync(folder(record.id))
    try makeCurrent(record.id)
  }

  /// Makes an existing deployment the current one, atomically.
  func makeCurrent(_ id: String) throws {
    try Data(id.utf8).write(to: URL(filePath: currentPath), options: .atomic)
    try Self.sync(currentPath)
    try Self.sync(path)
  }

  /// Returns the current deployment; nil before the first one.
  ///
  /// Throws `DeploymentError` if its files are damaged.
  func current() throws -> DeploymentRecord? {
    guard FileManager.default.fileExists(atPath: currentPath) else { return nil }
    do {
      let id = String(decoding: try Data(contentsOf: URL(filePath: currentPath)), as: UTF8.self)
      return try record(id)
    } catch {
      throw DeploymentError(
        "The last deployment in \(path) is damaged or incomplete; `hearth deploy` makes a new one."
      )
    }
  }

  /// Returns the complete deployments, newest first.
  func records() -> [DeploymentRecord] {
    // A deployment that cannot be listed or read cannot be served again, so it is skipped.
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return names.compactMap { name in
      Self.isOfDeployment(name) ? try? record(name) : nil
    }.filter { record in
      Set(record.manifest.endpoints.keys.map { record.binary(of: $0) }).allSatisfy {
        FileManager.default.isExecutableFile(atPath: binary($0))
      }
    }.sorted { ($0.time ?? $0.id, $0.id) > ($1.time ?? $1.id, $1.id) }
  }

  /// Removes all folders that neither the current deployment nor a kept one needs.
  ///
  /// The newest others, within `keptBytesMax`, and the one that the current deployment replaced are
  /// kept, together with the deployments whose binaries they use.
  func prune(current: DeploymentRecord) {
    let others = records().filter { $0.id != current.id }
    // After a rollback, the deployment that the current one replaced may not be among the newest.
    let kept = [current] + others.filter { $0.id == current.replaced }
    var needed = Set(kept.flatMap(\.folders))
    var binaries = Set(needed.compactMap { Self.file(binary($0)) })
    var bytes = 0
    for other in others.prefix(Self.keptMax) {
      let added = Set(other.folders.compactMap { Self.file(binary($0)) }).subtracting(binaries)
      bytes += added.reduce(0) { $0 + $1.bytes }
      guard bytes <= keptBytesMax else { break }
      binaries.formUnion(added)
      needed.formUnion(other.folders)
    }
    // A folder that cannot be listed or removed only costs disk space.
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    let files: Set = [Self.currentName, Self.startsName]
    for name in names where !files.contains(name) && !needed.contains(name) {
      // A folder that cannot be removed only costs disk space.
      try? FileManager.default.removeItem(atPath: folder(name))
    }
  }

  // MARK: - Starts

  /// Returns the starts that servers have begun; empty before the first one.
  func starts() throws -> StartHistory {
    guard FileManager.default.fileExists(atPath: startsPath) else { return StartHistory() }
    return try StartHistory(decodingJSON: Data(contentsOf: URL(filePath: startsPath)))
  }

  /// Stores the starts; synced to disk while a start is in progress.
  func keep(_ starts: StartHistory) throws {
    guard starts != StartHistory() else {
      guard FileManager.default.fileExists(atPath: startsPath) else { return }
      return try FileManager.default.removeItem(atPath: startsPath)
    }
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    try Data(starts.jsonBytes()).write(to: URL(filePath: startsPath), options: .atomic)
    guard starts.starting != nil else { return }
    try Self.sync(startsPath)
    try Self.sync(path)
  }

  /// True if two deployments have identical binaries; false if a binary is missing.
  func haveSameBinary(_ id: String, _ other: String) -> Bool {
    FileManager.default.contentsEqual(atPath: binary(id), andPath: binary(other))
  }

  func exists(_ id: String) -> Bool { FileManager.default.fileExists(atPath: folder(id)) }

  // MARK: - Names

  private static let currentName = "current"
  private static let startsName = "starting"

  private var startsPath: String { "\(path)/\(Self.startsName)" }

  /// True if a name can be a deployment's folder.
  ///
  /// A record might contain a malicious ID that leads out of the folder.
  private static func isOfDeployment(_ name: String) -> Bool {
    !name.isEmpty && !name.hasPrefix(".") && !name.contains("/") && name != currentName
      && name != startsName
  }

  private func recordPath(_ id: String) -> String { folder(id) + "/deployment.json" }

  private func record(_ id: String) throws -> DeploymentRecord {
    let record = try DeploymentRecord(decodingJSON: Data(contentsOf: URL(filePath: recordPath(id))))
    guard record.id == id, record.folders.allSatisfy(Self.isOfDeployment) else {
      throw DeploymentError("\(recordPath(id)) is the record of another deployment.")
    }
    return record
  }

  /// A file on the disk, which several deployments may share.
  private struct File: Hashable {
    var inode: UInt64
    var bytes: Int
  }

  private static func file(_ path: String) -> File? {
    var status = stat()
    guard lstat(path, &status) == 0 else { return nil }
    return File(inode: UInt64(status.st_ino), bytes: Int(status.st_size))
  }

  /// The size of a regular file; nil for a link, a pipe or a missing file.
  static func bytes(ofFile path: String) -> Int? {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return Int(status.st_size)
  }

  private static func sync(_ path: String) throws {
    let descriptor = open(path, O_RDONLY)
    guard descriptor >= 0 else {
      throw DeploymentError("\(path) cannot be opened: \(String(cString: strerror(errno))).")
    }
    defer { close(descriptor) }
    guard syncToDisk(descriptor) == 0 else {
      throw DeploymentError("\(path) cannot be synced: \(String(cString: strerror(errno))).")
    }
  }
}
