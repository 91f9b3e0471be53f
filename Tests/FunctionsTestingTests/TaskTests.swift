import FunctionsRuntime
import FunctionsTesting
import Testing

@Suite("Tasks in a suite")
struct TaskTests {
  private static let start = Timestamp(microseconds: 1_767_225_600_000_000)

  struct Job: Codable, Sendable, Equatable {
    var number: Int
  }

  /// Creates a function that logs its task and the time.
  private func work(
    _ environment: TestEnvironment,
    failing: Bool = false,
    retry: RetryPolicy? = nil,
    rateLimits: TaskRateLimits = TaskRateLimits()
  ) -> OnTaskDispatched<Job> {
    .init("work", rateLimits: rateLimits, options: .init(retry: retry)) { request in
      let seconds = (environment.now.microseconds - Self.start.microseconds) / 1_000_000
      request.logger.info(
        "\(request.data.number) at \(seconds)",
        metadata: ["task": "\(request.taskName)", "retries": "\(request.retryCount)"]
      )
      if failing { throw Sample.Broken() }
    }
  }

  /// Runs a test with the function.
  private func run(
    failing: Bool = false,
    retry: RetryPolicy? = nil,
    rateLimits: TaskRateLimits = TaskRateLimits(),
    faults: DeliveryFaults? = nil,
    _ test: (FunctionsSuite, OnTaskDispatched<Job>) async throws -> Void
  ) async throws {
    try await withFunctions(Self.app, startTime: Self.start, deliveryFaults: faults) {
      environment in
      work(environment, failing: failing, retry: retry, rateLimits: rateLimits)
    } test: { suite, work in
      try await test(suite, work)
    }
  }

  /// An app with a trigger that fills a queue and the function that processes the queue.
  private static func app(_ work: OnTaskDispatched<Job>) -> FunctionsApp {
    FunctionsApp {
      work
      OnDocumentCreated<FirestoreDocument>("order", at: "orders/{n}") { event in
        try await work.enqueue(
          Job(number: Int(event.params.n) ?? 0),
          id: "order-\(event.params.n)",
          after: .seconds(60)
        )
      }
    }
  }

  @Test("A test enqueues as a function does, and settling jumps to the task's time")
  func delayed() async throws {
    try await run { suite, work in
      try await work.enqueue(Job(number: 1), id: "first", after: .seconds(3600))
      try await suite.clock.advance(by: .seconds(3599))
      #expect(suite.runs.isEmpty)
      let waiting = try #require(try await suite.deliveries().first)
      #expect(waiting.state == .pending && waiting.kind == "task" && waiting.document == "first")
      #expect(waiting.dueTime.microseconds == Self.start.microseconds + 3_600_000_000)
      try await suite.settle()

      #expect(suite.logs.map(\.message) == ["1 at 3600"])
      #expect(suite.logs.first?.metadata == ["task": "first", "retries": "0"])
    }
  }

  @Test(
    "What a function enqueues runs at its time, also under faults",
    arguments: [nil, DeliveryFaults.inOrder, DeliveryFaults(seed: 4)]
  )
  func withinFunction(faults: DeliveryFaults?) async throws {
    try await run(faults: faults) { suite, work in
      for number in 1...3 {
        try await suite.firestore.document("orders/\(number)").set([:])
      }
      try await suite.settle()

      let lines = suite.logs(of: work).map(\.message)
      // Duplicates of the trigger add no task, because the task has a name. Duplicates of the task
      // add runs.
      guard faults?.duplicates == true else {
        #expect(lines.sorted() == ["1 at 60", "2 at 60", "3 at 60"])
        return
      }
      #expect(Set(lines.compactMap(\.first)) == ["1", "2", "3"])
      #expect((6...9).contains(lines.count))
    }
  }

  @Test("A name is taken while its task waits and for an hour after it ended, then free again")
  func names() async throws {
    try await run { suite, work in
      try await work.enqueue(Job(number: 1), id: "once", after: .seconds(10))
      func again() async -> StatusCode? {
        do {
          try await work.enqueue(Job(number: 2), id: "once")
          return nil
        } catch {
          return (error as? TaskQueueError)?.code
        }
      }
      #expect(await again() == .alreadyExists)
      try await suite.settle()
      #expect(await again() == .alreadyExists)
      try await suite.clock.advance(by: .seconds(3599))
      #expect(await again() == .alreadyExists)
      try await suite.clock.advance(by: .seconds(2))
      #expect(await again() == nil)
      try await suite.settle()
      #expect(suite.runCount(of: work) == 2)
    }
  }

  @Test("Three attempts are three unless the function says otherwise", arguments: [nil, 1, 5])
  func attempts(count: Int?) async throws {
    let retry = count.map { RetryPolicy(attempts: $0, minBackOff: .seconds(7)) }
    try await run(failing: true, retry: retry) { suite, work in
      try await work.enqueue(Job(number: 1))
      try await suite.settle()

      #expect(suite.runCount(of: work) == count ?? 3)
      let ended = try #require(try await suite.deliveries().first)
      #expect(ended.state == (count == 1 ? .failed : .dead))
      #expect(
        suite.logs.filter { $0.message.hasPrefix("1 at") }.compactMap { $0.metadata["retries"] }
          == (0..<(count ?? 3)).map(String.init)
      )
    }
  }

  @Test("A rate of one in ten seconds gives a task every ten seconds of the suite's time")
  func rate() async throws {
    try await run(rateLimits: .init(dispatchesPerSecond: 0.1)) { suite, work in
      for number in 0..<10 { try await work.enqueue(Job(number: number)) }
      try await suite.clock.advance(by: .seconds(45))
      #expect(suite.runCount(of: work) == 5)
      try await suite.settle()

      let times = suite.logs.compactMap { $0.message.split(separator: " ").last }
      #expect(times == (0..<10).map { "\($0 * 10)" })
    }
  }

  @Test("A task that is deleted does not run, and one that is not there is no error")
  func deleted() async throws {
    try await run { suite, work in
      try await work.enqueue(Job(number: 1), id: "gone", after: .seconds(10))
      try await work.delete(id: "gone")
      try await work.delete(id: "never")
      try await suite.settle()
      #expect(suite.runs.isEmpty)
      #expect(try await suite.deliveries().isEmpty)
    }
  }

  @Test("A task of more than thirty days from now is refused, as by Cloud Tasks")
  func tooLate() async throws {
    try await run { suite, work in
      let error = await #expect(throws: TaskQueueError.self) {
        try await work.enqueue(Job(number: 1), after: .seconds(30 * 86_400 + 1))
      }
      #expect(error?.code == .invalidArgument)
      #expect(error?.message.contains("30 days") == true)
      try await work.enqueue(Job(number: 2), after: .seconds(30 * 86_400))
    }
  }

  @Test("A queue that the suite does not have refuses the task")
  func noQueue() async throws {
    try await withFunctions(Sample.greet) { _ in
      let other = OnTaskDispatched<Job>("other") { _ in }
      let error = await #expect(throws: TaskQueueError.self) {
        try await other.enqueue(Job(number: 1))
      }
      #expect(error?.code == .notFound)
    }
  }
}
