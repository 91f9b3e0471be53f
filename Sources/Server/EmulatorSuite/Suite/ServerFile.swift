import Foundation
import RuntimeSupport

/// The files by which other processes find a running suite.
///
/// `DATA/server.json` is Hearth's; `hub-{project}.json` in the temporary folder is the locator file
/// that Firebase's own tools read and write.
package enum ServerFile {
  /// Writes both files, each in one step; throws `StatusError` naming a file that it cannot write.
  static func write(_ description: SuiteDescription, folder: String, version: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    try write(encoder.encode(description), to: URL(filePath: folder).appending(path: fileName))
    guard let hub = description.services["hub"] else { return }
    let locator = Locator(
      version: version,
      origins: ["http://\(hub.host):\(hub.port)"],
      pid: description.pid
    )
    try write(encoder.encode(locator), to: locatorURL(project: description.project))
  }

  /// Removes both files when they are this process's.
  static func remove(_ description: SuiteDescription, folder: String) {
    let server = URL(filePath: folder).appending(path: fileName)
    // A file that is already gone, or belongs to another suite, needs no removing.
    if read(folder: folder)?.pid == description.pid {
      try? FileManager.default.removeItem(at: server)
    }
    let locator = locatorURL(project: description.project)
    if let data = try? Data(contentsOf: locator),
      let found = try? JSONDecoder().decode(Locator.self, from: data), found.pid == description.pid
    {
      try? FileManager.default.removeItem(at: locator)
    }
  }

  /// The contents of `folder/server.json`, or nil when there is no readable file.
  package static func read(folder: String) -> SuiteDescription? {
    // Missing and malformed mean the same to a caller: there is no suite here.
    guard let data = try? Data(contentsOf: URL(filePath: folder).appending(path: fileName)) else {
      return nil
    }
    return try? JSONDecoder().decode(SuiteDescription.self, from: data)
  }

  /// The first origin that Firebase's locator file names for a project, or nil.
  package static func locatorOrigin(project: String) -> String? {
    guard let data = try? Data(contentsOf: locatorURL(project: project)),
      let locator = try? JSONDecoder().decode(Locator.self, from: data)
    else { return nil }
    return locator.origins.first
  }

  private static func write(_ data: Data, to url: URL) throws {
    do {
      try data.write(to: url, options: .atomic)
    } catch let error as CocoaError where error.code == .fileWriteOutOfSpace {
      throw StatusError(
        .resourceExhausted,
        "no space is left for \(url.path); free some and start again"
      )
    } catch {
      throw StatusError(
        .failedPrecondition,
        "\(url.path) cannot be written: \(error.localizedDescription) Mend that and start again."
      )
    }
  }

  private static let fileName = "server.json"

  private static func locatorURL(project: String) -> URL {
    FileManager.default.temporaryDirectory.appending(path: "hub-\(project).json")
  }

  private struct Locator: Codable {
    var version: String
    var origins: [String]
    var pid: Int32
  }
}
