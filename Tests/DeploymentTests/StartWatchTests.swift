import Foundation
import Synchronization
import TestSupport
import Testing
import WorkerPool

@testable import Deployment

@Suite("Starts on record")
struct StartHistoryTests {
  @Test("A start that a new server finds has killed the last one; three in a row are a crash loop")
  func deaths() {
    var history = StartHistory()
    for count in 1...3 {
      #expect(!history.isCrashLooping("a"))
      history.begin("a", takingOver: nil)
      history = history.afterRestart
      #expect(history.deaths(of: "a") == count)
    }
    #expect(history.isCrashLooping("a") && !history.isCrashLooping("b"))
    #expect(history.afterRestart == history)
  }

  @Test("A start that is survived, or ends because the server stops, resets the count")
  func survived() {
    var history = StartHistory()
    history.begin("a", takingOver: nil)
    history = history.afterRestart
    history.begin("a", takingOver: nil)
    var stopped = history

    history.survive("b")
    #expect(history.starting == "a" && history.deaths(of: "a") == 1)
    history.survive("a")
    stopped.stop()
    #expect(history == StartHistory() && stopped == StartHistory())
  }

  @Test("The deaths of a deployment are those of the next one with its binary")
  func duplicates() {
    var history = StartHistory()
    history.begin("a", takingOver: nil)
    history = history.afterRestart
    history.begin("b", takingOver: "a")

    #expect(history.deaths(of: "a") == 0 && history.deaths(of: "b") == 1)
    history = history.afterRestart
    #expect(history.deaths(of: "b") == 2)
    history.forget { $0 == "a" }
    #expect(history == StartHistory())
  }

  @Test("Whatever numbers somebody wrote, they count on")
  func extremes() throws {
    let text = #"{"starting": "a", "deaths": {"a": \#(Int.max), "b": \#(Int.min)}}"#
    let history = try JSONDecoder().decode(StartHistory.self, from: Data(text.utf8))

    #expect(history.afterRestart.isCrashLooping("a") && !history.afterRestart.isCrashLooping("b"))
  }
}

/// Servers that use one data folder in succession, with scripts as functions.
@Suite("Starts that kill the server", .timeLimit(.minutes(5)))
struct StartWatchTests {
  private let data: TemporaryFolder
  private let source: TemporaryFolder

  init() throws {
    data = try TemporaryFolder()
    source = try TemporaryFolder()
  }

  /// A server; releasing it stands for killing it.
  private struct Server {
    var starts: StartWatch
    var controller: DeploymentController
    var clock = ManualClock()
    var served = Served()

    final class Served: Sendable {
      private let state = Mutex((count: 0, failing: false))
      /// For each start, true if it was recorded on disk when it began.
      let areOnDisk = Mutex<[Bool]>([])
      var count: Int { state.withLock { $0.count } }
      func fail() { state.withLock { $0.failing = true } }
      func replace() throws {
        try state.withLock { state in
          if state.failing { throw DeploymentError("no worker starts") }
          state.count += 1
        }
      }
    }

    init(_ data: TemporaryFolder) {
      starts = StartWatch(folder: data.path, clock: clock, logger: .silent)
      controller = DeploymentController(
        configuration: .init(project: "demo-test", folder: data.path, environment: [:]),
        manifestTimeout: .seconds(30),
        starts: starts,
        now: { Date() },
        logger: .silent
      ) { [served] _ in
        let isOnDisk = FileManager.default.fileExists(atPath: data.path("starting"))
        served.areOnDisk.withLock { $0.append(isOnDisk) }
        try served.replace()
      }
    }
  }

  private func functions(_ name: String = "f") throws -> FunctionsSource {
    let manifest =
      #"{"specVersion":"v1alpha1","endpoints":{"\#(name)":{"entryPoint":"f","region":[],"#
      + #""platform":"gcfv2","callableTrigger":{}}}}"#
    try source.write(
      name,
      "#!/bin/sh\necho '\(manifest)' > \"$FUNCTIONS_MANIFEST_OUTPUT_PATH\"\n",
      isExecutable: true
    )
    return .executable(path: source.path(name), folder: source.path)
  }

  @discardableResult
  private func deploy(
    _ server: Server,
    _ name: String = "f",
    isAsked: Bool = true
  ) async throws -> DeploymentRecord {
    try await server.controller.deploy(
      functions(name),
      builds: true,
      isAsked: isAsked,
      progress: { _ in }
    )
  }

