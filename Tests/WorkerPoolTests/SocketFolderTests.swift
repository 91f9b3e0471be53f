import Foundation
import StatusCodes
import Testing
import TestSupport

@testable import WorkerPool

@Suite("Socket folder")
struct SocketFolderTests {
  @Test("Only this user can enter it, and it goes with its server")
  func lives() throws {
    let parent = try TemporaryFolder()
    let folder = try SocketFolder(in: parent.path)

    let attributes = try FileManager.default.attributesOfItem(atPath: folder.path)
    #expect(attributes[.posixPermissions] as? Int == 0o700)
    folder.remove()
    #expect(try FileManager.default.contentsOfDirectory(atPath: parent.path).isEmpty)
  }

  @Test("What a killed server left is removed; what a living one uses is not")
  func stale() throws {
    let parent = try TemporaryFolder()
    let living = try SocketFolder(in: parent.path)
    let stale = parent.path("hearth-workers-gone")
    try FileManager.default.createDirectory(atPath: stale, withIntermediateDirectories: false)
    try Data().write(to: URL(fileURLWithPath: "\(stale)/lock"))
    let next = try SocketFolder(in: parent.path)

    #expect(FileManager.default.fileExists(atPath: living.path))
    #expect(FileManager.default.fileExists(atPath: next.path))
    #expect(!FileManager.default.fileExists(atPath: stale))
    living.remove()
    next.remove()
  }

  @Test("A path too long for a socket is refused before it fails")
  func tooLong() throws {
    let parent = try TemporaryFolder().path + "/" + String(repeating: "x", count: 80)

    #expect(throws: StatusError.self) { try SocketFolder(in: parent) }
  }
}
