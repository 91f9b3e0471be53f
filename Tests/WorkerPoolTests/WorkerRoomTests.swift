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
    try await withFleet(functions(names), .init(workersMax: 6)) { fleet, _ in
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
    try await withFleet(functions(["hang", "echo"]), .init(workersMax: 3)) { fleet, _ in
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
    try await withFleet(functions(["hang", "slowEcho", "echo"]), .init(workersMax: 2)) {
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
}
