import Foundation
import RuntimeSupport

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The files by which other processes find a running suite.
///
/// `DATA/server.json` is Hearth's, with the pointer to it of `HubToken`; `hub-{project}.json` in the
/// temporary folder is the locator file that Firebase's own tools read and write.
package enum ServerFile {
  /// Writes the files, each in one step; returns those in the temporary folder that it could not.
  ///
  /// Only this user can read `server.json`, because it has the token. Throws `StatusError` when that
  /// file cannot be written.
  static func write(
    _ description: SuiteDescription,
    token: String,
    folder: String,
    version: String
  ) throws -> [String] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let server = URL(filePath: path(folder: folder))
    var secret = description
    secret.token = token
    try write(encoder.encode(secret), to: server, isPrivate: true)
    guard let hub = description.services["hub"] else { return [] }
    let pointer = try HubToken.pointer(serverFile: server.path)
    let pointerPath = HubToken.pointerPath(host: hub.host, port: hub.port)
    let locator = Locator(
      version: version,
      origins: ["http://\(hub.host):\(hub.port)"],
      pid: description.pid
    )
    let conveniences = [
      (pointer, URL(filePath: pointerPath)),
      (try encoder.encode(locator), locatorURL(project: description.project)),
    ]
    // They may be another user's, or a full disk's; commands then need to be told the address.
    return conveniences.compactMap { data, url in
      do {
        try write(data, to: url)
        return nil
      } catch {
        return url.path
      }
    }
  }

  /// Removes both files when they are this process's.
  static func remove(_ description: SuiteDescription, folder: String) {
    let server = URL(filePath: path(folder: folder))
    // A file that is already gone, or belongs to another suite, needs no removing.
    if read(folder: folder)?.pid == description.pid {
      try? FileManager.default.removeItem(at: server)
    }
    if locator(project: description.project)?.pid == description.pid {
      try? FileManager.default.removeItem(at: locatorURL(project: description.project))
    }
    if let hub = description.services["hub"] {
      try? FileManager.default.removeItem(
        atPath: HubToken.pointerPath(host: hub.host, port: hub.port)
      )
    }
  }

  /// The contents of `folder/server.json`, or nil when there is no readable file.
  package static func read(folder: String) -> SuiteDescription? {
    // Missing and malformed mean the same to a caller: there is no suite here.
    guard let data = try? Data(contentsOf: URL(filePath: path(folder: folder))) else { return nil }
    return try? JSONDecoder().decode(SuiteDescription.self, from: data)
  }

  /// The first origin that Firebase's locator file names for a project, or nil.
  package static func locatorOrigin(project: String) -> String? {
    locator(project: project)?.origins.first
  }

  private static func locator(project: String) -> Locator? {
    guard let data = try? Data(contentsOf: locatorURL(project: project)) else { return nil }
    return try? JSONDecoder().decode(Locator.self, from: data)
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
        "\(url.path) cannot be written: \(error.localizedDescription) Mend that and start again."
      )
    }
  }

  /// Writes a file that has never been readable by others, and that nobody can have prepared.
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

  /// Writes over the file of an earlier process, whose room is there even on a full disk.
  ///
  /// False when there is no such file, or others could read or have prepared it. A reader may meet
  /// the file half written, which means the same to it as no file.
  static func overwritePrivately(_ data: Data, at url: URL) -> Bool {
    // A missing file has no attributes; only the data folder's owner can exchange one that is there.
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

  /// The path of a data folder's `server.json`.
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
