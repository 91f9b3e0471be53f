import DocumentModel
import Manifests
import StorageEngine
import TaskQueueModel
import Testing
import TestSupport
import TriggerDelivery

/// Sets the machine's clock back by days, which must not prolong the waits for retries.
@Suite("Delivery and a clock that is set back", .timeLimit(.minutes(5)))
struct ClockSetBackTests {
  private let storage = MemoryStorage()
  private let invoker = ScriptedInvoker()
  private let wallClock = WallClock(secondsSince1970: 1_800_000_000)

  private func bench(_ functions: [String: FunctionEndpoint]) throws -> DeliveryBench {
    let bench = DeliveryBench(storage: storage, invoker: invoker, wallClock: wallClock)
    try bench.service.updateFunctions(functions)
    return bench
  }

  @Test("On a running suite a failed event is tried again once its wait has passed")
  func running() async throws {
    invoker.set("f") { $0 < 2 ? .failure("no") : .ok }
    let bench = try bench(["f": .created("things/{id}", retries: true)])
    try await bench.run { bench in
      try await bench.create("things/a")
      try await bench.service.waitUntilIdle()
      await bench.clock.waitForSleepers()
      wallClock.advance(by: .seconds(-86_400))
      bench.clock.advance(by: .seconds(1))

      await invoker.waitForRuns(2)
      try await bench.service.waitUntilIdle()
      #expect(try await bench.service.administration.list().map(\.state) == [.succeeded])
    }
  }

  @Test("After a restart a failed event is tried again, and a task still waits for its own time")
  func restarted() async throws {
    invoker.set("f") { $0 < 2 ? .failure("no") : .ok }
    invoker.set("q") { $0 < 2 ? .failure("no") : .ok }
    let functions = [
      "f": FunctionEndpoint.created("things/{id}", retries: true), "q": .queue(),
    ]
    wallClock.advance(by: .seconds(3 * 86_400))
    try await bench(functions).run { bench in
      try await bench.create("things/a")
      _ = try await bench.service.tasks.enqueue(NewTask(id: "failed", body: []), in: "q")
      let time = bench.now.advanced(by: .seconds(3600))
      _ = try await bench.service.tasks.enqueue(
        NewTask(id: "timed", body: [], scheduleTime: time),
        in: "q"
      )
      try await bench.service.waitUntilIdle()
      #expect(invoker.runs.count == 2)
    }
    wallClock.advance(by: .seconds(-3 * 86_400))
    try await bench(functions).run { bench in
      try await bench.service.waitUntilIdle()
      let deliveries = try await bench.service.administration.list()
      let pending = deliveries.filter { $0.state == .pending }
      #expect(pending.map(\.subject) == ["timed"])
      #expect(deliveries.count == 3)
    }
  }

  @Test("A long jump ends with its task, and time stays where it has come to")
  func cancelledJump() async throws {
    let bench = try bench(["f": .schedule("0 * * * *")])
    try await bench.run { bench in
      let time = VirtualTime()
      let target = time.now.advanced(by: .seconds(3650 * 86_400))
      let jump = Task { try await bench.service.passTime(to: target, in: time) }
      jump.cancel()
      await #expect(throws: CancellationError.self) { try await jump.value }
      #expect(time.now < target)
    }
  }

  @Test("A schedule goes on at its next time by the clock as it is now")
  func schedule() async throws {
    let bench = try bench(["f": .schedule("0 * * * *"), "g": .created("things/{id}")])
    try await bench.run { bench in
      try await bench.jump(.seconds(3600))
      #expect(invoker.runs.count == 1)
      wallClock.advance(by: .seconds(-86_400))
      // An event makes the service read the clock.
      try await bench.create("things/a")
      try await bench.service.waitUntilIdle()
      try await bench.jump(.seconds(3600))
      #expect(invoker.runs.map(\.function) == ["f", "g", "f"])
    }
  }
}
