import Foundation
import Identifiers
import StatusCodes
import LibC
import TestSupport
import Testing
import TestSupport

@testable import EmulatorSuite

@Suite("Data folder")
struct DataFolderTests {
  private func configuration(_ path: String, isEphemeral: Bool = false) -> SuiteConfiguration {
    SuiteConfiguration(dataFolder: path, isEphemeral: isEphemeral, version: "test")
  }

  @Test("A missing folder is made, for its user alone, and stays")
  func made() throws {
    let parent = try TemporaryFolder()
    let folder = try DataFolder(configuration: configuration(parent.path("a/b")))
    try folder.removeIfEphemeral()

    #expect(folder.path == parent.path("a/b"))
    let attributes = try FileManager.default.attributesOfItem(atPath: folder.path)
    #expect(attributes[.posixPermissions] as? Int == 0o700)
  }

  @Test("A folder that is there is used with what is in it")
  func existing() throws {
    let parent = try TemporaryFolder()
    try "kept".write(toFile: parent.path("file"), atomically: true, encoding: .utf8)
    _ = try DataFolder(configuration: configuration(parent.path))

    #expect(try String(contentsOfFile: parent.path("file"), encoding: .utf8) == "kept")
  }

  @Test("A folder that cannot be made is refused, and the message names --data")
  func impossible() throws {
    let parent = try TemporaryFolder()
    try "a file".write(toFile: parent.path("file"), atomically: true, encoding: .utf8)
    for path in [parent.path("file/data"), parent.path("file"), "/proc/no/such/folder"] {
      let error = #expect(throws: StatusError.self) {
        try DataFolder(configuration: configuration(path))
      }
      #expect(error?.statusCode == .failedPrecondition)
      #expect(error?.statusMessage.contains(path) == true, "\(error?.statusMessage ?? "")")
      #expect(error?.statusMessage.contains("--data") == true, "\(error?.statusMessage ?? "")")
    }
  }

  @Test(
    "A folder without permission to write is refused, and the message names --data",
    .enabled(if: geteuid() != 0, "root may write everywhere")
  )
  func unwritable() throws {
    let parent = try TemporaryFolder()
    try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: parent.path)
    defer {
      // Removing the folder requires its owner's permissions.
      try? FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: parent.path)
    }
    let error = #expect(throws: StatusError.self) {
      try DataFolder(configuration: configuration(parent.path))
    }
    #expect(error?.statusMessage.contains("--data") == true, "\(error?.statusMessage ?? "")")
  }

  @Test("An ephemeral folder is of this process, and is removed with what is in it")
  func ephemeral() throws {
    let folder = try DataFolder(configuration: configuration("/unused", isEphemeral: true))
    try "x".write(toFile: folder.path + "/file", atomically: true, encoding: .utf8)
    let other = try DataFolder(configuration: configuration("/unused", isEphemeral: true))
    #expect(FileManager.default.fileExists(atPath: folder.path + "/file"))
    #expect(other.path != folder.path)

    try folder.removeIfEphemeral()
    try other.removeIfEphemeral()
    #expect(!FileManager.default.fileExists(atPath: folder.path))
  }

  @Test("The ephemeral folder of a process that is gone is removed by the next")
  func reaped() throws {
    let gone = FileManager.default.temporaryDirectory
      .appending(path: "hearth-ephemeral-2147483646-\(RandomID.make(length: 6))").path
    try FileManager.default.createDirectory(atPath: gone, withIntermediateDirectories: true)
    let folder = try DataFolder(configuration: configuration("/unused", isEphemeral: true))
    defer {
      // Nothing depends on it anymore.
      try? folder.removeIfEphemeral()
    }

    #expect(!FileManager.default.fileExists(atPath: gone))
  }
}
