import EmulatorSuite
import Foundation
import Identity
import LibC
import OutboundHTTP
import TestSupport
import Testing

/// A real `hearth start` with the sample functions, in its own folder.
///
/// Only `kill` and `address` may be used by several tasks at once.
final class SuiteProcess {
  private let process = Process()
  /// The description that the suite printed when it was ready.
  let description: SuiteDescription

  /// Starts the suite on `project` and waits for its addresses; throws if it ends before.
  init(
    _ project: JourneyProject,
    _ arguments: [String] = [],
    environment: [String: String] = [:]
  ) async throws {
    let output = Pipe()
    process.executableURL = JourneyProject.binary("hearth")
    process.arguments =
      [
        "start", "--json", "--data", project.data, "--project", JourneyProject.id,
        "--executable", JourneyProject.binary("SampleFunctions").path,
      ]
      + ["hub", "functions", "firestore", "database", "auth", "tasks", "vectors", "ui"].flatMap {
        ["--\($0)-port", "0"]
      }
      + arguments
    process.currentDirectoryURL = URL(filePath: project.folder.path)
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardOutput = output
    process.standardError = project.log
    process.standardInput = FileHandle.nullDevice
    try process.run()
    guard let line = await blocking({ Self.readLine(output.fileHandleForReading) }) else {
      await blocking { [process] in process.waitUntilExit() }
      throw JourneyError("the suite ended with \(process.terminationStatus) before it was ready")
    }
    description = try JSONDecoder().decode(SuiteDescription.self, from: Data(line.utf8))
  }

  var pid: pid_t { process.processIdentifier }

  /// Returns the `host:port` of a service.
  func address(_ service: String) -> String {
    description.services[service].map { "\($0.host):\($0.port)" } ?? ""
  }

  /// The token that the control API requires.
  var token: String { HubToken.find(hub: address("hub"), environment: [:]) ?? "" }

  /// Kills the suite at a test's end, and does not wait for its end.
  func kill() { LibC.kill(pid, SIGKILL) }

  /// Kills the suite, as a power cut would, and waits for its end.
  func killHard() async {
    kill()
    await waitForEnd()
  }

  private func waitForEnd() async {
    await blocking { [process] in process.waitUntilExit() }
  }

  /// Stops the suite, as Ctrl-C does, and returns its exit status.
  func stop() async -> Int32 {
    LibC.kill(pid, SIGINT)
    await waitForEnd()
    return process.terminationStatus
  }

  /// Waits for the suite's end and returns the signal that ended it; 0 if it exited by itself.
  func waitForSignal() async -> Int32 {
    await waitForEnd()
    return process.terminationReason == .uncaughtSignal ? process.terminationStatus : 0
  }

  /// Returns the processes started by any thread of a process; none if the process is gone.
  static func children(of pid: pid_t) -> [pid_t] {
    let threads = "/proc/\(pid)/task"
    // Threads and processes come and go in the meantime. Entries that cannot be read have ended.
    return ((try? FileManager.default.contentsOfDirectory(atPath: threads)) ?? []).flatMap {
      let text = try? String(contentsOfFile: "\(threads)/\($0)/children", encoding: .utf8)
      return (text ?? "").split(separator: " ").compactMap { pid_t($0) }
    }
  }

  private static func readLine(_ handle: FileHandle) -> String? {
    var line = Data()
    while let byte = try? handle.read(upToCount: 1), !byte.isEmpty {
      if byte[byte.startIndex] == 0x0A { return String(decoding: line, as: UTF8.self) }
      line.append(byte)
    }
    return nil
  }
}

/// The files that survive a crash of the suite: its data, the functions' output, its log.
final class JourneyProject {
  static let id = "demo-journey"
  let folder: TemporaryFolder
  let data: String
  let output: String
  let log: FileHandle