  /// True if the current start is recorded on disk.
  private var isOnDisk: Bool {
    FileManager.default.fileExists(atPath: data.path("starting"))
  }

  @Test(
    "A deployment that three servers in a row died of is not served, until somebody asks for it"
  )
  func refused() async throws {
    let record = try await deploy(Server(data))
    for _ in 1...2 { #expect(try await Server(data).controller.restore() == record) }

    for _ in 1...2 {
      let server = Server(data)
      let error = await #expect(throws: DeploymentError.self) {
        try await server.controller.restore()
      }
      #expect(error?.message.contains("Deployment \(record.id) is not started again") == true)
      #expect(error?.message.contains("hearth functions rollback \(record.id)") == true)
      #expect(server.served.count == 0)
      // Stopping the server does not undo the start.
      await server.starts.stop()
    }
    let server = Server(data)
    #expect(try await server.controller.rollBack(to: record.id) == record)
    await server.starts.stop()
    #expect(!isOnDisk)
    #expect(try await Server(data).controller.restore() == record)
  }

  @Test("Its binary is not deployed again by itself either; another one is, and so is an asked one")
  func duplicate() async throws {
    try await deploy(Server(data))
    for _ in 1...2 { try await deploy(Server(data), isAsked: false) }

    let error = await #expect(throws: DeploymentError.self) {
      try await deploy(Server(data), isAsked: false)
    }
    #expect(error?.message.contains("`hearth deploy` deploys them nonetheless") == true)
    try await deploy(Server(data), "other", isAsked: false)
    try await deploy(Server(data))
  }

  @Test("Who was killed while it deployed starts with the deployment before")
  func deathInDeployment() async throws {
    let first = Server(data)
    let record = try await deploy(first)
    await first.starts.stop()
    // These calls write what a server killed at this point would have written.
    let dying = Server(data)
    try FileManager.default.createDirectory(
      atPath: data.path("new"),
      withIntermediateDirectories: true
    )
    await dying.starts.begin("new", duplicate: nil)

    let next = Server(data)
    #expect(try await next.controller.restore() == record)
    #expect(try await next.controller.deployments().all == [record])
  }

  @Test("A quarter of a second of service, and no less, clears the count")
  func survives() async throws {
    let server = Server(data)
    try await deploy(server)
    #expect(isOnDisk)
    // Cancelled at the end of the test.
    let running = Task { await server.starts.run() }
    #expect(server.served.areOnDisk.withLock { $0 } == [true])
    await server.clock.waitForSleepers()
    server.clock.advance(by: .milliseconds(249))
    #expect(server.clock.sleepersCount == 1 && isOnDisk)
    server.clock.advance(by: .milliseconds(1))
    await eventually("the count is removed") { !isOnDisk }
    running.cancel()
    await running.value
  }

  @Test("A deployment that does not start leaves the count of the one that serves on")
  func failure() async throws {
    let server = Server(data)
    let record = try await deploy(server)
    server.served.fail()
    await #expect(throws: DeploymentError.self) { try await deploy(server, "other") }

    for _ in 1...2 { #expect(try await Server(data).controller.restore() == record) }
    await #expect(throws: DeploymentError.self) { try await Server(data).controller.restore() }
  }

  @Test("The one that serves on may still be survived after another one did not start")
  func survivesAfterFailure() async throws {
    let server = Server(data)
    try await deploy(server)
    // Cancelled at the end of the test.
    let running = Task { await server.starts.run() }
    await server.clock.waitForSleepers()
    await server.starts.begin("other", duplicate: nil)
    server.clock.advance(by: .seconds(3))
    await server.starts.fail()

    await server.clock.waitForSleepers()
    server.clock.advance(by: .seconds(3))
    await eventually("the count is removed") { !isOnDisk }
    running.cancel()
    await running.value
  }

  @Test("A record of starts that is damaged or cannot be written keeps nothing from serving")
  func damaged() async throws {
    let record = try await deploy(Server(data))
    try data.write("starting", "{")
    #expect(try await Server(data).controller.restore() == record)
    try FileManager.default.removeItem(atPath: data.path("starting"))
    try FileManager.default.createDirectory(
      atPath: data.path("starting/x"),
      withIntermediateDirectories: true
    )
    for _ in 1...4 { #expect(try await Server(data).controller.restore() == record) }
  }
}
