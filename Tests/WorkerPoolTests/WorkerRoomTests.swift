import Foundation
import FunctionLogs
import HTTPMessages
import HTTPTypes
import Invocation
import Manifests
import Testing
import TestSupport

@testable import WorkerPool

/// Places in a full fleet, with real workers from `SampleFunctions`.
@Suite("Room for workers", .timeLimit(.minutes(5)))
struct WorkerRoomTests {
  /// Functions whose workers run one invocation at a time, with a timeout of ten minutes.
  private func functions(_ names: [String]) throws -> [DeployedFunction] {
    try sample(names) {
      $0.concurrency = 1
      $0.maxInstances = 10
      $0.timeoutSeconds = 600
    }
  }

  /// A configuration in which no time limit expires by itself during a test.
  private func quiet(workersMax: Int) -> WorkerFleet.Configuration {
    .init(workersMax: workersMax, startTimeout: .seconds(600), cancelGrace: .seconds(600))
  }

  /// Starts a call of `hang` and returns once its handler runs.
  private func hang(
    _ fleet: WorkerFleet,
    beside running: Int
  ) async -> Task<Response, any Error> {
    let call = Task { try await fleet.call("hang", #"{"data":{}}"#) }
    await fleet.waitForRunning(running + 1)
    return call
  }

  /// Returns once an invocation waits for a worker.
  private func waitForWaiting(_ fleet: WorkerFleet) async {
    await eventually("an invocation waits") { fleet.statuses().contains { $0.waiting > 0 } }
  }

  @Test("Idle workers of other functions give their places up at once, to several at a time")
  func idle() async throws {
    let names = ["hang", "echo", "whoAmI", "count"]
    try await withFleet(functions(names), quiet(workersMax: 4)) { fleet, _ in
      var calls: [Task<Response, any Error>] = []
      while calls.count < 3 { calls.append(await hang(fleet, beside: calls.count)) }
      for call in calls { call.cancel() }
      for call in calls { _ = await call.result }

      try await withThrowingTaskGroup(of: Void.self) { group in
        for name in names.dropFirst() {
          group.addTask { _ = try await fleet.call(name) }
        }
        try await group.waitForAll()
      }
      #expect(fleet.statuses().map(\.workers).reduce(0, +) <= 4)
    }
  }

  // hang 1, 2, 3 run │ echo waits │ 1 must go when done │ 2 ends │ 2's worker makes room
  @Test("A worker that becomes idle makes room although a busy one was asked before")
  func idleAfterBusy() async throws {
    try await withFleet(functions(["hang", "echo"]), quiet(workersMax: 3)) { fleet, _ in
      var calls: [Task<Response, any Error>] = []
      while calls.count < 3 { calls.append(await hang(fleet, beside: calls.count)) }
      let waiting = Task { try await fleet.call("echo") }
      await waitForWaiting(fleet)

      for call in calls.dropFirst() { call.cancel() }
      let reply = try await waiting.value
      #expect(reply.head.status == .ok)
      #expect(fleet.statuses().first { $0.name == "hang" }?.running == 1)
      calls[0].cancel()
    }
  }

  // hang and slowEcho run │ echo waits: none has two │ hang ends │ its worker makes room
  @Test("The first worker to become idle makes room for a function that found all busy")
  func idleAfterAllBusy() async throws {
    try await withFleet(functions(["hang", "slowEcho", "echo"]), quiet(workersMax: 2)) {
      fleet,
      _ in
      let call = await hang(fleet, beside: 0)
      let slow = Task {
        try await fleet.call("slowEcho", #"{"data":{"milliseconds":600000,"text":""}}"#)
      }
      await fleet.waitForRunning(2)
      let waiting = Task { try await fleet.call("echo") }
      await waitForWaiting(fleet)

      call.cancel()
      let reply = try await waiting.value
      #expect(reply.head.status == .ok)
      slow.cancel()
    }
  }

  @Test("A start that was taken back leaves nothing at the gate")
  func takenBack() async throws {
    try await withFleet(functions(["hang", "echo", "count"]), quiet(workersMax: 1)) { fleet, _ in
      let call = await hang(fleet, beside: 0)
      for _ in 0..<2 {
        let error = await #expect(throws: InvocationError.self) {
          try await fleet.call("echo", timeout: .milliseconds(100))
        }
        #expect(error?.kind == .placesTaken)
      }
      #expect(fleet.statuses().map(\.workers).reduce(0, +) == 1)

      call.cancel()
      let reply = try await fleet.call("count")
      #expect(reply.head.status == .ok)
    }
  }

  @Test("One function's deadline is kept though another's came first")
  func laterDeadline() async throws {
    try await withFleet(functions(["hang", "slowEcho"]), quiet(workersMax: 2)) { fleet, _ in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (name, data, milliseconds) in [
          ("hang", #"{"isStubborn":true}"#, 200),
          ("slowEcho", #"{"milliseconds":600000,"text":""}"#, 1_000),
        ] {
          group.addTask {
            let error = await #expect(throws: InvocationError.self) {
              try await fleet.call(
                name,
                #"{"data":\#(data)}"#,
                timeout: .milliseconds(milliseconds)
              )
            }
            #expect(error?.kind == .timedOut)
          }
        }
        try await group.waitForAll()
      }
    }
  }

  @Test("An event that finds no worker free in time is not said to have taken too long")
  func waitTimedOut() async throws {
    let functions = try sample(["hang"]) {
      $0.concurrency = 1
      $0.maxInstances = 1
      $0.timeoutSeconds = 600
      $0.taskQueueTrigger = .init()
    }
    let configuration = WorkerFleet.Configuration(queueTimeout: .milliseconds(100))
    try await withFleet(functions, configuration) { fleet, _ in
      let call = await hang(fleet, beside: 0)
      let error = await #expect(throws: InvocationError.self) { try await fleet.call("hang") }
      #expect(error?.kind == .overloaded)
      call.cancel()
    }
  }

  @Test("The fleet forgets the workers that have exited")
  func forgets() async throws {
    try await withFleet(functions(["echo", "count"]), quiet(workersMax: 1)) { fleet, _ in
      for name in ["echo", "count", "echo"] { _ = try await fleet.call(name) }

      #expect(fleet.context.workersLive == 1)
    }
  }

  @Test("A function that asks for all places leaves one for another")
  func leavesFirstPlaces() async throws {
    try await withFleet(functions(["hang", "echo"]), quiet(workersMax: 6)) { fleet, _ in
      let calls = (0..<10).map { _ in Task { try await fleet.call("hang", #"{"data":{}}"#) } }
      await fleet.waitForRunning(5)
      let reply = try await fleet.call("echo")

      #expect(reply.head.status == .ok)
      let status = try #require(fleet.statuses().first { $0.name == "hang" })
      #expect(status.shortage?.cause == .placesTaken)
      #expect(
        status.shortage?.message
          == "No worker place is left for hang: of 6, hang holds 5, echo holds 1."
      )
      for call in calls { call.cancel() }
    }
  }

  @Test(
    "An invocation without a place fails soon; error and log list the functions that hold the places",
    arguments: [false, true]
  )
  func placesTaken(isTask: Bool) async throws {
    var functions = try functions(["hang", "echo"])
    if isTask { functions[1].endpoint.taskQueueTrigger = .init() }
    let configuration = WorkerFleet.Configuration(
      workersMax: 1,
      placeTimeout: .milliseconds(isTask ? 600_000 : 50),
      eventPlaceTimeout: .milliseconds(isTask ? 50 : 600_000)
    )
    try await withFleet(functions, configuration) { fleet, log in
      let call = await hang(fleet, beside: 0)
      let error = await #expect(throws: InvocationError.self) { try await fleet.call("echo") }

      let sentence = "No worker place is left for echo: of 1, hang holds 1."
      #expect(error?.kind == .placesTaken)
      #expect(error?.message.hasPrefix(sentence) == true, "\(error?.message ?? "")")
      let lines = await log.entries(function: "echo").filter { $0.level == "warning" }
      #expect(lines.map(\.message) == [sentence])
      call.cancel()
    }
  }

  // Each version: its call hangs │ the next deployment needs a place │ the oldest version is ended
  @Test("Deployment after deployment finds a place though each leaves a call that hangs")
  func replacedVersions() async throws {
    var configuration = quiet(workersMax: 2)
    configuration.replacedGrace = .milliseconds(50)
    try await withFleet(functions(["hang"]), configuration) { fleet, _ in
      var calls = [await hang(fleet, beside: 0)]
      for _ in 0..<5 {
        try await fleet.replaceFunctions(functions(["hang"]))
        calls.append(await hang(fleet, beside: 0))
      }

      for call in calls.dropLast(2) {
        let error = await #expect(throws: InvocationError.self) { try await call.value }
        #expect(error?.kind == .drained)
      }
      for call in calls { call.cancel() }
    }
  }

  @Test("What a replaced version runs is ended when its time is up, needed or not")
  func replacedTime() async throws {
    var configuration = quiet(workersMax: 10)
    configuration.replacedTimeMax = .milliseconds(50)
    try await withFleet(functions(["hang"]), configuration) { fleet, _ in
      let call = await hang(fleet, beside: 0)
      try await fleet.replaceFunctions(functions(["hang"]))

      let error = await #expect(throws: InvocationError.self) { try await call.value }
      #expect(error?.kind == .drained)
    }
  }

  @Test("A deployment that finds no place fails in words, and the old version serves on")
  func deploymentWithoutPlace() async throws {
    var configuration = quiet(workersMax: 1)
    configuration.placeTimeout = .milliseconds(50)
    try await withFleet(functions(["hang"]), configuration) { fleet, _ in
      let call = await hang(fleet, beside: 0)
      let error = await #expect(throws: InvocationError.self) {
        try await fleet.replaceFunctions(functions(["hang"]))
      }

      #expect(error?.kind == .placesTaken)
      #expect(error?.message.contains("of 1, hang holds 1.") == true)
      #expect(fleet.statuses().map(\.running) == [1])
      call.cancel()
    }
  }

  #if os(Linux)
    @Test("A worker shows its function in the list of processes")
    func title() async throws {
      try await withFleet(functions(["echo"]), quiet(workersMax: 1)) { fleet, _ in
        let process = try #require(fleet.statuses().flatMap(\.processes).first).pid
        let title = try Data(contentsOf: URL(filePath: "/proc/\(process)/cmdline"))

        #expect(String(decoding: title, as: UTF8.self) == "hearth-worker: echo\0")
      }
    }
  #endif
}
