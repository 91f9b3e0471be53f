import Foundation
import FunctionLogs
import FunctionsRuntime
import HTTPSupport
import Manifests
import Testing
import TestSupport

/// The sample functions in their own process, as a worker pool runs them.
private final class SampleWorker: Sendable {
  let socket: String
  private let folder: TemporaryFolder
  private let process: Process
  private let input = Pipe()
  private let lines: AsyncStream<WorkerLogLine>

  init(_ environment: [String: String] = [:], arguments: [String] = []) throws {
    folder = try TemporaryFolder()
    socket = folder.path("w.sock")
    process = Process()
    process.executableURL = Self.executable
    process.arguments = arguments
    process.environment = [
      "HEARTH_SOCKET": socket, "FUNCTIONS_EMULATOR": "true", "LOG_LEVEL": "debug",
      "PATH": "/usr/bin:/bin",
    ].merging(environment) { $1 }
    process.standardInput = input
    let output = Pipe()
    process.standardOutput = output
    let (lines, continuation) = AsyncStream<WorkerLogLine>.makeStream()
    self.lines = lines
    let reader = output.fileHandleForReading
    // A separate thread, which ends with the process: the loop ends at the end of the output.
    Thread.detachNewThread {
      var rest = Data()
      while case let data = reader.availableData, !data.isEmpty {
        rest.append(data)
        while let end = rest.firstIndex(of: 10) {
          let line = Data(rest[rest.startIndex..<end])
          rest = Data(rest[(end + 1)...])
          // Other lines are the function's own output.
          if let parsed = try? JSONDecoder().decode(WorkerLogLine.self, from: line) {
            continuation.yield(parsed)
          }
        }
      }
      continuation.finish()
    }
    try process.run()
  }

  static var executable: URL {
    URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
      .appending(path: "SampleFunctions")
  }

  var address: ServerAddress { .unixSocket(path: socket) }

  /// Waits for a line with this message; nil if the process ends without it.
  @discardableResult
  func line(_ message: String) async -> WorkerLogLine? {
    await lines.first { $0.message == message }
  }

  func terminate() { process.terminate() }

  func signal(_ number: CInt) { kill(process.processIdentifier, number) }

  func closeInput() throws { try input.fileHandleForWriting.close() }

  /// Waits for the end of the output and returns the exit status.
  func exitStatus() async -> Int32 {
    for await _ in lines {}
    return await blocking { [process] in
      process.waitUntilExit()
      return process.terminationStatus
    }
  }
}

@Suite("Worker process", .timeLimit(.minutes(5)))
struct WorkerProcessTests {
  @Test(
    "Help ends the process with 0 and an unknown argument with 2, whatever it would serve",
    arguments: [("--help", 0), ("-h", 0), ("--prot", 2), ("x", 2)] as [(String, Int32)]
  )
  func arguments(argument: String, status: Int32) async throws {
    // No suite runs there, and help needs none.
    let hub = status == 0 ? ["HEARTH_HUB": "127.0.0.1:1"] : [:]
    let worker = try SampleWorker(hub, arguments: [argument])

    #expect(await worker.exitStatus() == status)
  }

  @Test("SIGTERM lets a running invocation finish and ends with 0; its log line carries its id")
  func drain() async throws {
    let worker = try SampleWorker(["FUNCTION_TARGET": "slowEcho"])
    await worker.line("The worker listens")
    let reply = try await RawClient.with(worker.address) { client in
      let json = #"{"data":{"milliseconds":200,"text":"done"}}"#
      try await client.send(
        raw: "POST / HTTP/1.1\r\nhost: x\r\nfunction-execution-id: i-77\r\n"
          + "content-type: application/json\r\ncontent-length: \(json.utf8.count)\r\n\r\n\(json)"
      )
      #expect(await worker.line("Begun")?.executionID == "i-77")
      worker.terminate()
      return try await client.receive(until: "}")
    }

    #expect(reply.hasSuffix(#"{"result":"done"}"#))
    #expect(await worker.exitStatus() == 0)
  }

