import Invocation
import DocumentModel
import Events
import HTTPTypes
import Manifests
import NIOCore
import OutboundHTTP
import StatusCodes
import StorageEngine
import TaskQueueModel
import Testing
import TestSupport
import TriggerDelivery

@Suite("Delivery of tasks", .timeLimit(.minutes(5)))
struct TaskDeliveryTests {
  private let storage = MemoryStorage()
  private let invoker = ScriptedInvoker()

  /// Runs a test with a service that has one queue.
  private func run(
    rateLimits: FunctionEndpoint.RateLimits? = nil,
    retry: FunctionEndpoint.RetryConfig? = nil,
    clock: ManualClock = ManualClock(),
    transport: any HTTPTransport = ScriptedHTTP(),
    _ test: @Sendable (DeliveryBench) async throws -> Void
  ) async throws {
    let bench = DeliveryBench(
      storage: storage,
      invoker: invoker,
      transport: transport,
      clock: clock
    )
    try bench.service.updateFunctions([
      "q": .queue(rateLimits, retry: retry), "other": .created("things/{id}"), "web": .web,
    ])
    try await bench.run(test)
  }

  private func task(_ id: String? = nil, at time: Timestamp? = nil) -> NewTask {
    NewTask(id: id, body: Array(#"{"data":1}"#.utf8), headers: ["x-own": "1"], scheduleTime: time)
  }

  @Test("A task runs at its time and not a millisecond before, with every header of Cloud Tasks")
  func delay() async throws {
    try await run { bench in
      let time = bench.now.advanced(by: .seconds(90))
      let queued = try await bench.service.tasks.enqueue(task("t1", at: time), in: "q")
      #expect(queued.id == "t1" && queued.scheduleTime == time)
      try await bench.jump(.milliseconds(89_999))
      #expect(invoker.runs.isEmpty)
      try await bench.jump(.milliseconds(1))

      #expect(invoker.runs.count == 1)
      let request = try #require(invoker.requests.first)
      #expect(request.function == "q" && request.head.method == .post && request.head.path == "/")
      #expect(String(buffer: request.wholeBody) == #"{"data":1}"#)
      #expect(request.timeout == .seconds(60))
      let expected = [
        "content-type": "application/json", "x-own": "1", "x-cloudtasks-queuename": "q",
        "x-cloudtasks-taskname": "t1", "x-cloudtasks-taskretrycount": "0",
        "x-cloudtasks-taskexecutioncount": "0", "x-cloudtasks-tasketa": "1800000090.0",
      ]
      for (name, value) in expected { #expect(request.field(name) == value, "\(name)") }
      #expect(request.field("x-cloudtasks-taskpreviousresponse") == nil)
      #expect(request.field("x-cloudtasks-taskretryreason") == nil)
      #expect(request.field("ce-id") == nil)
    }
  }

  @Test("A task for another function gets there, within the limits of its queue")
  func otherFunction() async throws {
    try await run { bench in
      var task = task("t1")
      task.target = TaskTarget(method: "PUT", place: .function("web", path: "/a?b=c"))
      _ = try await bench.service.tasks.enqueue(task, in: "q")
      try await bench.jump(.zero)

      let request = try #require(invoker.requests.first)
      #expect(request.function == "web")
      #expect(request.head.method == .put && request.head.path == "/a?b=c")
      #expect(request.field("x-cloudtasks-queuename") == "q")
      #expect(try await bench.service.administration.list().map(\.id.function) == ["q"])

      task.id = "t2"
      task.target = TaskTarget(method: "POST", place: .function("other", path: "/"))
      await #expect(throws: StatusError.self) {
        try await bench.service.tasks.enqueue(task, in: "q")
      }
    }
  }

  @Test("A task whose function was removed is retried, like one that received a 404")
  func otherFunctionGone() async throws {
    try await run(retry: .init(maxAttempts: 2, minBackoffSeconds: 5)) { bench in
      var task = task("t1", at: bench.now.advanced(by: .seconds(10)))
      task.target = TaskTarget(method: "POST", place: .function("web", path: "/"))
      _ = try await bench.service.tasks.enqueue(task, in: "q")
      try bench.service.updateFunctions([
        "q": .queue(retry: .init(maxAttempts: 2, minBackoffSeconds: 5))
      ])
      try await bench.jump(.seconds(10))

      let failed = try #require(try await bench.service.administration.list().first)
      #expect(failed.attempts == 1 && failed.lastStatus == 404)
      try bench.service.updateFunctions([
        "q": .queue(retry: .init(maxAttempts: 2, minBackoffSeconds: 5)), "web": .web,
      ])
      try await bench.jump(.seconds(5))
      #expect(invoker.runs.map(\.function) == ["web"])
    }
  }

  @Test("A task for a server of this machine goes there, until it is taken")
  func server() async throws {
    let server = ScriptedHTTP([
      ScriptedHTTP.json("answer 1", status: 500), ScriptedHTTP.json("", status: 204),
    ])
    try await run(retry: .init(minBackoffSeconds: 5), transport: server) { bench in
      var task = task("t1")
      task.target = TaskTarget(method: "POST", place: .url("http://127.0.0.1:8080/hook"))
      _ = try await bench.service.tasks.enqueue(task, in: "q")
      try await bench.jump(.zero)
      let failed = try #require(try await bench.service.administration.list().first)
      #expect(failed.attempts == 1 && failed.lastStatus == 500)
      #expect(failed.lastError?.contains("answer 1") == true)
      try await bench.jump(.seconds(5))

      #expect(invoker.runs.isEmpty)
      let ended = try #require(try await bench.service.administration.list().first)
      #expect(ended.state == .succeeded)
      let requests = server.requests
      #expect(requests.map(\.url) == ["http://127.0.0.1:8080/hook", "http://127.0.0.1:8080/hook"])
      let last = try #require(requests.last)
      #expect(last.method == "POST" && last.body == Array(#"{"data":1}"#.utf8))
      #expect(last.timeout == .seconds(60) && last.redirectsMax == 0)
      let expected = [
        "user-agent": "Google-Cloud-Tasks", "content-type": "application/json", "x-own": "1",
        "x-cloudtasks-queuename": "q", "x-cloudtasks-taskname": "t1",
        "x-cloudtasks-taskretrycount": "1", "x-cloudtasks-taskpreviousresponse": "500",
      ]
      for (name, value) in expected { #expect(last.headers[name] == value, "\(name)") }
      #expect(last.headers["traceparent"] != nil)
      #expect(!last.headers.contains { $0.name.lowercased().hasPrefix("x-hearth-") })
    }
  }

  @Test("A page of tasks ends where their bodies take too much memory, and the next goes on there")
  func pages() async throws {
    try await run { bench in
      let time = bench.now.advanced(by: .seconds(90))
      for number in 10..<22 {
        var task = task("t\(number)", at: time)
        task.body = Array(repeating: 65, count: 1 << 20)
        _ = try await bench.service.tasks.enqueue(task, in: "q")
      }
      let tasks = bench.service.tasks
      var pages: [Int] = []
      var found: [String] = []
      while true {
        let page = try await tasks.tasks(in: "q", after: found.last, limit: 9, withBodies: true)
        #expect(page.tasks.allSatisfy { $0.body.count == 1 << 20 })
        pages.append(page.tasks.count)
        found += page.tasks.map(\.id)
        if !page.hasMore { break }
      }
      #expect(pages == [4, 4, 4])
      #expect(found == (10..<22).map { "t\($0)" })
      let plain = try await tasks.tasks(in: "q", after: nil, limit: 11, withBodies: false)
      #expect(plain.tasks.count == 11 && plain.hasMore && plain.tasks.allSatisfy(\.body.isEmpty))
    }
  }

  @Test("Tasks that wait for a hanging server delay only their own queue")
  func hangingServer() async throws {
    let server = ScriptedHTTP { _ in OutboundResponse(status: 200) }
    server.hold()
    let bench = DeliveryBench(storage: storage, invoker: invoker, transport: server)
    try bench.service.updateFunctions([
      "q": .queue(.init(maxConcurrentDispatches: 1000, maxDispatchesPerSecond: 10_000)),
      "neighbour": .queue(nil),
    ])
    try await bench.run { bench in
      for number in 0..<100 {
        var task = task("t\(number)")
        task.target = TaskTarget(method: "POST", place: .url("http://127.0.0.1:1/hang"))
        _ = try await bench.service.tasks.enqueue(task, in: "q")
      }
      await server.wait(for: 64)
      var task = task("neighbour")
      task.target = TaskTarget(method: "POST", place: .url("http://127.0.0.1:1/ok"))
      _ = try await bench.service.tasks.enqueue(task, in: "neighbour")
      await server.wait(for: 65)
      #expect(server.requests.last?.url == "http://127.0.0.1:1/ok")
      server.release(40)
      await server.wait(for: 101)
      server.release()
      try await bench.service.waitUntilStill()
      #expect(
        try await bench.service.administration.list(limit: 200).count { $0.attempts == 1 } == 101
      )
    }
  }

  @Test(
    "The queue's number of attempts is made, each with the result of the previous one",
    arguments: 1...4
  )
  func attempts(count: Int) async throws {
    invoker.set("q") { _ in .failure("busy") }
    try await run(retry: .init(maxAttempts: count, minBackoffSeconds: 7)) { bench in
      _ = try await bench.service.tasks.enqueue(task("t1"), in: "q")
      for _ in 0..<6 { try await bench.jump(.seconds(600)) }

      #expect(invoker.requests.count == count)
      let last = try #require(invoker.requests.last)
      #expect(last.field("x-cloudtasks-taskretrycount") == "\(count - 1)")
      #expect(last.field("x-cloudtasks-taskpreviousresponse") == (count > 1 ? "500" : nil))
      #expect((last.field("x-cloudtasks-taskretryreason") != nil) == (count > 1))
      let ended = try #require(try await bench.service.administration.list().first)
      #expect(ended.state == (count == 1 ? .failed : .dead) && ended.attempts == count)
      #expect(try await bench.service.tasks.task("t1", in: "q") == nil)
    }
  }

  @Test("The waits between attempts double from the least to the most")
  func backOff() async throws {
    invoker.set("q") { _ in .failure("busy") }
    let retry = FunctionEndpoint.RetryConfig(
      maxAttempts: 5,
      minBackoffSeconds: 10,
      maxBackoffSeconds: 30
    )
    try await run(retry: retry) { bench in
      _ = try await bench.service.tasks.enqueue(task(), in: "q")
      try await bench.jump(.zero)
      for (index, wait) in [10, 20, 30, 30].enumerated() {
        try await bench.jump(.milliseconds(wait * 1000 - 1))
        #expect(invoker.runs.count == index + 1)
        try await bench.jump(.milliseconds(1))
        #expect(invoker.runs.count == index + 2)
      }
    }
  }

  @Test("A name is taken while its task waits and for an hour after it ended")
  func names() async throws {
    try await run { bench in
      let time = bench.now.advanced(by: .seconds(10))
      _ = try await bench.service.tasks.enqueue(task("t1", at: time), in: "q")
      func again() async -> StatusCode? {
        do {
          _ = try await bench.service.tasks.enqueue(task("t1"), in: "q")
          return nil
        } catch {
          return (error as? StatusError)?.statusCode
        }
      }
      #expect(await again() == .alreadyExists)
      try await bench.jump(.seconds(10))
      #expect(await again() == .alreadyExists)
      try await bench.jump(.seconds(3599))
      #expect(await again() == .alreadyExists)
      try await bench.jump(.seconds(1))
      #expect(await again() == nil)
      try await bench.jump(.zero)
      #expect(invoker.runs.count == 2)
    }
  }

  @Test("A dead task is not retried while a later one has its name, which the later one keeps")
  func reusedName() async throws {
    invoker.set("q") { $0 == 1 ? .failure("no") : .ok }
    try await run(retry: .init(maxAttempts: 1)) { bench in
      _ = try await bench.service.tasks.enqueue(task("t1"), in: "q")
      try await bench.jump(.seconds(3600))
      let list = try await bench.service.administration.list()
      let failed = try #require(list.first { $0.state != .succeeded })
      let time = bench.now.advanced(by: .seconds(10))
      _ = try await bench.service.tasks.enqueue(task("t1", at: time), in: "q")

      let error = await #expect(throws: StatusError.self) {
        try await bench.service.administration.retry(failed.id)
      }
      #expect(error?.statusCode == .failedPrecondition)
      #expect(try await bench.service.tasks.task("t1", in: "q")?.scheduleTime == time)
      try await bench.jump(.seconds(10))
      #expect(try await bench.service.administration.retry(failed.id).state == .pending)
    }
  }

  @Test("Of many who take one name at the same time one succeeds")
  func race() async throws {
    try await run { bench in
      let taken = await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<20 {
          group.addTask {
            (try? await bench.service.tasks.enqueue(task("t1"), in: "q")) != nil
          }
        }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      try await bench.service.waitUntilIdle()
      #expect(taken == 1)
      #expect(invoker.runs.count == 1)
    }
  }

  @Test("A deleted task does not run and its name stays taken; one that is gone is reported")
  func deleting() async throws {
    try await run { bench in
      let time = bench.now.advanced(by: .seconds(10))
      _ = try await bench.service.tasks.enqueue(task("t1", at: time), in: "q")
      #expect(try await bench.service.tasks.deleteTask("t1", in: "q"))
      #expect(try await bench.service.tasks.deleteTask("t1", in: "q") == false)
      try await bench.jump(.seconds(10))
      #expect(invoker.runs.isEmpty)
      #expect(try await bench.service.administration.list().isEmpty)
      await #expect(throws: StatusError.self) {
        try await bench.service.tasks.enqueue(task("t1"), in: "q")
      }
    }
  }

