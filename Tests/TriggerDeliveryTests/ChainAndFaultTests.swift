import DocumentModel
import Identity
import InvocationContext
import StatusCodes
import StorageEngine
import Testing
import TestSupport

@testable import TriggerDelivery

@Suite("Chains of causes, discarding and faults", .timeLimit(.minutes(5)))
struct ChainAndFaultTests {
  private let storage = MemoryStorage()
  private let invoker = ScriptedInvoker()

  private func run(
    retries: Bool = false,
    configuration: DeliveryService.Configuration = .init(),
    _ test: @Sendable (DeliveryBench) async throws -> Void
  ) async throws {
    let bench = DeliveryBench(storage: storage, invoker: invoker, configuration: configuration)
    try bench.service.updateFunctions(["f": .created("things/{id}", retries: retries)])
    try await bench.run(test)
  }

  /// Creates documents, each as if written by the function that the previous one triggered.
  private func chain(_ paths: [String], in bench: DeliveryBench) async throws -> [Delivery] {
    var deliveries: [Delivery] = []
    for path in paths {
      let cause = deliveries.last.map { DeliveryCause(id: $0.id, depth: $0.depth).description }
      let event = try await EventCause.$current.withValue(cause) { try await bench.create(path) }
      try await bench.service.waitUntilStill()
      let id = try #require(DeliveryID("\(event).f"))
      deliveries.append(try await bench.service.administration.show(id))
    }
    return deliveries
  }

  // MARK: Chains

