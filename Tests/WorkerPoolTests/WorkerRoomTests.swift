import HTTPTypes
import Invocation
import RuntimeSupport
import TestSupport
import Testing

@testable import WorkerPool

/// Places in a full fleet: real workers of `SampleFunctions`.
@Suite("Room for workers", .timeLimit(.minutes(1)))
struct WorkerRoomTests {
  /// Functions of which each worker runs one invocation, which may take ten minutes.
  private func functions(_ names: [String]) throws -> [DeployedFunction] {
    try sample(names) {
      $0.concurrency = 1
      $0.maxInstances = 10
      $0.timeoutSeconds = 600
    }
  }

  /// Settings under which no alarm rings by itself while a test runs.
  private func quiet(workersMax: Int) -> WorkerFleet.Configuration {
    .init(workersMax: workersMax, startTimeout: .seconds(600), cancelGrace: .seconds(600))
  }

  /// Begins a call of `hang` and returns once its handler runs.
  private func hang(
    _ fleet: WorkerFleet,
    beside running: Int
  ) async -> Task<InvocationReply, any Error> {
    let call = Task { try await fleet.call("hang", #"{"data":{}}"#) }
    while !Task.isCancelled,
      fleet.statuses().reduce(0, { $0 + $1.running }) <= running
    {
      await Task.yield()
    }
    return call
  }

  /// The waiting invocations of all functions.
  private func waiting(_ fleet: WorkerFleet) -> Int {
    fleet.statuses().reduce(0) { $0 + $1.waiting }
  }

  @Test("Idle workers of other functions give their places up at once, to several at a time")
  func idle() async throws {
    let names = ["hang", "echo", "whoAmI", "count"]
    try await withFleet(functions(names), quiet(workersMax: 6)) { fleet, _ in
      var calls: [Task<InvocationReply, any Error>] = []
      while calls.count < 6 { calls.append(await hang(fleet, beside: calls.count)) }
      for call in calls { call.cancel() }
      for call in calls { _ = await call.result }

      let begun = ContinuousClock.now
      try await withThrowingTaskGroup(of: Void.self) { group in
        for name in names.dropFirst() {
          group.addTask { _ = try await fleet.call(name) }
        }
        try await group.waitForAll()
      }
      #expect(begun.duration(to: .now) < .seconds(5), "No grace was waited for")
      #expect(fleet.statuses().map(\.workers).reduce(0, +) <= 6)
    }
  }

  // hang 1, 2, 3 run │ echo waits │ 1 is asked to go once done │ 2 ends │ 2's worker makes room
  @Test("A worker that becomes idle makes room although a busy one was asked before")
  func idleAfterBusy() async throws {
    try await withFleet(functions(["hang", "echo"]), quiet(workersMax: 3)) { fleet, _ in
      var calls: [Task<InvocationReply, any Error>] = []
      while calls.count < 3 { calls.append(await hang(fleet, beside: calls.count)) }
      let waiting = Task { try await fleet.call("echo") }
      while !Task.isCancelled, self.waiting(fleet) == 0 { await Task.yield() }

      for call in calls.dropFirst() { call.cancel() }
      let reply = try await waiting.value
      #expect(reply.head.status == .ok)
      #expect(fleet.statuses().first { $0.name == "hang" }?.running == 1)
      calls[0].cancel()
    }
  }

  // hang and count run │ echo waits: nobody has two │ hang ends │ its worker makes room
  @Test("The first worker to become idle makes room for a function that found all busy")
  func idleAfterAllBusy() async throws {
    try await withFleet(functions(["hang", "slowEcho", "echo"]), quiet(workersMax: 2)) {
      fleet,
      _ in
      let call = await hang(fleet, beside: 0)
      let slow = Task {
        try await fleet.call("slowEcho", #"{"data":{"milliseconds":600000,"text":""}}"#)
      }
      while !Task.isCancelled, fleet.statuses().reduce(0, { $0 + $1.running }) < 2 {
        await Task.yield()
      }
      let waiting = Task { try await fleet.call("echo") }
      while !Task.isCancelled, self.waiting(fleet) == 0 { await Task.yield() }

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
        #expect(error?.kind == .timedOut)
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
  func waitedInVain() async throws {
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
}
