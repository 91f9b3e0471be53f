import EmulatorSuite
import Foundation
import OutboundHTTP
import TestSupport
import Testing

/// Deployments that crash the server, and manifests that would crash it.
@Suite("Journeys through crashing starts", .serialized, .timeLimit(.minutes(5)))
struct StartJourneyTests {
  private func current(_ project: JourneyProject) throws -> String {
    try String(contentsOfFile: project.data + "/deployments/current", encoding: .utf8)
  }

  /// The deployment whose current start the server has not survived yet, as recorded on disk.
  private func starting(_ project: JourneyProject) -> String? {
    struct Starts: Decodable { var starting: String? }
    let file = URL(filePath: project.data + "/deployments/starting")
    // The suite may remove the file at any time.
    return (try? Data(contentsOf: file)).flatMap {
      try? JSONDecoder().decode(Starts.self, from: $0).starting
    }
  }

  /// Indicates whether the suite's log contains an error with these words.
  private func hasError(_ words: String, _ project: JourneyProject) throws -> Bool {
    try String(contentsOfFile: project.folder.path("log"), encoding: .utf8).split(separator: "\n")
      .contains { $0.contains(words) && $0.contains(#""level":"error""#) }
  }

  @Test("A deployment that three servers in a row died of waits for a person, and events for it")
  func crashingStart() async throws {
    let project = try JourneyProject()
    let first = try await SuiteProcess(project)
    try await JourneyClient(first).waitForDeployment()
    #expect(await first.stop() == 0)
    let id = try current(project)
    var deaths = 0
    while deaths < 3 {
      try await SuiteProcess(project, ["--no-functions"]).killHard()
      // On a busy machine the server may have run long enough to survive the start before the kill.
      deaths = starting(project) == id ? deaths + 1 : 0
    }

    // A normal start would redeploy the same binary, which would crash again.
    let usual = try await SuiteProcess(project)
    try await JourneyClient(usual).write("things/t1", n: 1)
    #expect(try await JourneyClient(usual).call("count", data: "null").status == 503)
    #expect(try hasError("Deployment \(id) is not started again by itself", project))
    #expect(try hasError("The functions are those of deployment \(id)", project))
    #expect(await usual.stop() == 0)

    let waiting = try await SuiteProcess(project, ["--no-functions"])
    defer { waiting.kill() }
    let client = JourneyClient(waiting)
    try await client.write("things/t2", n: 2)
    #expect(try await client.call("count", data: "null").status == 503)
    #expect(try project.records().isEmpty)
    let back = try await HearthCommand.run(
      ["functions", "rollback", id, "--hub", waiting.address("hub")],
      in: project.folder.path
    )
    #expect(back.status == 0, "\(back.errors)")
    try await client.settle()
    #expect(Set(try project.records().map { $0[2] }) == ["t1", "t2"])
    #expect(await waiting.stop() == 0)

    let last = try await SuiteProcess(project, ["--no-functions"])
    defer { last.kill() }
    #expect(try await JourneyClient(last).version() == "1")
    // Once the server has survived the start, it no longer counts, however the server ends.
    await eventually("the start is over") { starting(project) == nil }
  }

  @Test("A server that dies while it deploys starts with the deployment before")
  func deathInDeployment() async throws {
    let project = try JourneyProject()
    let first = try await SuiteProcess(project)
    try await JourneyClient(first).waitForDeployment()
    #expect(await first.stop() == 0)
    let id = try current(project)
    // It describes its functions but never starts a worker.
    let binary = JourneyProject.binary("SampleFunctions").path
    let script = "#!/bin/sh\n[ -n \"$HEARTH_SOCKET\" ] && exec sleep 600\nexec '\(binary)'\n"
    let functions = project.folder.path("functions")
    try script.write(toFile: functions, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: functions)

    let killed = try await SuiteProcess(project, ["--no-functions", "--executable", functions])
    let client = JourneyClient(killed)
    let deployment = Task { try await client.deploy() }
    await eventually("the new deployment starts") { ![nil, id].contains(starting(project)) }
    await killed.killHard()
    await #expect(throws: (any Error).self) { try await deployment.value }

    let next = try await SuiteProcess(project, ["--no-functions"])
    defer { next.kill() }
    #expect(try current(project) == id)
    #expect(try await JourneyClient(next).version() == "1")
  }

  @Test("Functions that would trap the server are refused from a debugger and from the disk")
  func hostileNumbers() async throws {
    let project = try JourneyProject()
    let first = try await SuiteProcess(project)
    let client = JourneyClient(first)
    try await client.waitForDeployment()
    let endpoint =
      #"{"entryPoint":"f","region":[],"platform":"gcfv2","taskQueueTrigger":{},"concurrency":2,"#
      + #""maxInstances":\#(Int.max)}"#
    var request = OutboundRequest(
      method: "POST",
      url: "http://\(first.address("hub"))/hearth/v1/workers",
      headers: ["content-type": "application/json", "authorization": "Bearer \(first.token)"]
    )
    request.body = Array(
      (#"{"pid":1,"port":1,"manifest":{"specVersion":"v1alpha1","endpoints":{"f":\#(endpoint)}}}"#)
        .utf8
    )
    let reply = try await OutboundClient().send(request)
    #expect(reply.status == 400 && reply.text.contains("Function f has a maxInstances of"))
    #expect(try await client.version() == "1")
    #expect(await first.stop() == 0)

    let record = project.data + "/deployments/\(try current(project))/deployment.json"
    let text = try String(contentsOfFile: record, encoding: .utf8)
    let hostile = text.replacing(#""endpoints" : {"#, with: #""endpoints" : { "f": \#(endpoint),"#)
    try hostile.write(toFile: record, atomically: true, encoding: .utf8)
    let second = try await SuiteProcess(project, ["--no-functions"])
    defer { second.kill() }
    try await JourneyClient(second).write("things/t1", n: 1)
    #expect(try await JourneyClient(second).call("count", data: "null").status == 503)
    #expect(try hasError("Function f has a maxInstances of", project))
  }
}