  @Test(
    "A service beside the functions starts with them and stops after the last call",
    arguments: ["beside", "own group"]
  )
  func neighbour(kind: String) async throws {
    let worker = try SampleWorker(["FUNCTION_TARGET": "slowEcho", "SAMPLE_NEIGHBOUR": kind])
    await worker.line("The worker listens")
    _ = try await RawClient.with(worker.address) { client in
      let json = #"{"data":{"milliseconds":200,"text":"done"}}"#
      try await client.send(
        raw: "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
          + "content-length: \(json.utf8.count)\r\n\r\n\(json)"
      )
      await worker.line("Begun")
      worker.terminate()
      return try await client.receive(until: #"{"result":"done"}"#)
    }

    #expect(await worker.line("Neighbour stopped") != nil)
    #expect(await worker.exitStatus() == 0)
  }

  @Test("A service beside the functions that fails ends the process once running calls are done")
  func failingNeighbour() async throws {
    let worker = try SampleWorker(["FUNCTION_TARGET": "slowEcho", "SAMPLE_NEIGHBOUR": "fails"])
    await worker.line("The worker listens")
    let reply = try await RawClient.with(worker.address) { client in
      let json = #"{"data":{"milliseconds":200,"text":"done"}}"#
      try await client.send(
        raw: "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
          + "content-length: \(json.utf8.count)\r\n\r\n\(json)"
      )
      await worker.line("Begun")
      worker.signal(SIGUSR1)
      return try await client.receive(until: "}")
    }

    #expect(reply.hasSuffix(#"{"result":"done"}"#))
    #expect(await worker.exitStatus() == 1)
  }

  @Test("A process whose function cannot be prepared ends with status 1, and no other does")
  func unprepared() async throws {
    let environment = ["SAMPLE_UNPREPARED": "fails"]
    let echo = try SampleWorker(environment.merging(["FUNCTION_TARGET": "echo"]) { $1 })
    #expect(await echo.exitStatus() == 1)
    let other = try SampleWorker(environment.merging(["FUNCTION_TARGET": "whoAmI"]) { $1 })
    #expect(await other.line("The worker listens") != nil)
    other.terminate()
    #expect(await other.exitStatus() == 0)
  }

  @Test("SIGTERM ends a process whose preparation hangs")
  func hangingPreparation() async throws {
    let worker = try SampleWorker(["FUNCTION_TARGET": "echo", "SAMPLE_UNPREPARED": "hangs"])
    await worker.line("Preparing")
    worker.terminate()
    #expect(await worker.exitStatus() == 0)
  }

  @Test("A worker whose server is gone ends at once, in the middle of a call")
  func orphan() async throws {
    let worker = try SampleWorker(["FUNCTION_TARGET": "hang"])
    await worker.line("The worker listens")
    try await RawClient.with(worker.address) { client in
      try await client.send("", #"{"data":{"isStubborn":true}}"#)
      await worker.line("Begun")
      try worker.closeInput()
      _ = try? await client.receive(until: "}")
    }

    #expect(await worker.exitStatus() == 0)
  }

  private func run(
    _ environment: [String: String]
  ) async throws -> (status: Int32, errors: String) {
    let process = Process()
    process.executableURL = SampleWorker.executable
    process.environment = environment
    let errors = Pipe()
    process.standardError = errors
    let input = Pipe()
    process.standardInput = input
    // Kept open until the process has ended; an error of closing does not matter.
    defer { try? input.fileHandleForWriting.close() }
    try process.run()
    return await blocking { [process] in
      let bytes = errors.fileHandleForReading.readDataToEndOfFile()
      process.waitUntilExit()
      return (process.terminationStatus, String(decoding: bytes, as: UTF8.self))
    }
  }

  @Test("Asked for its manifest, a binary writes it and ends")
  func manifest() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("manifest.json")
    let result = try await run(["FUNCTIONS_MANIFEST_OUTPUT_PATH": path])

    #expect(result.status == 0)
    #expect(result.errors == "")
    let manifest = try JSONDecoder()
      .decode(FunctionManifest.self, from: Data(contentsOf: URL(filePath: path)))
    #expect(manifest.specVersion == "v1alpha1")
    #expect(manifest.endpoints["echo"]?.callableTrigger != nil)
    #expect(manifest.endpoints["failOnce"]?.eventTrigger?.retry == true)
  }

  @Test("What cannot start says why on standard error and ends with 1")
  func refusals() async throws {
    let folder = try TemporaryFolder()
    let cases: [([String: String], String)] = [
      (
        ["SAMPLE_INVALID": "1", "FUNCTIONS_MANIFEST_OUTPUT_PATH": folder.path("m")],
        "Two functions are named \"echo\"; give each a name of its own.\n"
      ),
      (["FUNCTION_TARGET": "none", "PORT": "0"], "FUNCTION_TARGET is \"none\""),
      (["PORT": "x"], "PORT is \"x\""),
      (
        ["FUNCTIONS_MANIFEST_OUTPUT_PATH": folder.path("none/m")],
        "The manifest cannot be written"
      ),
      (
        ["HEARTH_SOCKET": "/" + String(repeating: "a", count: 200)],
        "is too long"
      ),
    ]
    for (environment, message) in cases {
      let result = try await run(environment)

      #expect(result.status == 1)
      #expect(result.errors.contains(message), "\(result.errors)")
    }
  }
}
