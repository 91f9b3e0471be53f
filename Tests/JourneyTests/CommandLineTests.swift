import Foundation
import LibC
import OutboundHTTP
import Synchronization
import TestSupport
import Testing

/// The command line as a script sees it: exit status, stdout and stderr.
@Suite("Command line", .serialized, .timeLimit(.minutes(5)))
struct CommandLineTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private func hearth(_ arguments: String...) async throws -> HearthCommand {
    try await HearthCommand.run(arguments, in: folder.path)
  }

  // MARK: Without a suite

  @Test(
    "Without a suite every command that needs one says so and exits with 3",
    arguments: [
      ["call", "echo"], ["deploy"], ["functions", "list"], ["functions", "logs"],
      ["events", "list"], ["events", "show", "1.0.f"], ["events", "retry", "1.0.f"],
      ["events", "discard", "--all", "--state", "dead"], ["logs"], ["functions", "deployments"],
      ["functions", "rollback"], ["functions", "delete", "f"],
      ["fire", "f", "--document", "a/b", "--data", "{}"], ["call", "echo", "--hub", "127.0.0.1:9"],
      ["clock", "--data-folder", "nowhere"],
    ]
  )
  func noSuite(arguments: [String]) async throws {
    // Suites leave the files by which commands find them in the temporary folder.
    let command = try await HearthCommand.run(
      arguments,
      in: folder.path,
      environment: ["TMPDIR": folder.path]
    )

    #expect(command.status == 3)
    #expect(command.output.isEmpty)
    #expect(command.errors.hasPrefix("No running suite found."))
    #expect(command.errors.contains("hearth start"))
  }

  @Test("A command in another folder finds the suite of the project that nothing there names")
  func standardProject() async throws {
    let temporary = ["TMPDIR": folder.path]
    let project = try JourneyProject()
    let suite = try await SuiteProcess(
      project,
      ["--project", "demo-no-project"],
      environment: temporary
    )
    defer { suite.kill() }
    let command = try await HearthCommand.run(
      ["functions", "list"],
      in: folder.path,
      environment: temporary
    )

    #expect(command.status == 0, "\(command.errors)")
  }

  @Test(
    "A wrong command line exits with 2 and prints nothing on stdout",
    arguments: [
      ["--nonsense"], ["call"], ["call", "f", "--nonsense"], ["call", "f", "--admin", "--as", "a"],
      ["fire", "f", "--document", "a/b"], ["start", "--hub-port", "65536"], ["nonsense"],
      ["start", "--hub-port", "x"], ["start", "--configuration", "fast"], ["exec"], ["exec", "ls"],
      ["events", "retry"], ["events", "discard", "--all"], ["events", "retry", "1.0.f", "--all"],
      ["deploy", "--only", "echo"], ["logs", "--since", "soon"], ["logs", "--level", "loud"],
      ["init"], ["functions", "delete"], ["start", "--project", "bad id!"],
      ["start", "--executable", "/nowhere/functions"], ["exec", "--project", "a/b", "--", "ls"],
      ["start", "--ephemeral", "--data", "mine"],
    ]
  )
  func usage(arguments: [String]) async throws {
    let command = try await HearthCommand.run(arguments, in: folder.path)

    #expect(command.status == 2)
    #expect(command.output.isEmpty)
    #expect(!command.errors.isEmpty)
  }

  @Test(
    "Each command's help exits with 0 and shows an example",
    arguments: [
      [], ["start"], ["deploy"], ["call"], ["fire"], ["functions"], ["functions", "list"],
      ["events"], ["events", "list"], ["events", "show"],
      ["events", "retry"], ["events", "discard"], ["doctor"], ["exec"], ["init"], ["logs"],
      ["functions", "deployments"], ["functions", "rollback"], ["functions", "delete"],
    ]
  )
  func help(command: [String]) async throws {
    let help = try await HearthCommand.run(command + ["--help"], in: folder.path)

    #expect(help.status == 0)
    #expect(help.errors.isEmpty)
    let example = (["  hearth"] + command).joined(separator: " ")
    #expect(
      help.output.split(separator: "\n").contains { $0.hasPrefix(example) },
      "\(help.output)"
    )
  }

  @Test("A build configuration that is none is named with its file")
  func wrongConfiguration() async throws {
    let firebase = #"{"functions": {"source": ".", "configuration": "fast"}}"#
    try firebase.write(toFile: folder.path("firebase.json"), atomically: true, encoding: .utf8)
    let command = try await hearth("start", "--ephemeral")

    #expect(command.status == 1)
    #expect(command.errors.contains("firebase.json: functions.configuration is \"fast\""))
  }

  @Test("The version is printed on stdout")
  func version() async throws {
    let command = try await hearth("--version")

    #expect(command.status == 0 && command.errors.isEmpty)
    #expect(command.output.split(separator: ".").count == 3)
  }

  // MARK: Failed starts

  @Test("A port in use is one clear line on stderr and exit status 1")
  func portInUse() async throws {
    let project = try JourneyProject()
    let suite = try await SuiteProcess(project)
    defer { suite.kill() }
    let taken = suite.address("firestore")
    let port = try #require(taken.split(separator: ":").last)
    let command = try await hearth(
      "start",
      "--no-functions",
      "--project",
      "demo-\(folder.path.suffix(6))",
      "--firestore-port",
      String(port),
      "--hub-port",
      "0",
      "--functions-port",
      "0",
      "--auth-port",
      "0",
      "--tasks-port",
      "0",
      "--vectors-port",
      "0",
      "--ui-port",
      "0"
    )

    #expect(command.status == 1)
    #expect(command.output.isEmpty)
    #expect(command.errors.split(separator: "\n").count == 1, "\(command.errors)")
    #expect(command.errors.contains(String(port)), "\(command.errors)")
    #expect(command.errors.contains("in use"), "\(command.errors)")
  }

  @Test("A data file that is none is named, left as it is, and the exit status is 1")
  func corruptData() async throws {
    let data = folder.path("data")
    try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
    let garbage = Data((0..<8192).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    let file = URL(filePath: data).appending(path: "store.sqlite")
    try garbage.write(to: file)
    let command = try await hearth("start", "--no-functions", "--data", data)

    #expect(command.status == 1)
    #expect(command.output.isEmpty)
    #expect(command.errors.contains("store.sqlite"), "\(command.errors)")
    #expect(command.errors.contains("is not a database"), "\(command.errors)")
    #expect(try Data(contentsOf: file) == garbage)
  }

  @Test("A data folder that cannot be is refused in words that name --data")
  func dataFolder() async throws {
    try "a file".write(toFile: folder.path("file"), atomically: true, encoding: .utf8)
    let command = try await hearth("start", "--no-functions", "--data", folder.path("file/data"))

    #expect(command.status == 1)
    #expect(command.errors.contains("--data"), "\(command.errors)")
  }

  @Test("A second suite on the same data folder is refused with the first one's process")
  func sharedDataFolder() async throws {
    let project = try JourneyProject()
    let suite = try await SuiteProcess(project)
    defer { suite.kill() }
    let command = try await hearth("start", "--no-functions", "--data", project.data)

    #expect(command.status == 1)
    #expect(command.output.isEmpty)
    #expect(command.errors.contains("in use by process \(suite.pid)"), "\(command.errors)")
    try await JourneyClient(suite).waitForDeployment()
  }

  // MARK: With a suite

  @Test("Results go to stdout with exit status 0, a function's error to stderr with 1")
  func call() async throws {
    let project = try JourneyProject()
    let suite = try await SuiteProcess(project)
    defer { suite.kill() }
    let hub = suite.address("hub")
    try await JourneyClient(suite).waitForDeployment()
    func call(_ arguments: String...) async throws -> HearthCommand {
      try await HearthCommand.run(["call", "--hub", hub] + arguments, in: folder.path)
    }

    let echo = try await call("echo", "--data", #"{"a":[1,"x"]}"#)
    #expect(echo.status == 0 && echo.errors.isEmpty)
    let printed = try JSONSerialization.jsonObject(with: Data(echo.output.utf8)) as? NSDictionary
    #expect(printed == ["a": [1, "x"]])

    let user = try await call("whoAmI", "--as", "alice")
    #expect(user.status == 0 && user.output == "\"alice\"\n")
    let stranger = try await call("whoAmI")
    #expect(stranger.status == 1 && stranger.output.isEmpty)
    #expect(stranger.errors.hasPrefix("UNAUTHENTICATED"), "\(stranger.errors)")

    let failing = try await call(
      "failing",
      "--data",
      #"{"code":"NOT_FOUND","message":"no such thing"}"#
    )
    #expect(failing.status == 1 && failing.output.isEmpty)
    #expect(failing.errors == "NOT_FOUND: no such thing\n")

    let unknown = try await call("nonsense")
    #expect(unknown.status == 1 && unknown.output.isEmpty)
    #expect(unknown.errors.contains("No function nonsense is deployed"))
    let trigger = try await call("recordWrite")
    #expect(trigger.status == 1 && trigger.errors.contains("hearth fire recordWrite"))
    let malformed = try await call("echo", "--data", "{")
    #expect(malformed.status == 2 && malformed.output.isEmpty)
  }

  @Test("A worker that crashes is INTERNAL to its caller, who learns the invocation's id alone")
  func workerCrash() async throws {
    let project = try JourneyProject()
    let suite = try await SuiteProcess(project)
    defer { suite.kill() }
    let client = JourneyClient(suite)
    try await client.waitForDeployment()
    let reply = try await client.call("crash", data: "null")

    #expect(reply.status == 500)
    let body = try #require(
      try JSONSerialization.jsonObject(with: Data(reply.body)) as? [String: [String: String]]
    )
    #expect(body.keys.sorted() == ["error"])
    let error = body["error"] ?? [:]
    #expect(error.keys.sorted() == ["message", "status"])
    #expect(error["status"] == "INTERNAL")
    let message = error["message"] ?? ""
    #expect(
      message.wholeMatch(of: /The function crash crashed \([A-Za-z0-9]{20}\)\./) != nil,
      "\(message)"
    )

    let echo = try await client.call("echo", data: "1")
    #expect(echo.status == 200)
  }

  @Test("No call fails while a new version takes over; one that is refused leaves it, and says so")
  func deployUnderLoad() async throws {
    let project = try JourneyProject()
    let suite = try await SuiteProcess(project)
    defer { suite.kill() }
    let client = JourneyClient(suite)
    try await client.waitForDeployment()
    #expect(try await client.version() == "1")
    try project.setEnvironment(["SAMPLE_VERSION": "2"])
    let hub = suite.address("hub")
    let path = folder.path

    let isDeployed = Flag()
    try await withThrowingTaskGroup(of: Int.self) { group in
      for caller in 0..<4 {
        group.addTask {
          var calls = 0
          repeat {
            let reply =
              caller.isMultiple(of: 2)
              ? try await client.call("count", data: "null")
              : try await client.call("slowEcho", data: #"{"milliseconds":50,"text":"x"}"#)
            #expect(reply.status == 200, "\(reply.text)")
            calls += 1
          } while !isDeployed.isSet
          return calls
        }
      }
      group.addTask {
        defer { isDeployed.set() }
        let command = try await HearthCommand.run("deploy", "--hub", hub, in: path)
        #expect(command.status == 0, "\(command.errors)")
        #expect(command.output.hasPrefix("Deployed "), "\(command.output)")
        return 0
      }
      var calls = 0
      for try await count in group { calls += count }
      #expect(calls >= 4)
    }
    #expect(try await client.version() == "2")

    try project.setEnvironment(["SAMPLE_VERSION": "3", "SAMPLE_INVALID": "1"])
    let refused = try await HearthCommand.run("deploy", "--hub", hub, in: path)
    #expect(refused.status == 1 && refused.output.isEmpty)
    #expect(refused.errors.contains("echo"), "\(refused.errors)")
    #expect(refused.errors.hasSuffix("\nThe last deployment keeps serving.\n"))
    #expect(try await client.version() == "2")
  }

  @Test("Ctrl-C leaves no process behind, even with a function that ignores being cancelled")
  func interrupt() async throws {
    let project = try JourneyProject()
    let suite = try await SuiteProcess(project)
    let client = JourneyClient(suite)
    try await client.waitForDeployment()
    _ = try await client.call("echo", data: "1")
    async let hanging = client.call("hang", data: #"{"isStubborn":true}"#)
    try await client.waitForLog(of: "hang", containing: "Begun")
    let workers = SuiteProcess.children(of: suite.pid)
    #expect(!workers.isEmpty)

    #expect(await suite.stop() == 0, "\(project.logTail())")
    _ = try? await hanging  // It has no answer: its server is gone.
    for worker in workers { #expect(kill(worker, 0) != 0, "worker \(worker) is left") }
  }
}

/// A flag that any task may set once.
private final class Flag: Sendable {
  private let value = Atomic(false)

  var isSet: Bool { value.load(ordering: .acquiring) }

  func set() { value.store(true, ordering: .releasing) }
}
