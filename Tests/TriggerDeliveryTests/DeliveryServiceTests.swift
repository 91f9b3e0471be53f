import EventLog
import HTTPMessages
import Invocation
import NIOCore
import StatusCodes
import StorageEngine
import Synchronization
import Testing
import TestSupport
import TriggerDelivery

@Suite("Delivery service", .timeLimit(.minutes(5)))
struct DeliveryServiceTests {
  private let storage = MemoryStorage()
  private let invoker = ScriptedInvoker()

  @Test("Each event reaches each function that wants it, once")
  func once() async throws {
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions([
      "all": .created("{collection}/{id}"), "things": .created("things/{id}"),
    ])
    try await bench.run { bench in
      let thing = try await bench.create("things/a")
      let other = try await bench.create("others/b")
      try await bench.service.waitUntilIdle()

      let expected: Set = ["all \(thing)", "all \(other)", "things \(thing)"]
      #expect(Set(invoker.runs.map { "\($0.function) \($0.event)" }) == expected)
      #expect(invoker.runs.count == 3)
      #expect(try await bench.service.administration.list(state: .succeeded).count == 3)
    }
  }

  @Test("Nothing is expanded before the first deployment, and everything after it")
  func waitsForDeployment() async throws {
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try await bench.run { bench in
      for number in 0..<10 { try await bench.create("things/t\(number)") }
      // When a follower has read the whole log, an eager service would have read it too.
      var seen = 0
      for try await entries in bench.tailer.entries(after: 0) {
        seen += entries.count
        if seen == 10 { break }
      }
      let cursor = try await storage.read { try EventCursor.get("deliveries", in: $0) }
      #expect(cursor == nil)
      #expect(try await bench.service.administration.list().isEmpty)

      try bench.service.updateFunctions(["f": .created("things/{id}")])
      try await bench.service.waitUntilIdle()
      #expect(invoker.runs.count == 10)
    }
  }

