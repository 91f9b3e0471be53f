import Foundation
import OutboundHTTP
import TestSupport
import Testing

/// Deployments by the command line: rollback, removal, partial deployment, and following sources.
@Suite("Deployment journeys", .serialized, .timeLimit(.minutes(5)))
struct DeploymentJourneyTests {
  /// Writes a script in place of the functions, so that a version is a file and not a setting.
  private func writeFunctions(_ project: JourneyProject, version: Int) throws -> String {
    let path = project.folder.path("functions")
    let binary = JourneyProject.binary("SampleFunctions").path
    let text = "#!/bin/sh\nSAMPLE_VERSION=\(version) exec '\(binary)'\n"
    let next = project.folder.path("functions.tmp")
    try Data(text.utf8).write(to: URL(filePath: next))
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: next)
    guard rename(next, path) == 0 else { throw JourneyError("\(path) cannot be replaced") }
    return path
  }

  @Test(
    "Deployments are listed, rolled back to and made of some functions; a crash changes nothing"
  )
  func deployments() async throws {
    let project = try JourneyProject()
    let functions = try writeFunctions(project, version: 1)
    var suite = try await SuiteProcess(project, ["--executable", functions])
    defer { suite.kill() }
    try await JourneyClient(suite).waitForDeployment()
    func hearth(_ arguments: String...) async throws -> HearthCommand {
      try await HearthCommand.run(
        arguments + ["--hub", suite.address("hub")],
        in: project.folder.path
      )
    }

    _ = try writeFunctions(project, version: 2)
    let some = try await hearth("deploy", "--only", "functions:echo,whoAmI")
    #expect(some.status == 0, "\(some.errors)")
    #expect(some.output.hasSuffix(": echo, whoAmI\n"), "\(some.output)")
    #expect(try await JourneyClient(suite).version() == "1")
    #expect(try await hearth("deploy").status == 0)
    #expect(try await JourneyClient(suite).version() == "2")

    let back = try await hearth("functions", "rollback")
    #expect(back.status == 0 && back.output.hasPrefix("Serving "), "\(back.errors)")
    #expect(try await JourneyClient(suite).version() == "1")
    let deleted = try await hearth("functions", "delete", "echo")
    #expect(deleted.output.hasPrefix("Deleted echo. Served now: "), "\(deleted.errors)")
    let list = try await hearth("functions", "deployments")
    #expect(list.output.contains("(deleted echo)"), "\(list.output)")
    #expect(list.output.contains("(only echo, whoAmI)"), "\(list.output)")
    let unknown = try await hearth("functions", "delete", "echo")
    #expect(unknown.status == 1 && unknown.errors.hasPrefix("No function echo is deployed."))

    await suite.killHard()
    suite = try await SuiteProcess(project, ["--no-functions"])
    let gone = try await JourneyClient(suite).call("echo", data: "1")
    #expect(gone.status == 404)
    #expect(try await JourneyClient(suite).version() == "1")
    #expect(try await hearth("functions", "rollback").status == 0)
    #expect(try await JourneyClient(suite).call("echo", data: "1").status == 200)
  }

  @Test("With --watch a new binary and new settings are served, and a broken binary is not")
  func watches() async throws {
    let project = try JourneyProject()
    let functions = try writeFunctions(project, version: 1)
    let suite = try await SuiteProcess(project, ["--executable", functions, "--watch"])
    defer { suite.kill() }
    let client = JourneyClient(suite)
    try await client.waitForDeployment()
    #expect(try await client.version() == "1")

    _ = try writeFunctions(project, version: 2)
    try await waitFor("2", client)
    try project.setEnvironment(["MINE": "new"])
    try await waitForLog(project, "the functions were restarted")

    try Data("#!/bin/sh\nexit 3\n".utf8).write(to: URL(filePath: functions))
    try await waitForLog(project, "The last deployment keeps serving.")
    #expect(try await client.version() == "2")
    _ = try writeFunctions(project, version: 3)
    try await waitFor("3", client)
  }

  private func waitFor(_ version: String, _ client: JourneyClient) async throws {
    try await eventually("version \(version) is served") { try await client.version() == version }
  }

  private func waitForLog(_ project: JourneyProject, _ words: String) async throws {
    try await eventually("the suite says \"\(words)\"") {
      try String(contentsOfFile: project.folder.path("log"), encoding: .utf8).contains(words)
    }
  }
}
