import EmulatorSuite
import TestSupport
import Testing

@Suite("Journeys of an event", .serialized)
struct RestartJourneyTests {
  @Test("A stopped suite exits with 0 and comes back with documents, functions and events")
  func stopAndStart() async throws {
    let project = try JourneyProject()
    let first = try await SuiteProcess(project)
    try await JourneyClient(first).write("things/t1", n: 7)
    try await JourneyClient(first).settle()
    #expect(await first.stop() == 0)

    let second = try await SuiteProcess(project)
    defer { second.kill() }
    let client = JourneyClient(second)
    try await client.settle()
    #expect(try await client.read("things/t1") == 7)
    #expect(try await client.events(state: "succeeded").map(\.document) == ["things/t1"])
    #expect(try project.records().count == 1)
  }

  @Test("A handler that fails once and one that crashes its worker once are run again")
  func redelivery() async throws {
    let project = try JourneyProject()
    let suite = try await SuiteProcess(project)
    defer { suite.kill() }
    let client = JourneyClient(suite)
    try await client.write("failOnce/a", n: 1)
    try await client.write("crashOnce/b", n: 1)
    try await waitForRecords(["failOnce done", "crashOnce done"], in: project, client)

    try await client.settle()
    let succeeded = try await client.events(state: "succeeded")
    #expect(Set(succeeded.map(\.function)) == ["failOnce", "crashOnce"])
  }

  @Test("What fails for good is kept with its reason and can be retried")
  func deadLetters() async throws {
    let project = try JourneyProject()
    let suite = try await SuiteProcess(project)
    defer { suite.kill() }
    let client = JourneyClient(suite)
    try await client.write("failForGood/a", n: 1)
    try await client.write("failWithoutRetry/b", n: 1)
    try await client.settle()

    let dead = try #require(try await client.events(state: "dead").first)
    #expect(dead.function == "failForGood" && dead.error != nil)
    #expect(try await client.events(state: "failed").map(\.function) == ["failWithoutRetry"])
    try await client.retry(dead.id)
    try await client.settle()
    #expect(try project.records().filter { $0[0] == "failForGood" }.count == 2)
  }

  @Test("Each of many failed events is retried once by a request for all, though it fails again")
  func retryAll() async throws {
    let project = try JourneyProject()
    let suite = try await SuiteProcess(project)
    defer { suite.kill() }
    let client = JourneyClient(suite)
    for first in [0, 500, 1000] {
      try await client.writeMany("failWithoutRetry", from: first, count: 500)
    }
    try await client.settle()

    #expect(try await client.retryAllFailed() == 1500)
    try await client.settle()
    #expect(try project.records().count { $0.prefix(2) == ["failWithoutRetry", "begun"] } == 3000)
  }

  @Test("A second suite on the same data folder is refused")
  func inUse() async throws {
    let project = try JourneyProject()
    let first = try await SuiteProcess(project)
    defer { first.kill() }

    await #expect(throws: JourneyError.self) { _ = try await SuiteProcess(project) }
    #expect(project.logTail().contains("in use"))
  }

  @Test("Events from before the first deployment are delivered after it")
  func lateDeployment() async throws {
    let project = try JourneyProject()
    let suite = try await SuiteProcess(project, ["--no-functions"])
    defer { suite.kill() }
    let client = JourneyClient(suite)
    try await client.write("things/early", n: 1)

    #expect(try await client.deploy().contains(#""deployed""#))
    try await client.settle()
    #expect(try await client.events(state: "succeeded").map(\.document) == ["things/early"])
  }

  /// Settles until every wanted line is recorded.
  ///
  /// One settling is not enough, because it does not wait for delayed retries.
  private func waitForRecords(
    _ wanted: [String],
    in project: JourneyProject,
    _ client: JourneyClient
  ) async throws {
    try await eventually("\(wanted) are recorded") {
      try await client.settle()
      let lines = try project.records().map { $0.prefix(2).joined(separator: " ") }
      return wanted.allSatisfy(lines.contains)
    }
  }
}