  /// Creates a project without data whose functions write to `output`.
  init() throws {
    folder = try TemporaryFolder()
    data = folder.path("data")
    output = folder.path("output")
    let logPath = folder.path("log")
    _ = FileManager.default.createFile(atPath: logPath, contents: nil)
    _ = FileManager.default.createFile(atPath: output, contents: nil)
    log = try FileHandle(forWritingTo: URL(filePath: logPath))
    try #"{"functions": {"source": "."}}"#.write(
      toFile: folder.path("firebase.json"),
      atomically: true,
      encoding: .utf8
    )
    try setEnvironment([:])
  }

  /// Writes the functions' `.env`, which a deployment reads.
  func setEnvironment(_ variables: [String: String]) throws {
    let lines = variables.merging(["SAMPLE_OUTPUT": output]) { $1 }.map {
      "\($0.key)=\($0.value)\n"
    }
    try lines.joined().write(toFile: folder.path(".env"), atomically: true, encoding: .utf8)
  }

  /// The lines that functions recorded, each of the form `function step id event`.
  func records() throws -> [[Substring]] {
    try String(contentsOfFile: output, encoding: .utf8)
      .split(separator: "\n").map { $0.split(separator: " ") }
  }

  /// The last lines of the suite's log, for failure messages.
  func logTail() -> String {
    let text = (try? String(contentsOfFile: folder.path("log"), encoding: .utf8)) ?? ""
    return text.split(separator: "\n").suffix(30).joined(separator: "\n")
  }

  /// Returns the path of a built executable beside the test bundle.
  static func binary(_ name: String) -> URL {
    let bundle = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    return bundle.deletingLastPathComponent().appending(path: name)
  }
}

/// An error that ends a journey.
struct JourneyError: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) {
    self.description = description
  }
}

/// A client of Firestore and the control API over plain HTTP.
struct JourneyClient: Sendable {
  private let http = OutboundClient()
  private let documents: String
  private let hub: String
  private let token: String
  private let functions: String

  init(_ suite: SuiteProcess) {
    documents =
      "http://\(suite.address("firestore"))/v1/projects/\(JourneyProject.id)"
      + "/databases/(default)/documents"
    hub = "http://\(suite.address("hub"))"
    token = suite.token
    functions = "http://\(suite.address("functions"))/\(JourneyProject.id)/us-central1"
  }

  /// Writes a document and returns when the suite has acknowledged it.
  func write(_ path: String, n: Int) async throws {
    let body = #"{"fields":{"n":{"integerValue":"\#(n)"}}}"#
    _ = try await send("PATCH", "\(documents)/\(path)", body)
  }

  /// Writes `count` documents to a collection in one commit, numbered from `first`.
  func writeMany(_ collection: String, from first: Int = 0, count: Int) async throws {
    let root = "projects/\(JourneyProject.id)/databases/(default)/documents"
    let writes = (first..<first + count).map { number in
      #"{"update":{"name":"\#(root)/\#(collection)/\#(1_000_000 + number)","#
        + #""fields":{"n":{"integerValue":"\#(number)"}}}}"#
    }
    _ = try await send(
      "POST",
      "\(documents):commit",
      #"{"writes":[\#(writes.joined(separator: ","))]}"#
    )
  }

  /// Reads the `n` of a document; nil if the document does not exist.
  func read(_ path: String) async throws -> Int? {
    struct Document: Decodable {
      struct Value: Decodable { var integerValue: String }
      var fields: [String: Value]
    }
    var request = OutboundRequest(method: "GET", url: "\(documents)/\(path)")
    request.headers["authorization"] = "Bearer owner"
    let response = try await http.send(request)
    if response.status == 404 { return nil }
    let document = try JSONDecoder().decode(Document.self, from: Data(response.body))
    return document.fields["n"].flatMap { Int($0.integerValue) }
  }

  /// Deploys the already built functions and returns the suite's response.
  func deploy() async throws -> String {
    let lines = try await send("POST", "\(hub)/hearth/v1/deployments?build=false", "")
    return String(decoding: lines, as: UTF8.self)
  }