  @Test("What caused what is known, the nearest cause first")
  func causes() async throws {
    try await run { bench in
      let chain = try await chain(["things/a", "things/b", "things/c"], in: bench)
      #expect(chain.map(\.depth) == [0, 1, 2])
      let causes = try await bench.service.administration.causes(of: chain[2])
      #expect(causes.map(\.id) == [chain[1].id, chain[0].id])
      #expect(try await bench.service.administration.causes(of: chain[0]).isEmpty)
      #expect(
        invoker.requests.map { CauseSignature.verified($0.field("x-hearth-cause")) }
          == chain.map { "\($0.id);\($0.depth);" }
      )
    }
  }

  @Test("A function that comes round to one document too often is stopped, and the loop named")
  func loop() async throws {
    let check = LoopCheck(roundsMax: 3, lengthMax: 100)
    try await run(configuration: .init(loopCheck: check)) { bench in
      let chain = try await chain(Array(repeating: "things/a", count: 4), in: bench)
      #expect(chain.map(\.state) == [.succeeded, .succeeded, .succeeded, .dead])
      #expect(chain.last?.attempts == 0)
      #expect(
        chain.last?.lastError?.hasPrefix(
          "Stopped: a loop. f → f has come round 3 times for things/a."
        ) == true
      )
      #expect(invoker.runs.count == 3)
    }
  }

  @Test("A chain over ever new documents is no loop, but ends at its greatest length")
  func length() async throws {
    let check = LoopCheck(roundsMax: 3, lengthMax: 6)
    try await run(configuration: .init(loopCheck: check)) { bench in
      let chain = try await chain((0..<7).map { "things/\($0)" }, in: bench)
      #expect(chain.map(\.state) == Array(repeating: .succeeded, count: 6) + [.dead])
      #expect(chain.last?.lastError?.contains("a chain of 6 events") == true)
      #expect(invoker.runs.count == 6)
    }
  }

  @Test("A loop that was stopped goes on by one more round when somebody retries it")
  func retriedLoop() async throws {
    let check = LoopCheck(roundsMax: 2, lengthMax: 100)
    try await run(configuration: .init(loopCheck: check)) { bench in
      let chain = try await chain(Array(repeating: "things/a", count: 3), in: bench)
      let dead = try #require(chain.last)
      _ = try await bench.service.administration.retry(dead.id)
      try await bench.service.waitUntilIdle()
      #expect(try await bench.service.administration.show(dead.id).state == .succeeded)
      #expect(invoker.runs.count == 3)
    }
  }

  /// Creates documents as if written by the function that another delivery triggered.
  private func spread(
    from cause: Delivery,
    to paths: [String],
    in bench: DeliveryBench
  ) async throws -> [Delivery] {
    let text = DeliveryCause(id: cause.id, depth: cause.depth).description
    var events: [String] = []
    for path in paths {
      events.append(try await EventCause.$current.withValue(text) { try await bench.create(path) })
    }
    try await bench.service.waitUntilStill()
    var deliveries: [Delivery] = []
    for event in events {
      let id = try #require(DeliveryID("\(event).f"))
      deliveries.append(try await bench.service.administration.show(id))
    }
    return deliveries
  }

  @Test("A function that makes itself run for ever more documents is stopped at a number of events")
  func fanOut() async throws {
    try await run(configuration: .init(loopCheck: LoopCheck(spreadMax: 10))) { bench in
      let root = try #require(try await chain(["things/root"], in: bench).first)
      let first = try await spread(from: root, to: (0..<5).map { "things/\($0)" }, in: bench)
      var second: [Delivery] = []
      for (number, delivery) in first.enumerated() {
        let paths = (0..<5).map { "things/\(number)-\($0)" }
        second += try await spread(from: delivery, to: paths, in: bench)
      }

      #expect(first.allSatisfy { $0.state == .succeeded })
      #expect(second.count { $0.state == .succeeded } == 10)
      let dead = second.filter { $0.state == .dead }
      #expect(dead.count == 15 && dead.allSatisfy { $0.attempts == 0 })
      #expect(
        dead.first?.lastError?.hasPrefix(
          "Stopped: a loop that fans out. f → f comes round for ever more documents: event "
            + "\(root.id.eventID) has caused 10 events of f so."
        ) == true
      )
      #expect(bench.service.administration.figures["f"]?.stopped == 15)
      // Another root is counted separately.
      let other = try #require(try await chain(["things/other"], in: bench).first)
      let next = try #require(try await spread(from: other, to: ["things/x"], in: bench).first)
      let last = try await spread(from: next, to: ["things/y"], in: bench)
      #expect(last.first?.state == .succeeded)
    }
  }

  @Test("Many documents of one cause, and what a function then writes to each, are no loop")
  func honestFanOut() async throws {
    try await run(configuration: .init(loopCheck: LoopCheck(spreadMax: 2))) { bench in
      let root = try #require(try await chain(["things/root"], in: bench).first)
      let imported = try await spread(from: root, to: (0..<20).map { "things/\($0)" }, in: bench)
      for delivery in imported {
        let updated = try #require(
          try await spread(from: delivery, to: [delivery.subject], in: bench).first
        )
        let again = try await spread(from: updated, to: [delivery.subject], in: bench)
        #expect(again.first?.state == .succeeded)
        #expect(again.first?.origin?.generation == 1)
      }
      #expect(invoker.runs.count == 61)
    }
  }

  // MARK: Discarding

  @Test("A delivery that waits for a retry is dead once it is discarded, and runs no more")
  func discardWaiting() async throws {
    invoker.set("f") { _ in .failure("no") }
    try await run(retries: true) { bench in
      let id = try #require(try await chain(["things/a"], in: bench).first).id
      try await bench.service.administration.discard(id)
      try await bench.jump(.seconds(10))

      let dead = try await bench.service.administration.show(id)
      #expect(dead.state == .dead && dead.lastError == "Discarded by request.")
      #expect(invoker.runs.count == 1)
      try await bench.service.administration.discard(id)
      let error = await #expect(throws: StatusError.self) {
        try await bench.service.administration.show(id)
      }
      #expect(error?.statusCode == .notFound)
    }
  }

  @Test("One that runs ends as it does, but is not tried again", arguments: [true, false])
  func discardRunning(succeeds: Bool) async throws {
    let (gate, opener) = AsyncStream.makeStream(of: Void.self)
    invoker.set("f") { _ in
      for await _ in gate {}
      return succeeds ? .ok : .failure("no")
    }
    try await run(retries: true) { bench in
      let event = try await bench.create("things/a")
      await invoker.waitForRuns(1)
      let id = try #require(DeliveryID("\(event).f"))
      try await bench.service.administration.discard(id)
      opener.finish()
      try await bench.service.waitUntilIdle()

      #expect(
        try await bench.service.administration.show(id).state == (succeeds ? .succeeded : .dead)
      )
      try await bench.jump(.seconds(10))
      #expect(invoker.runs.count == 1)
    }
  }

  @Test("A failed one is forgotten; one that succeeded and one that never was are refused")
  func discardSettled() async throws {
    invoker.set("f") { $0 == 1 ? .failure("no") : .ok }
    try await run { bench in
      let failed = try #require(try await chain(["things/a"], in: bench).first)
      #expect(failed.state == .failed)
      try await bench.service.administration.discard(failed.id)
      #expect(try await bench.service.administration.list().isEmpty)

      let succeeded = try #require(try await chain(["things/b"], in: bench).first)
      let unknown = DeliveryID(sequence: 99, changeIndex: 0, function: "f")
      for (id, code) in [(succeeded.id, StatusCode.failedPrecondition), (unknown, .notFound)] {
        let error = await #expect(throws: StatusError.self) {
          try await bench.service.administration.discard(id)
        }
        #expect(error?.statusCode == code)
      }
    }
  }

  // MARK: Faults

  @Test("A dropped try does not reach the function; the event comes later, once")
  func drops() async throws {
    try await run { bench in
      bench.service.faults = FaultPlan(seed: 1, drops: 1)
      let dropped = try #require(try await chain(["things/a"], in: bench).first)
      #expect(dropped.state == .pending && dropped.attempts == 0)
      #expect(dropped.lastError?.contains("Dropped on purpose") == true)
      #expect(invoker.runs.isEmpty)
      try await bench.jump(.milliseconds(500))
      #expect(invoker.runs.map(\.attempt) == ["1"])
      #expect(try await bench.service.administration.show(dropped.id).state == .succeeded)
    }
  }

  @Test("A repeated event comes once more after its success")
  func repeats() async throws {
    try await run { bench in
      bench.service.faults = FaultPlan(seed: 1, duplicates: 1, drops: 1)
      let id = try #require(try await chain(["things/a"], in: bench).first).id
      for _ in 0..<5 { try await bench.jump(.milliseconds(500)) }
      #expect(invoker.runs.count == 2)
      #expect(Set(invoker.runs.map(\.event)) == [id.eventID])
      #expect(try await bench.service.administration.show(id).state == .succeeded)

      bench.service.faults = nil
      _ = try await chain(["things/b"], in: bench)
      #expect(invoker.runs.count == 3)
    }
  }

  @Test("Events of one document overtake each other where the plan says so, and else do not")
  func reordering() async throws {
    for reordering in [true, false] {
      let invoker = ScriptedInvoker()
      let bench = DeliveryBench(storage: MemoryStorage(), invoker: invoker)
      bench.service.faults = FaultPlan(seed: 1, reordering: reordering)
      try bench.service.updateFunctions(["f": .created("things/{id}")])
      try await bench.run { bench in
        var events: [String] = []
        for _ in 0..<20 { events.append(try await bench.create("things/a")) }
        try await bench.service.waitUntilStill()
        for _ in 0..<200 { try await bench.jump(.milliseconds(1)) }

        #expect(Set(invoker.runs.map(\.event)) == Set(events))
        #expect((invoker.runs.map(\.event) == events) == !reordering)
      }
    }
  }

  @Test("A plan decides the same for the same seed, otherwise for another, and as often as it says")
  func seeds() {
    let time = Timestamp(microseconds: 0)
    let deliveries = (1...1000 as ClosedRange<UInt64>).map {
      Delivery.sample(sequence: $0, at: time)
    }
    func dropped(_ seed: UInt64, _ part: Double = 0.25) -> [Bool] {
      deliveries.map { FaultPlan(seed: seed, drops: part).drops($0) }
    }
    #expect(dropped(1) == dropped(1))
    #expect(dropped(1) != dropped(2))
    #expect((150...350).contains(dropped(1).count { $0 }))
    #expect(dropped(1, 0).allSatisfy { !$0 } && dropped(1, 1).allSatisfy { $0 })
    let repeats = deliveries.map { FaultPlan(seed: 1, duplicates: 0.25).repeats($0) }
    #expect(repeats != dropped(1))
  }
}
