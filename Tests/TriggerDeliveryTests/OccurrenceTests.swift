import Invocation
import DocumentModel
import Events
import HTTPTypes
import Manifests
import NIOCore
import StatusCodes
import StorageEngine
import TaskQueueModel
import Testing
import TestSupport
import TriggerDelivery

@Suite("Delivery of events, schedules and what else occurs", .timeLimit(.minutes(5)))
struct OccurrenceTests {
  private let storage = MemoryStorage()
  private let invoker = ScriptedInvoker()

  private func event(_ shop: String = "berlin", subject: String? = "orders/ö 1") -> CloudEvent {
    CloudEvent(
      id: "e1",
      source: "//shop.example",
      type: "placed",
      subject: subject,
      time: "2027-01-15T08:00:00Z",
      dataContentType: "text/plain",
      extensions: ["shop": shop],
      data: [1, 2, 3]
    )
  }

  // MARK: Events

  @Test("A published event reaches each function whose type and filters fit, and no other")
  func published() async throws {
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions([
      "all": .event("placed"), "berlin": .event("placed", ["shop": "berlin"]),
      "order": .event("placed", patterns: ["subject": "orders/{id}"]), "paid": .event("paid"),
      "documents": .created("orders/{id}"),
    ])
    try await bench.run { bench in
      try await bench.service.publish([event(), event("paris", subject: "returns/1")])
      try await bench.service.publish([event(subject: nil)])
      try await bench.service.waitUntilIdle()

      let counts = Dictionary(grouping: invoker.runs, by: \.function).mapValues(\.count)
      #expect(counts == ["all": 3, "berlin": 2, "order": 1])
      let request = try #require(invoker.requests.first { $0.function == "order" })
      #expect(request.head.method == .post && request.head.path == "/")
      #expect(Array(request.wholeBody.readableBytesView) == [1, 2, 3])
      let expected = [
        "ce-specversion": "1.0", "ce-id": "e1", "ce-source": "//shop.example",
        "ce-type": "placed", "ce-subject": "orders/%C3%B6%201",
        "ce-time": "2027-01-15T08:00:00Z", "ce-shop": "berlin", "content-type": "text/plain",
        "x-hearth-attempt": "1",
      ]
      for (name, value) in expected { #expect(request.field(name) == value, "\(name)") }
    }
  }

  @Test("While the functions' events are switched off they pass for good; tasks run all the same")
  func disabled() async throws {
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions([
      "all": .event("placed"), "things": .created("things/{id}"), "queue": .queue(),
    ])
    try await bench.run { bench in
      let before = try await bench.create("things/a")
      try await bench.service.setEnabled(false)
      try await bench.create("things/b")
      try await bench.service.publish([event()])
      _ = try await bench.service.tasks.enqueue(NewTask(id: "t", body: []), in: "queue")
      try await bench.service.waitUntilIdle()
      try await bench.service.setEnabled(true)
      let after = try await bench.create("things/c")
      try await bench.service.waitUntilIdle()

      let things = invoker.runs.filter { $0.function == "things" }.map(\.event)
      #expect(things == [before, after])
      #expect(Set(invoker.runs.map(\.function)) == ["things", "queue"])
    }
  }

  // MARK: Schedules

  @Test("A schedule runs at its times and at no others")
  func ticks() async throws {
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["f": .schedule("0 * * * *")])
    try await bench.run { bench in
      try await bench.jump(.zero)
      try await bench.jump(.seconds(3599))
      #expect(invoker.runs.isEmpty)
      for hour in 1...3 {
        try await bench.jump(.seconds(hour == 1 ? 1 : 3600))
        #expect(invoker.runs.count == hour)
        let request = try #require(invoker.requests.last)
        #expect(request.head.method == .post && request.wholeBody.readableBytes == 0)
        let time = request.field("x-cloudscheduler-scheduletime")
        #expect(time.flatMap { Timestamp($0) } == bench.now)
        #expect(request.field("x-cloudscheduler-jobname") == "firebase-schedule-f-us-central1")
      }
    }
  }

  @Test("What was missed while nothing ran is made up once, for the last of its times")
  func missed() async throws {
    let first = DeliveryBench(storage: storage, invoker: invoker)
    try first.service.updateFunctions(["f": .schedule("0 * * * *")])
    try await first.run { try await $0.jump(.zero) }
    first.clock.advance(by: .seconds(3 * 3600 + 600))

    let second = DeliveryBench(storage: storage, invoker: invoker, clock: first.clock)
    try second.service.updateFunctions(["f": .schedule("0 * * * *")])
    try await second.run { bench in
      try await bench.jump(.zero)
      #expect(invoker.runs.count == 1)
      let time = invoker.requests.first?.field("x-cloudscheduler-scheduletime")
      #expect(time.flatMap { Timestamp($0) } == bench.now.advanced(by: .seconds(-600)))
    }
  }

  @Test("A time that comes while the run before goes on is left out")
  func overlap() async throws {
    let (gate, opener) = AsyncStream.makeStream(of: Void.self)
    invoker.set("f") { run in
      if run == 1 { for await _ in gate {} }
      return .ok
    }
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions(["f": .schedule("0 * * * *")])
    try await bench.run { bench in
      try await bench.jump(.zero)
      bench.clock.advance(by: .seconds(3600))
      bench.service.timeJumped()
      await invoker.waitForRuns(1)
      bench.clock.advance(by: .seconds(3600))
      bench.service.timeJumped()
      // The step that skips the run also stores the next tick.
      await eventually("the next tick is later") {
        bench.service.nextTick.map { $0 > bench.now } ?? true
      }
      opener.finish()
      try await bench.jump(.zero)
      #expect(invoker.runs.count == 1)
      try await bench.jump(.seconds(3600))
      #expect(invoker.runs.count == 2)
    }
  }

  @Test("A scheduled function runs on request; others and unknown ones do not")
  func runNow() async throws {
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions([
      "f": .schedule("0 3 * * *"), "g": .created("things/{id}"),
    ])
    try await bench.run { bench in
      let id = try await bench.service.schedules.runNow("f")
      try await bench.service.waitUntilIdle()
      #expect(try await bench.service.administration.show(id).state == .succeeded)
      for (name, code) in [("g", StatusCode.failedPrecondition), ("h", .notFound)] {
        let error = await #expect(throws: StatusError.self) {
          try await bench.service.schedules.runNow(name)
        }
        #expect(error?.statusCode == code)
      }
      #expect(invoker.runs.map(\.function) == ["f"])
    }
  }

  @Test("A failing run is tried again as often as its schedule says", arguments: [0, 2])
  func retries(count: Int) async throws {
    invoker.set("f") { _ in .failure("no") }
    let bench = DeliveryBench(storage: storage, invoker: invoker)
    try bench.service.updateFunctions([
      "f": .schedule("0 3 * * *", retry: .init(retryCount: count, minBackoffSeconds: 10))
    ])
    try await bench.run { bench in
      let id = try await bench.service.schedules.runNow("f")
      for _ in 0..<5 { try await bench.jump(.seconds(60)) }
      #expect(invoker.runs.count == count + 1)
      #expect(try await bench.service.administration.show(id).state.isSettled)
    }
  }
}
