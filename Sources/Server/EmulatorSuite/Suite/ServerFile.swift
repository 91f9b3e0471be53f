import HTTPSupport
import JSONText
import Foundation
import Identifiers
import Identity
import StatusCodes
import LibC

/// The files through which other processes find a running suite.
///
/// `DATA/server.json` is Hearth's own file, and `HubToken` defines a pointer to it. That of an
/// ephemeral suite is found by the data folder that it does without.
/// `hub-{project}.json` in the temporary folder is the locator file of Firebase's tools.
package enum ServerFile {
  /// Writes the files, each atomically; returns the paths of optional files that failed.
  ///
  /// Only this user can read `server.json`, because it contains the token. Throws `StatusError` if
  /// that file cannot be written. The optional files are in the temporary folder. The locator file
  /// is left out without `hasLocator`, and if it is that of another suite that runs.
  static func write(
    _ description: SuiteDescription,
    token: String,
    folder: String,
    hasLocator: Bool = true,
    version: String
  ) async throws -> [String] {
    let server = URL(filePath: path(folder: folder))
    var secret = description
    secret.token = token
    try write(Data(secret.jsonBytes()), to: server, isPrivate: true)
    guard let hub = description.services["hub"] else { return [] }
    let pointer = try HubToken.pointer(serverFile: server.path)
    let pointerPath = HubToken.pointerPath(host: hub.host, port: hub.port)
    let locator = Locator(
      version: version,
      origins: ["http://\(hub.host):\(hub.port)"],
      pid: description.pid
    )
    var conveniences = [(pointer, URL(filePath: pointerPath))]
    let old = self.locator(project: description.project)
    if hasLocator, await !isOfRunningSuite(old, besides: hub) {
      conveniences.append((Data(try locator.jsonBytes()), locatorURL(project: description.project)))
    }
    // They may belong to another user, or the disk is full; then commands need the hub's address.
    return conveniences.compactMap { data, url in
      do {
        try write(data, to: url)
        return nil
      } catch {
        return url.path
      }
    }
  }

  /// Removes the files if they belong to this process.
  static func remove(_ description: SuiteDescription, folder: String) {
    let server = URL(filePath: path(folder: folder))
    // A file that is missing or belongs to another suite is left alone.
    if read(folder: folder)?.pid == description.pid {
      try? FileManager.default.removeItem(at: server)
    }
    // What cannot be removed names a process that has ended, which readers notice.
    if locator(project: description.project)?.pid == description.pid {
      try? FileManager.default.removeItem(at: locatorURL(project: description.project))
    }
    // A pointer that cannot be removed leads to no hub, which readers notice.
    if let hub = description.services["hub"] {
      try? FileManager.default.removeItem(
        atPath: HubToken.pointerPath(host: hub.host, port: hub.port)
      )
    }
  }

  /// Returns the contents of `folder/server.json`; nil if there is no readable file.
  package static func read(folder: String) -> SuiteDescription? {
    // A missing and a malformed file both mean that there is no suite here.
    guard let data = try? Data(contentsOf: URL(filePath: path(folder: folder))) else { return nil }
    return try? SuiteDescription(decodingJSON: data)
  }

  /// Returns the descriptions of the ephemeral suites that do without a data folder.
  ///
  /// Suites of other users are left out.
  package static func readEphemeral(replacing folder: String) -> [SuiteDescription] {
    let folder = canonical(folder)
    return DataFolder.ephemeralFolders.compactMap { candidate in
      guard candidate.owner == geteuid(), let suite = read(folder: candidate.path) else {
        return nil
      }
      return suite.replacedFolder == folder ? suite : nil
    }
  }

  /// Returns the absolute path of a data folder, which need not exist, without symbolic links.
  static func canonical(_ folder: String) -> String {
    let url = URL(filePath: folder).standardizedFileURL
    return url.deletingLastPathComponent().resolvingSymlinksInPath()
      .appending(path: url.lastPathComponent).path
  }

  /// Returns the first origin in a project's Firebase locator file; nil if there is none.
  package static func locatorOrigin(project: String) -> String? {
    locator(project: project)?.origins.first
  }

  /// Returns true if a process at another address than `hub` serves the hub of a locator file.
  private static func isOfRunningSuite(_ locator: Locator?, besides hub: ServiceAddress) async
    -> Bool
  {
    guard let locator, kill(locator.pid, 0) == 0 || errno == EPERM,
      let origin = locator.origins.first.flatMap(URLComponents.init(string:)),
      let host = origin.host, let port = origin.port, port != hub.port
    else { return false }
    return await ServerAddress.tcp(host: host, port: port).isInUse()
  }

  private static func locator(project: String) -> Locator? {
    // A file that is missing or of another form locates no suite.
    guard let data = try? Data(contentsOf: locatorURL(project: project)) else { return nil }
    return try? Locator(decodingJSON: data)
  }

  private static func write(_ data: Data, to url: URL, isPrivate: Bool = false) throws {
    do {
      if isPrivate {
        try writePrivately(data, to: url)
      } else {
        try data.write(to: url, options: .atomic)
      }
    } catch let error as CocoaError where error.code == .fileWriteOutOfSpace {
      throw StatusError(
        .resourceExhausted,
        "no space is left for \(url.path): \(data.count) bytes are missing; free some and start again"
      )
    } catch {
      throw StatusError(
        .failedPrecondition,
        "\(url.path) cannot be written: \(error.localizedDescription) Fix that and start again."
      )
    }
  }

  /// Writes a file that was never readable by other users and that no one else created.
  private static func writePrivately(_ data: Data, to url: URL) throws {
    let new = url.appendingPathExtension(RandomID.make(length: 8))
    let file = open(new.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    guard file >= 0 else {
      if errno == ENOSPC, overwritePrivately(data, at: url) { return }
      throw CocoaError(errno == ENOSPC ? .fileWriteOutOfSpace : .fileWriteUnknown)
    }
    do {
      try FileHandle(fileDescriptor: file, closeOnDealloc: true).write(contentsOf: data)
    } catch {
      let isFull = errno == ENOSPC
      unlink(new.path)
      if isFull, overwritePrivately(data, at: url) { return }
      throw isFull ? CocoaError(.fileWriteOutOfSpace) : error
    }
    guard rename(new.path, url.path) == 0 else { throw CocoaError(.fileWriteUnknown) }
  }

  /// Overwrites the file of an earlier process, which works even on a full disk.
  ///
  /// Returns false if there is no such file, or if other users could have read or created it. A
  /// reader may see a partly written file, and treats it like a missing one.
  static func overwritePrivately(_ data: Data, at url: URL) -> Bool {
    // A missing file has no attributes. Only the data folder's owner can replace an existing one.
    guard let found = try? FileManager.default.attributesOfItem(atPath: url.path),
      found[.type] as? FileAttributeType == .typeRegular,
      (found[.posixPermissions] as? NSNumber)?.intValue == 0o600,
      (found[.ownerAccountID] as? NSNumber)?.uint32Value == geteuid(),
      (found[.referenceCount] as? NSNumber)?.intValue == 1
    else { return false }
    let file = open(url.path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
    guard file >= 0 else { return false }
    defer { close(file) }
    let written = data.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, 0) }
    return written == data.count && ftruncate(file, off_t(data.count)) == 0
  }

  /// Returns the path of a data folder's `server.json`.
  static func path(folder: String) -> String {
    URL(filePath: folder).appending(path: "server.json").path
  }

  private static func locatorURL(project: String) -> URL {
    FileManager.default.temporaryDirectory.appending(path: "hub-\(project).json")
  }

  private struct Locator: Codable {
    var version: String
    var origins: [String]
    var pid: Int32
  }
}