  @Test("Large events that concern no function are let go of, few as they are")
  func movesOn() async throws {
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["f": .created("things/{id}")])
    try await bench.run { bench in
      for number in 0..<6 { try await bench.create("others/t\(number)", bytes: 1 << 20) }
      try await bench.service.waitUntilIdle()
      let cursor = try await storage.read { try EventCursor.get("deliveries", in: $0) }
      #expect(cursor != nil)
      #expect(invoker.runs.isEmpty)
    }
  }

  @Test("While the disk is full events run and their rows wait; then all is as it should be")
  func fullDisk() async throws {
    let storage = FaultyStorage()
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try await bench.run { bench in
      try bench.service.updateFunctions(["f": .created("things/{id}")])
      try await bench.service.waitUntilIdle()
      storage.failCommit(after: 1, with: StorageError(.full, "no space left"))
      try await bench.create("things/a")
      await invoker.waitForRuns(1)
      await bench.clock.waitForSleepers()
      bench.clock.advance(by: .seconds(1))
      try await bench.service.waitUntilIdle()
      #expect(try await bench.service.administration.list().map(\.state) == [.succeeded])
      #expect(invoker.runs.count == 1)
    }
  }

  @Test("A service that waits for room on the disk before it begins can be stopped")
  func stopsOnFullDisk() async throws {
    let storage = FaultyStorage()
    storage.failCommits(with: StorageError(.full, "no space left"))
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["f": .schedule("0 * * * *")])
    try await bench.run { bench in await bench.clock.waitForSleepers() }
    #expect(try await bench.service.administration.list().isEmpty)
  }

  @Test("A service whose rows wait for room on the disk can be stopped")
  func stopsWhileRowsWait() async throws {
    let storage = FaultyStorage()
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["f": .created("things/{id}")])
    try await bench.run { bench in
      try await bench.service.waitUntilIdle()
      let full = StorageError(.full, "no space left")
      storage.failCommit(after: 1, with: full)
      storage.failCommits(1000, with: full)
      try await bench.create("things/a")
      await invoker.waitForRuns(1)
      await bench.clock.waitForSleepers()
    } stopping: { bench in
      await bench.clock.waitForSleepers(2)
      bench.clock.advance(by: .seconds(2))
    }
    #expect(try await bench.service.administration.list().isEmpty)
  }

  /// Leaves failed deliveries of 20 events, and a service that is not deployed over them.
  private func undeployed(over storage: any OrderedStorage) async throws -> DeliveryBench {
    invoker.set("f") { _ in .failure("no") }
    let first = DeliveryBench(storage: storage, invoker: invoker)
    try first.service.updateFunctions(["f": .created("things/{id}")])
    try await first.run { bench in
      for number in 0..<20 { try await bench.create("things/t\(number)") }
      try await bench.service.waitUntilIdle()
    }
    return DeliveryBench(storage: storage, invoker: invoker)
  }

  @Test("Before the first deployment events of one function can be discarded by many at once")
  func discardsUndeployed() async throws {
    let seed = SeededGenerator.forTest().seed
    let bench = try await undeployed(over: SlowStorage(storage, seed: seed))
    try await bench.run { bench in
      let administration = bench.service.administration
      let ids = try await administration.list().map(\.id)
      #expect(ids.count == 20)
      try await withThrowingDiscardingTaskGroup { group in
        for id in ids { group.addTask { try await administration.discard(id) } }
      }
      #expect(try await administration.list().isEmpty)
    }
  }

  @Test("Before the first deployment a change waits for room on the disk")
  func fullDiskUndeployed() async throws {
    let storage = FaultyStorage(storage)
    let bench = try await undeployed(over: storage)
    try await bench.run { bench in
      let administration = bench.service.administration
      let id = try #require(try await administration.list().first?.id)
      storage.failCommits(with: StorageError(.full, "no space left"))
      async let discarded: Void = administration.discard(id)
      await bench.clock.waitForSleepers()
      bench.clock.advance(by: .seconds(1))
      try await discarded
      #expect(try await administration.list().count == 19)
    }
  }

  @Test("A service that is not deployed can be stopped while a change waits for room on the disk")
  func stopsUndeployedOnFullDisk() async throws {
    let storage = FaultyStorage(storage)
    let bench = try await undeployed(over: storage)
    let id = try #require(try await bench.service.administration.list().first?.id)
    let discarding = Mutex<Task<Void, any Error>?>(nil)
    try await bench.run { bench in
      storage.refuseCommits(with: StorageError(.full, "no space left"))
      discarding.withLock {
        $0 = Task { try await bench.service.administration.discard(id) }
      }
      await bench.clock.waitForSleepers()
    }
    await #expect(throws: StorageError.self) {
      try await discarding.withLock { $0 }?.value
    }
  }

  @Test("A failing handler that retries runs again when its wait is over, and not before")
  func retries() async throws {
    invoker.set("f") { $0 < 3 ? .failure("no") : .ok }
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["f": .created("things/{id}", retries: true)])
    try await bench.run { bench in
      try await bench.create("things/a")
      try await bench.service.waitUntilIdle()
      var delivery = try #require(try await bench.service.administration.list().first)
      #expect(delivery.state == .pending && delivery.attempts == 1)
      #expect(delivery.dueTime == bench.now.advanced(by: .seconds(1)))
      #expect(delivery.lastError?.contains("500: no") == true)

      await bench.clock.waitForSleepers()
      bench.clock.advance(by: .seconds(1))
      await invoker.waitForRuns(2)
      try await bench.service.waitUntilIdle()
      await bench.clock.waitForSleepers()
      #expect(invoker.runs.count == 2)
      bench.clock.advance(by: .seconds(2))
      try await bench.service.waitUntilIdle()
      delivery = try await bench.service.administration.show(delivery.id)
      #expect(delivery.state == .succeeded && delivery.attempts == 3)
      #expect(invoker.runs.map(\.attempt) == ["1", "2", "3"])
    }
  }

  @Test("An event that crashes its worker three times is dead, and runs again when asked")
  func crashesAndRetry() async throws {
    invoker.set("f") { $0 <= 3 ? .error(.crashed) : .ok }
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["f": .created("things/{id}")])
    try await bench.run { bench in
      try await bench.create("things/a")
      for run in 1...2 {
        await invoker.waitForRuns(run)
        try await bench.service.waitUntilStill()
        await bench.clock.waitForSleepers()
        bench.clock.advance(by: .seconds(1 << (run - 1)))
      }
      await invoker.waitForRuns(3)
      try await bench.service.waitUntilStill()
      let dead = try #require(try await bench.service.administration.list(state: .dead).first)
      #expect(dead.crashes == 3 && dead.attempts == 0)

      let retried = try await bench.service.administration.retry(dead.id)
      #expect(retried.state == .pending && retried.crashes == 0)
      try await bench.service.waitUntilStill()
      #expect(try await bench.service.administration.show(dead.id).state == .succeeded)
      #expect(invoker.runs.count == 4)
    }
  }

  @Test("A handler without retries fails at once; only failed and dead events can be retried")
  func failed() async throws {
    invoker.set("f") { $0 == 1 ? .failure("no") : .ok }
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["f": .created("things/{id}")])
    try await bench.run { bench in
      try await bench.create("things/a")
      try await bench.service.waitUntilIdle()
      let failed = try #require(try await bench.service.administration.list(state: .failed).first)
      _ = try await bench.service.administration.retry(failed.id)
      try await bench.service.waitUntilIdle()
      #expect(try await bench.service.administration.list().map(\.state) == [.succeeded])

      await #expect(throws: StatusError.self) {
        try await bench.service.administration.retry(failed.id)
      }
      let unknown = DeliveryID(sequence: 99, changeIndex: 0, function: "f")
      await #expect(throws: StatusError.self) {
        try await bench.service.administration.retry(unknown)
      }
      #expect(invoker.runs.count == 2)
    }
  }

  @Test(
    "What no worker took is tried again soon and not counted",
    arguments: [InvocationError.Kind.overloaded, .cannotStart, .placesTaken, .drained]
  )
  func deferred(kind: InvocationError.Kind) async throws {
    invoker.set("f") { $0 == 1 ? .error(kind) : .ok }
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["f": .created("things/{id}")])
    try await bench.run { bench in
      try await bench.create("things/a")
      try await bench.service.waitUntilStill()
      await bench.clock.waitForSleepers()
      bench.clock.advance(by: .milliseconds(500))
      try await bench.service.waitUntilStill()

      let delivery = try #require(try await bench.service.administration.list().first)
      #expect(delivery.state == .succeeded && delivery.attempts == 1)
    }
  }

  /// A body of three mebibytes in pieces that then ends, breaks off or never ends.
  private func longBody(
    _ end: (AsyncThrowingStream<ByteBuffer, any Error>.Continuation) -> Void
  ) -> AsyncThrowingStream<ByteBuffer, any Error> {
    let (pieces, continuation) = AsyncThrowingStream.makeStream(of: ByteBuffer.self)
    for _ in 0..<3 { continuation.yield(ByteBuffer(repeating: 0x78, count: 1 << 20)) }
    end(continuation)
    return pieces
  }

  @Test("A success counts however long its body is, and though the rest breaks off")
  func longBodies() async throws {
    let whole = longBody { $0.finish() }
    let broken = longBody { $0.finish(throwing: InvocationError(.timedOut, "Too late.")) }
    invoker.set("whole") { _ in .body(whole) }
    invoker.set("breaks") { _ in .body(broken) }
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions([
      "whole": .created("things/{id}"), "breaks": .created("things/{id}"),
    ])
    try await bench.run { bench in
      try await bench.create("things/a")
      try await bench.service.waitUntilIdle()

      let deliveries = try await bench.service.administration.list()
      #expect(deliveries.map(\.state) == [.succeeded, .succeeded])
    }
  }

  @Test("The rest of a body that does not end is given up after its time")
  func endlessBody() async throws {
    let clock = ManualClock()
    var kept: AsyncThrowingStream<ByteBuffer, any Error>.Continuation?
    let body = Response.Body.stream(longBody { kept = $0 })
    async let beginning = body.beginning(upTo: 1 << 20, restFor: .seconds(10), clock)
    await clock.waitForSleepers()
    clock.advance(by: .seconds(10))

    #expect(try await beginning.readableBytes == 1 << 20)
    kept?.finish()
  }

  @Test("A body that breaks off within its beginning is an error")
  func shortBody() async throws {
    let (pieces, continuation) = AsyncThrowingStream.makeStream(of: ByteBuffer.self)
    continuation.yield(ByteBuffer(string: "x"))
    continuation.finish(throwing: InvocationError(.timedOut, "Too late."))

    await #expect(throws: InvocationError.self) {
      let body = Response.Body.stream(pieces)
      _ = try await body.beginning(upTo: 10, restFor: .seconds(10), ManualClock())
    }
  }

  @Test("Being idle includes what a handler writes, and what that sets off")
  func transitive() async throws {
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    for level in 0..<5 {
      invoker.set("f\(level)") { _ in
        try await bench.create("level\(level + 1)/x")
        return .ok
      }
    }
    try bench.service.updateFunctions(
      Dictionary(uniqueKeysWithValues: (0...5).map { ("f\($0)", .created("level\($0)/{id}")) })
    )
    try await bench.run { bench in
      try await bench.create("level0/x")
      try await bench.service.waitUntilIdle()

      #expect(invoker.runs.map(\.function) == (0...5).map { "f\($0)" })
      #expect(try await bench.service.administration.list(state: .succeeded).count == 6)
    }
  }

  @Test("A handler that runs when the server stops is uncounted and runs in the next life")
  func stopAndResume() async throws {
    invoker.set("f", ScriptedInvoker.hanging)
    let first = DeliveryBench(storage: storage, invoker: invoker)
    try first.service.updateFunctions(["f": .created("things/{id}")])
    try await first.run { bench in
      try await bench.create("things/a")
      await invoker.waitForRuns(1)
    } stopping: { bench in
      await bench.clock.waitForSleepers()
      bench.clock.advance(by: .milliseconds(1500))
    }
    let left = try #require(try await first.service.administration.list().first)
    #expect(left.state == .pending && left.attempts == 0 && left.crashes == 0)

    invoker.set("f") { _ in .ok }
    let second = DeliveryBench(storage: storage, invoker: invoker)
    try second.service.updateFunctions(["f": .created("things/{id}")])
    try await second.run { bench in
      await invoker.waitForRuns(2)
      try await bench.service.waitUntilIdle()
      #expect(try await bench.service.administration.show(left.id).state == .succeeded)
      #expect(invoker.runs.map(\.attempt) == ["1", "1"])
    }
  }

  @Test("Past the bound of a function its further events are dead at once, and others' go on")
  func pendingMax() async throws {
    invoker.set("f") { _ in .failure("no") }
    let bench = DeliveryBench(
      storage: storage,
      invoker: invoker,
      configuration: .init(pendingMax: 2)
    )
    try bench.service.updateFunctions([
      "f": .created("things/{id}", retries: true), "g": .created("others/{id}"),
    ])
    try await bench.run { bench in
      for id in ["a", "b", "c"] {
        try await bench.create("things/\(id)")
        try await bench.service.waitUntilIdle()
      }
      try await bench.create("others/a")
      try await bench.service.waitUntilIdle()

      let dead = try await bench.service.administration.list(state: .dead)
      #expect(dead.map(\.subject) == ["things/c"])
      #expect(dead.first?.lastError?.contains("2 events of f wait already") == true)
      #expect(try await bench.service.administration.list(state: .pending).count == 2)
      #expect(invoker.runs.map(\.function) == ["f", "f", "g"])
    }
  }

  @Test("Many events are each delivered once, however few of them fit in memory")
  func manyEvents() async throws {
    let count = 5000
    let bench = DeliveryBench(
      storage: storage,
      invoker: invoker,
      configuration: .init(heldBytesMax: 10_000)
    )
    try bench.service.updateFunctions(["f": .created("things/{id}")])
    try await bench.run { bench in
      for number in 0..<count { try await bench.create("things/t\(number)") }
      try await bench.service.waitUntilIdle()
    }

    #expect(invoker.runs.count == count)
    #expect(Set(invoker.runs.map(\.event)).count == count)
    #expect(invoker.runningMax <= 160)
  }

  @Test("A backlog that does not fit in memory is delivered whole in the next life, then the new")
  func backlogAfterRestart() async throws {
    let count = 300
    invoker.set("f", ScriptedInvoker.hanging)
    let first = DeliveryBench(storage: storage, invoker: invoker)
    try first.service.updateFunctions(["f": .created("things/{id}")])
    try await first.run { bench in
      for number in 0..<count { try await bench.create("things/t\(number)") }
      await invoker.waitForRuns(160)
      // The events are expanded, but most deliveries have not begun.
      try await eventually("all events are expanded") {
        try await first.service.administration.list(limit: count).count >= count
      }
    } stopping: { bench in
      await bench.clock.waitForSleepers()
      bench.clock.advance(by: .seconds(2))
    }

    let recorder = ScriptedInvoker()
    let second = DeliveryBench(
      storage: storage,
      invoker: recorder,
      configuration: .init(heldBytesMax: 2000)
    )
    try second.service.updateFunctions(["f": .created("things/{id}")])
    try await second.run { bench in
      await recorder.waitForRuns(count)
      try await bench.create("things/new")
      try await bench.service.waitUntilIdle()
    }
    #expect(recorder.runs.count == count + 1)
    #expect(
      try await second.service.administration.list(state: .succeeded, limit: 1000).count == count
        + 1
    )
  }

  @Test("Later retries, however many, hold up neither new events nor the end of waiting")
  func retriesHoldNothingUp() async throws {
    let (failing, fine) = (40, 40)
    invoker.set("later") { _ in .failure("no") }
    let bench = DeliveryBench(
      storage: storage,
      invoker: invoker,
      configuration: .init(heldBytesMax: 2000)
    )
    try bench.service.updateFunctions([
      "later": .created("late/{id}", retries: true), "f": .created("things/{id}"),
    ])
    try await bench.run { bench in
      for number in 0..<failing { try await bench.create("late/t\(number)") }
      try await bench.service.waitUntilIdle()
      for number in 0..<fine { try await bench.create("things/t\(number)") }
      try await bench.service.waitUntilIdle()
      #expect(invoker.runs.count == failing + fine)

      invoker.set("later") { _ in .ok }
      await bench.clock.waitForSleepers()
      bench.clock.advance(by: .seconds(1))
      await invoker.waitForRuns(2 * failing + fine)
      try await bench.service.waitUntilIdle()
      #expect(invoker.runs.count == 2 * failing + fine)
      #expect(
        try await bench.service.administration.list(state: .succeeded, limit: 1000).count == failing
          + fine
      )
    }
  }

  @Test("Started by hand, events and retries beyond memory all come, jumping from due to due")
  func byHand() async throws {
    let count = 60
    invoker.set("f") { $0 <= count ? .failure("no") : .ok }
    let bench = DeliveryBench(
      storage: storage,
      invoker: invoker,
      configuration: .init(heldBytesMax: 1000, startsByItself: false)
    )
    try bench.service.updateFunctions(["f": .created("things/{id}", retries: true)])
    try await bench.run { bench in
      for number in 0..<count { try await bench.create("things/t\(number)") }
      settling: while true {
        try await bench.service.waitUntilIdle()
        if let last = bench.service.startable.last {
          #expect(try await bench.service.deliver(last))
          continue settling
        }
        guard let due = bench.service.nextDue else { break }
        bench.clock.advance(by: due.duration(since: bench.now))
        bench.service.timeJumped()
      }
      #expect(
        try await bench.service.administration.list(state: .succeeded, limit: 1000).count == count
      )
    }

    #expect(invoker.runs.count == 2 * count)
    #expect(invoker.runningMax == 1)
    // No retry came too early: every first attempt precedes every second one.
    #expect(invoker.runs.prefix(count).allSatisfy { $0.attempt == "1" })
  }

  @Test("Of two who retry an event at once one does, and it counts as pending once")
  func simultaneousRetries() async throws {
    invoker.set("f") { $0 == 1 ? .failure("no") : .ok }
    let bench = DeliveryBench(
      storage: storage,
      invoker: invoker,
      configuration: .init(pendingMax: 1)
    )
    try bench.service.updateFunctions(["f": .created("things/{id}")])
    try await bench.run { bench in
      try await bench.create("things/a")
      try await bench.service.waitUntilIdle()
      let failed = try #require(try await bench.service.administration.list(state: .failed).first)
      let succeeded = await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<2 {
          group.addTask {
            do {
              _ = try await bench.service.administration.retry(failed.id)
              return true
            } catch {
              return false
            }
          }
        }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      try await bench.service.waitUntilIdle()
      // If too many places were counted as taken, the log would no longer be expanded.
      try await bench.create("things/b")
      try await bench.service.waitUntilIdle()

      #expect(succeeded == 1)
      #expect(invoker.runs.count == 3)
    }
  }

  @Test("Of the settled deliveries the newest are kept, as many as configured")
  func trimming() async throws {
    let bench = DeliveryBench(
      storage: storage,
      invoker: invoker,
      configuration: .init(settledKept: 100)
    )
    try bench.service.updateFunctions(["f": .created("things/{id}")])
    try await bench.run { bench in
      for number in 0..<2499 { try await bench.create("things/t\(number)") }
      let newest = try await bench.create("things/newest")
      try await bench.service.waitUntilIdle()
      #expect(try await bench.service.administration.list(limit: 1).first?.id.eventID == newest)
    }
    let kept = try await bench.service.administration.list(limit: 3000)

    // Rows are trimmed once in a thousand events, so up to a thousand more may remain in between.
    #expect((100...1100).contains(kept.count))
    #expect(kept.map(\.id) == kept.map(\.id).sorted(by: >))
  }
}
