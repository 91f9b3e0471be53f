import Foundation
import TestSupport

/// A completed run of the built `hearth` command.
struct HearthCommand: Sendable {
  var status: Int32
  var output: String
  var errors: String

  /// Runs `hearth` in a folder, without the emulator addresses in this test's own environment.
  static func run(_ arguments: String..., in folder: String) async throws -> HearthCommand {
    try await run(arguments, in: folder)
  }

  /// Runs `hearth`, or another program, with `input` on its standard input.
  static func run(
    _ arguments: [String],
    in folder: String,
    environment added: [String: String] = [:],
    input: String = "",
    program: URL = JourneyProject.binary("hearth")
  ) async throws -> HearthCommand {
    let process = Process()
    process.executableURL = program
    process.arguments = arguments
    process.currentDirectoryURL = URL(filePath: folder)
    var environment = ProcessInfo.processInfo.environment
    environment["FIREBASE_EMULATOR_HUB"] = nil
    process.environment = environment.merging(added) { $1 }
    let given = Pipe()
    let output = Pipe()
    let errors = Pipe()
    if input.isEmpty {
      process.standardInput = FileHandle.nullDevice
    } else {
      process.standardInput = given
    }
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    if !input.isEmpty {
      // The input of a command fits in a pipe buffer.
      try given.fileHandleForWriting.write(contentsOf: Data(input.utf8))
      try given.fileHandleForWriting.close()
    }
    return await blocking {
      // The output of a command fits in a pipe buffer, so the pipes can be read one after another.
      let printed = output.fileHandleForReading.readDataToEndOfFile()
      let complained = errors.fileHandleForReading.readDataToEndOfFile()
      process.waitUntilExit()
      return HearthCommand(
        status: process.terminationStatus,
        output: String(decoding: printed, as: UTF8.self),
        errors: String(decoding: complained, as: UTF8.self)
      )
    }
  }
}
