import EmulatorSuite
import Foundation
import LibC
import OutboundHTTP
import TestSupport
import Testing

/// The sample functions, started as Xcode or lldb starts an executable.
@Suite("Journeys with a debugger", .serialized, .timeLimit(.minutes(5)))
struct DebuggerJourneyTests {
  private final class Debuggee {
    private let process = Process()

    init(_ suite: SuiteProcess, _ project: JourneyProject, _ environment: [String: String] = [:])
      throws
    {
      process.executableURL = JourneyProject.binary("SampleFunctions")
      // The suite keeps its token in the temporary folder.
      let folder = ProcessInfo.processInfo.environment.filter { $0.key == "TMPDIR" }
      process.environment = folder.merging(environment) { $1 }
        .merging(["HEARTH_HUB": suite.address("hub")]) { own, _ in own }
      process.standardInput = FileHandle.nullDevice
      process.standardOutput = project.log
      process.standardError = project.log
      try process.run()
    }

    var pid: pid_t { process.processIdentifier }

    func end(_ signal: Int32) async -> Int32 {
      kill(pid, signal)
      await blocking { [process] in process.waitUntilExit() }
      return process.terminationStatus
    }
  }

  private struct Reply<Result: Decodable>: Decodable {
    var result: Result
  }

  private func result<Result: Decodable>(
    _ client: JourneyClient,
    _ name: String,
    _ data: String
  ) async throws -> Result {
    let reply = try await client.call(name, data: data)
    return try JSONDecoder().decode(Reply<Result>.self, from: Data(reply.body)).result
  }

  @Test("It runs all functions with the suite's and its own environment until it is stopped")
  func takesOver() async throws {
    let project = try JourneyProject()
    let suite = try await SuiteProcess(project)
    defer { suite.kill() }
    let client = JourneyClient(suite)
    try await client.waitForDeployment()
    let debuggee = try Debuggee(suite, project, ["SAMPLE_VERSION": "debug", "SAMPLE_EXTRA": "1"])
    try await client.waitForLog(
      of: "extra",
      containing: "extra now runs in process \(debuggee.pid)"
    )

    #expect(try await client.version() == "debug")
    #expect(try await result(client, "extra", "null"))
    let seen: [String] = try await result(
      client,
      "plainVariables",
      #"["FIRESTORE_EMULATOR_HOST","GCLOUD_PROJECT","SAMPLE_OUTPUT"]"#
    )
    #expect(seen == [suite.address("firestore"), JourneyProject.id, project.output])
    try await client.write("things/t1", n: 1)
    try await client.settle()
    #expect(try project.records().map { $0.prefix(3) } == [["recordWrite", "created", "t1"]])
    let list = try await HearthCommand.run(
      "functions",
      "list",
      "--json",
      "--hub",
      suite.address("hub"),
      in: project.folder.path
    )
    #expect(list.output.contains(#""debugger":\#(debuggee.pid)"#))

    #expect(await debuggee.end(SIGTERM) == 0)
    #expect(try await client.version() == "1")
    #expect(try await client.call("extra", data: "null").status == 404)
    #expect(await suite.stop() == 0)
  }

  @Test("One that stands still at a breakpoint keeps its call for longer than its function may run")
  func breakpoint() async throws {
    let project = try JourneyProject()
    let suite = try await SuiteProcess(project)
    defer { suite.kill() }
    let client = JourneyClient(suite)
    try await client.waitForDeployment()
    let debuggee = try Debuggee(suite, project, ["FUNCTION_TARGET": "hasty"])
    try await client.waitForLog(of: "hasty", containing: "in process \(debuggee.pid) (debugger)")

    kill(debuggee.pid, SIGSTOP)
    let call = Task { try await client.call("hasty", data: "null") }
    // In the meantime the deployed worker of another function still has to meet its deadline.
    #expect(try await client.call("hang", data: "{}").status == 504)
    kill(debuggee.pid, SIGCONT)
    #expect(try await call.value.status == 200)
    #expect(await debuggee.end(SIGTERM) == 0)
  }

  @Test("What it ran when it died fails as a call, and is run again elsewhere as an event")
  func dies() async throws {
    let project = try JourneyProject()
    let suite = try await SuiteProcess(project)
    defer { suite.kill() }
    let client = JourneyClient(suite)
    try await client.waitForDeployment()
    let debuggee = try Debuggee(suite, project)
    try await client.waitForLog(of: "hasty", containing: "in process \(debuggee.pid) (debugger)")

    kill(debuggee.pid, SIGSTOP)
    try await client.write("things/t1", n: 1)
    let call = Task { try await client.call("hasty", data: "null") }
    try await eventually("the event runs") {
      try await !client.events(state: "running").isEmpty
    }
    _ = await debuggee.end(SIGKILL)
    // The call is not lost, whether it was sent before or after the end of the process.
    #expect([200, 500].contains(try await call.value.status))
    while try project.records().isEmpty { try await client.settle() }
    #expect(try await client.events(state: "succeeded").map(\.document) == ["things/t1"])
    #expect(try await client.events(state: "dead").isEmpty)
    #expect(try await client.version() == "1")
  }

  @Test("It waits for a suite that is away and takes the new one's time; without any it ends")
  func noSuite() async throws {
    let project = try JourneyProject()
    let first = try await SuiteProcess(project)
    let client = JourneyClient(first)
    try await client.waitForDeployment()
    let hubPort = first.description.services["hub"].map { "\($0.port)" } ?? ""
    let debuggee = try Debuggee(first, project, ["SAMPLE_VERSION": "debug"])
    try await client.waitForLog(of: "count", containing: "in process \(debuggee.pid) (debugger)")
    try await client.advanceClock(bySeconds: 7_200)
    #expect(try await client.clockLead() > 7_100)
    #expect(await first.stop() == 0)

    let second = try await SuiteProcess(project, ["--hub-port", hubPort])
    let again = JourneyClient(second)
    try await eventually("the debugged process serves") { try await again.version() == "debug" }
    // A suite begins at the machine's time.
    #expect(try await again.clockLead() < 60)
    #expect(await debuggee.end(SIGINT) == 0)
    await second.killHard()

    let late = try Debuggee(second, project)
    #expect(await late.end(0) == 1)
    #expect(project.logTail().contains("No suite answers at HEARTH_HUB="))
  }
}