  @Test("A task that is deleted while it waits to be tried again leaves no dead event")
  func deletingFailed() async throws {
    invoker.set("q") { _ in .failure("no") }
    try await run { bench in
      _ = try await bench.service.tasks.enqueue(task("t1"), in: "q")
      try await bench.service.waitUntilIdle()
      #expect(try await bench.service.administration.list().map(\.state) == [.pending])
      #expect(try await bench.service.tasks.deleteTask("t1", in: "q"))
      #expect(try await bench.service.administration.list().isEmpty)
    }
  }

  @Test("A paused queue holds its tasks until it is resumed, but one that is asked for runs")
  func pausing() async throws {
    try await run { bench in
      #expect(try await bench.service.tasks.setPaused(true, queue: "q").isPaused)
      for id in ["t1", "t2", "t3"] { _ = try await bench.service.tasks.enqueue(task(id), in: "q") }
      try await bench.create("things/a")
      try await bench.jump(.seconds(600))
      #expect(invoker.runs.map(\.function) == ["other"])

      #expect(try await bench.service.tasks.runTask("t2", in: "q")?.id == "t2")
      await invoker.waitForRuns(2)
      try await bench.jump(.zero)
      #expect(invoker.requests.last?.field("x-cloudtasks-taskname") == "t2")
      #expect(
        try await bench.service.tasks.all(in: "q").map(\.id) == [
          "t1", "t3",
        ]
      )

      #expect(try await bench.service.tasks.setPaused(false, queue: "q").isPaused == false)
      try await bench.service.waitUntilIdle()
      #expect(invoker.runs.count == 4)
    }
  }

  @Test("A task that waits for its time runs at once when asked")
  func runNow() async throws {
    try await run { bench in
      let time = bench.now.advanced(by: .seconds(3600))
      _ = try await bench.service.tasks.enqueue(task("t1", at: time), in: "q")
      _ = try await bench.service.tasks.runTask("t1", in: "q")
      await invoker.waitForRuns(1)
      try await bench.jump(.seconds(3600))
      #expect(invoker.runs.count == 1)
      #expect(try await bench.service.tasks.runTask("t1", in: "q") == nil)
    }
  }

  @Test("A purged queue has no task left, and its statistics say so")
  func purging() async throws {
    try await run { bench in
      let time = bench.now.advanced(by: .seconds(10))
      for _ in 0..<5 { _ = try await bench.service.tasks.enqueue(task(at: time), in: "q") }
      try await bench.service.waitUntilIdle()
      #expect(bench.service.tasks.taskQueueStatistics()["q"]?.tasksCount == 5)
      try await bench.service.tasks.purge("q")
      try await bench.jump(.seconds(10))
      #expect(try await bench.service.administration.list().isEmpty)

      #expect(invoker.runs.isEmpty)
      #expect(bench.service.tasks.taskQueueStatistics()["q"]?.tasksCount == 0)
      #expect(try await bench.service.tasks.all(in: "q").isEmpty)
    }
  }

  @Test("Tasks, their times and paused queues survive a restart")
  func restart() async throws {
    let clock = ManualClock()
    try await run(clock: clock) { bench in
      let time = bench.now.advanced(by: .seconds(100))
      for id in ["t1", "t2"] {
        _ = try await bench.service.tasks.enqueue(task(id, at: time), in: "q")
      }
      _ = try await bench.service.tasks.setPaused(true, queue: "q")
      try await bench.service.waitUntilIdle()
    }
    try await run(clock: clock) { bench in
      try await bench.jump(.seconds(200))
      #expect(invoker.runs.isEmpty)
      #expect(try await bench.service.tasks.all(in: "q").count == 2)
      await #expect(throws: StatusError.self) {
        try await bench.service.tasks.enqueue(task("t1"), in: "q")
      }
      _ = try await bench.service.tasks.setPaused(false, queue: "q")
      try await bench.service.waitUntilIdle()
      let names = invoker.requests.map { $0.field("x-cloudtasks-taskname") }
      #expect(Set(names) == ["t1", "t2"] && names.count == 2)
      #expect(invoker.requests.first?.field("x-cloudtasks-tasketa") == "1800000100.0")
    }
  }

  @Test("A rate lets one task start in each of its intervals")
  func rate() async throws {
    try await run(rateLimits: .init(maxDispatchesPerSecond: 0.5)) { bench in
      for _ in 0..<4 { _ = try await bench.service.tasks.enqueue(task(), in: "q") }
      for count in 1...4 {
        try await bench.service.waitUntilStill()
        #expect(invoker.runs.count == count)
        try await bench.jump(.milliseconds(2001))
      }
    }
  }

  @Test("No more tasks run at once than the queue allows")
  func concurrency() async throws {
    let (gate, opener) = AsyncStream.makeStream(of: Void.self)
    invoker.set("q") { run in
      if run == 1 { for await _ in gate {} }
      return .ok
    }
    try await run(rateLimits: .init(maxConcurrentDispatches: 1)) { bench in
      for _ in 0..<5 { _ = try await bench.service.tasks.enqueue(task(), in: "q") }
      await invoker.waitForRuns(1)
      opener.finish()
      try await bench.service.waitUntilIdle()
      #expect(invoker.runs.count == 5 && invoker.runningMax == 1)
    }
  }

  @Test("Only functions of tasks have a queue")
  func unknown() async throws {
    try await run { bench in
      #expect(bench.service.tasks.queues().map(\.id) == ["q"])
      for name in ["other", "nothing"] {
        let error = await #expect(throws: StatusError.self) {
          try await bench.service.tasks.enqueue(task(), in: name)
        }
        #expect(error?.statusCode == .notFound)
      }
    }
  }
}
