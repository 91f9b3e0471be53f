import Foundation
import Identifiers
import Identity
import NIOCore
import NIOPosix
import Testing
import TestSupport

@testable import EmulatorSuite

@Suite("Server file")
struct ServerFileTests {
  /// A suite with a unique project, because the locator files of all suites share a folder.
  private func description(
    project: String = "demo-\(RandomID.make(length: 12))",
    pid: Int32 = 4_000_001
  ) -> SuiteDescription {
    SuiteDescription(
      project: project,
      pid: pid,
      services: ["hub": ServiceAddress(host: "127.0.0.1", port: 4400)]
    )
  }

  @Test("What is written is found by folder and by project, and gone after removal")
  func writeReadRemove() async throws {
    let folder = try TemporaryFolder()
    let suite = description()
    #expect(ServerFile.read(folder: folder.path) == nil)
    #expect(ServerFile.locatorOrigin(project: suite.project) == nil)

    _ = try await ServerFile.write(suite, token: "t", folder: folder.path, version: "1")
    #expect(ServerFile.read(folder: folder.path) == suite.with(token: "t"))
    #expect(ServerFile.locatorOrigin(project: suite.project) == "http://127.0.0.1:4400")

    ServerFile.remove(suite, folder: folder.path)
    #expect(ServerFile.read(folder: folder.path) == nil)
    #expect(ServerFile.locatorOrigin(project: suite.project) == nil)
  }

  @Test("Where no new file can be made, the file of an earlier process is overwritten")
  func overwritten() async throws {
    let folder = try TemporaryFolder()
    let url = URL(filePath: folder.path("server.json"))
    let shorter = Data("{}".utf8)
    #expect(!ServerFile.overwritePrivately(shorter, at: url))
    try Data("a longer text than the next".utf8).write(to: url)
    // Other users could read the file.
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: url.path)
    #expect(!ServerFile.overwritePrivately(shorter, at: url))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: url.path)
    #expect(ServerFile.overwritePrivately(shorter, at: url))
    #expect(try Data(contentsOf: url) == shorter)

    let link = URL(filePath: folder.path("link.json"))
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: url)
    #expect(!ServerFile.overwritePrivately(Data("x".utf8), at: link))
  }

  @Test("The files of another process are kept")
  func otherProcess() async throws {
    let folder = try TemporaryFolder()
    let first = description()
    let second = description(project: first.project, pid: 4_000_002)
    _ = try await ServerFile.write(first, token: "1", folder: folder.path, version: "1")
    _ = try await ServerFile.write(second, token: "2", folder: folder.path, version: "1")
    defer { ServerFile.remove(second, folder: folder.path) }
    ServerFile.remove(first, folder: folder.path)

    #expect(ServerFile.read(folder: folder.path) == second.with(token: "2"))
    #expect(ServerFile.locatorOrigin(project: first.project) != nil)
  }

  @Test("Removing what is not there, and reading what is no description, does no harm")
  func missingAndMalformed() async throws {
    let folder = try TemporaryFolder()
    ServerFile.remove(description(), folder: folder.path)
    try "{".write(toFile: folder.path("server.json"), atomically: true, encoding: .utf8)

    #expect(ServerFile.read(folder: folder.path) == nil)
  }

  @Test("The locator file of a suite that runs is kept; that of one that has gone is replaced")
  func runningSuite() async throws {
    let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .bind(host: "127.0.0.1", port: 0).get()
    let folders = [try TemporaryFolder(), try TemporaryFolder()]
    var first = description(pid: getpid())
    first.services["hub"]?.port = try #require(server.localAddress?.port)
    let second = description(project: first.project)
    _ = try await ServerFile.write(first, token: "1", folder: folders[0].path, version: "1")
    _ = try await ServerFile.write(second, token: "2", folder: folders[1].path, version: "1")
    let origin = ServerFile.locatorOrigin(project: first.project)
    #expect(origin?.hasSuffix(":\(first.services["hub"]?.port ?? 0)") == true)

    try await server.close()
    _ = try await ServerFile.write(second, token: "2", folder: folders[1].path, version: "1")
    #expect(ServerFile.locatorOrigin(project: first.project) == "http://127.0.0.1:4400")
    ServerFile.remove(second, folder: folders[1].path)
  }

  @Test("A suite that only its children find writes no locator file")
  func privateSuite() async throws {
    let folder = try TemporaryFolder()
    let suite = description()
    _ = try await ServerFile.write(
      suite,
      token: "t",
      folder: folder.path,
      hasLocator: false,
      version: "1"
    )
    #expect(ServerFile.locatorOrigin(project: suite.project) == nil)
  }

  @Test("A suite without a hub writes no locator file")
  func withoutHub() async throws {
    let folder = try TemporaryFolder()
    var suite = description()
    suite.services = [:]
    _ = try await ServerFile.write(suite, token: "t", folder: folder.path, version: "1")

    #expect(ServerFile.read(folder: folder.path) == suite.with(token: "t"))
    #expect(ServerFile.locatorOrigin(project: suite.project) == nil)
  }

  @Test("Only this user can read the token, which programs of this user find by the hub's port")
  func token() async throws {
    let folder = try TemporaryFolder()
    var suite = description()
    // A port that no running suite's hub can have, because it requires privileges.
    suite.services["hub"]?.port = 7
    _ = try await ServerFile.write(suite, token: "secret", folder: folder.path, version: "1")
    let attributes = try FileManager.default.attributesOfItem(atPath: folder.path("server.json"))
    #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)

    for hub in ["127.0.0.1:7", "localhost:7", "[::1]:7"] {
      #expect(HubToken.find(hub: hub, environment: [:]) == "secret")
    }
    #expect(HubToken.find(hub: "elsewhere.example:7", environment: [:]) == nil)
    // A pointer planted by another user must not cause the token to be sent to a foreign hub.
    let planted = HubToken.pointerPath(host: "127.0.0.1", port: 9)
    try HubToken.pointer(serverFile: folder.path("server.json")).write(to: URL(filePath: planted))
    defer { try? FileManager.default.removeItem(atPath: planted) }
    #expect(HubToken.find(hub: "127.0.0.1:9", environment: [:]) == nil)
    #expect(HubToken.find(hub: "elsewhere.example:7", environment: ["HEARTH_TOKEN": "x"]) == "x")
    ServerFile.remove(suite, folder: folder.path)
    #expect(HubToken.find(hub: "127.0.0.1:7", environment: [:]) == nil)
  }
}

extension SuiteDescription {
  fileprivate func with(token: String) -> SuiteDescription {
    var description = self
    description.token = token
    return description
  }
}