  /// Returns when every event is delivered.
  func settle() async throws {
    _ = try await send("POST", "\(hub)/hearth/v1/settle?timeoutSeconds=60", "")
  }

  func events(state: String) async throws -> [EventDescription] {
    let body = try await send("GET", "\(hub)/hearth/v1/events?state=\(state)&limit=1000", "")
    return try JSONDecoder().decode([EventDescription].self, from: Data(body))
  }

  /// Makes a failed or dead event pending again.
  func retry(_ id: String) async throws {
    _ = try await send("POST", "\(hub)/hearth/v1/events/\(id)/retry", "")
  }

  /// Makes all failed events pending again and returns their number.
  func retryAllFailed() async throws -> Int {
    struct Count: Decodable { var count: Int }
    let body = try await send("POST", "\(hub)/hearth/v1/events/retry?state=failed", "")
    return try JSONDecoder().decode(Count.self, from: Data(body)).count
  }

  /// Calls a callable with JSON and returns the raw response.
  func call(_ name: String, data: String) async throws -> OutboundResponse {
    var request = OutboundRequest(
      method: "POST",
      url: "\(functions)/\(name)",
      headers: ["content-type": "application/json"]
    )
    request.body = Array(#"{"data":\#(data)}"#.utf8)
    request.timeout = .seconds(60)
    return try await http.send(request)
  }

  /// Returns the version of the sample functions that respond.
  func version() async throws -> String {
    struct Reply: Decodable {
      struct Count: Decodable { var version: String }
      var result: Count
    }
    let reply = try await call("count", data: "null")
    return try JSONDecoder().decode(Reply.self, from: Data(reply.body)).result.version
  }

  func advanceClock(bySeconds seconds: Int) async throws {
    _ = try await send("POST", "\(hub)/hearth/v1/clock", #"{"advanceSeconds":\#(seconds)}"#)
  }

  /// Returns the seconds by which the functions' clock is ahead of this process's.
  func clockLead() async throws -> TimeInterval {
    struct Reply: Decodable { var result: String }
    let reply = try await call("currentTime", data: "null")
    let time = try JSONDecoder().decode(Reply.self, from: Data(reply.body)).result
    // With or without a fraction, which the strategy of a date does not leave open.
    let seconds = "\(time.prefix { $0 != "." && $0 != "Z" })Z"
    return try Date(seconds, strategy: .iso8601).timeIntervalSinceNow
  }

  /// Returns once functions are deployed, because the suite listens before that.
  func waitForDeployment() async throws {
    try await eventually("functions are deployed") { try await !deployedFunctions().isEmpty }
  }

  /// Returns once a function's log contains a line with these words.
  func waitForLog(of function: String, containing words: String) async throws {
    try await eventually("\(function) logs \"\(words)\"") {
      let body = try await send("GET", "\(hub)/hearth/v1/logs?function=\(function)", "")
      return String(decoding: body, as: UTF8.self).contains(words)
    }
  }

  func deployedFunctions() async throws -> [FunctionDescription] {
    let body = try await send("GET", "\(hub)/hearth/v1/functions", "")
    return try JSONDecoder().decode([FunctionDescription].self, from: Data(body))
  }

  func clock() async throws -> ClockDescription {
    let body = try await send("GET", "\(hub)/hearth/v1/clock", "")
    return try JSONDecoder().decode(ClockDescription.self, from: Data(body))
  }

  private func send(_ method: String, _ url: String, _ body: String) async throws -> [UInt8] {
    var request = OutboundRequest(
      method: method,
      url: url,
      headers: ["authorization": "Bearer \(url.hasPrefix(hub) ? token : "owner")"]
    )
    request.body = Array(body.utf8)
    request.timeout = .seconds(70)
    let response = try await http.send(request)
    guard response.isSuccess else {
      throw JourneyError("\(method) \(url): HTTP \(response.status) \(response.text)")
    }
    return response.body
  }
}
