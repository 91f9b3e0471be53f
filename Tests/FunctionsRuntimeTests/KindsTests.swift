import FunctionsRuntime
import Invocation
import Testing

@Suite("Kinds of functions in the manifest")
struct KindsTests {
  private func endpoint(
    _ function: some CloudFunction,
    defaults: FunctionOptions = FunctionOptions()
  ) throws -> FunctionEndpoint {
    let manifest = try FunctionsApp(defaults: defaults) { function }.manifest()
    return try #require(manifest.endpoints[function.name])
  }

  private func problems(_ function: some CloudFunction) -> [String] {
    do {
      _ = try FunctionsApp { function }.manifest()
      return []
    } catch {
      return error.problems
    }
  }

  private func retrying(_ retry: RetryPolicy?) throws -> FunctionEndpoint.EventTrigger? {
    try endpoint(onDocumentDeleted("f", at: "a/{b}", options: .init(retry: retry)) { _ in })
      .eventTrigger
  }

  @Test("Each kind with auth context has the event type of that name")
  func authContext() throws {
    let created = try endpoint(onDocumentCreatedWithAuthContext("f", at: "a/{b}") { _ in })
    let updated = try endpoint(onDocumentUpdatedWithAuthContext("f", at: "a/{b}") { _ in })
    let deleted = try endpoint(onDocumentDeletedWithAuthContext("f", at: "a/{b}") { _ in })
    let written = try endpoint(
      onDocumentWrittenWithAuthContext("f", at: "a/{b}", as: [String: Value].self) { event in
        switch event.data {
        case .created, .deleted, .updated: _ = event.auth.type
        }
      }
    )

    #expect(
      [created, updated, deleted, written].map { $0.eventTrigger?.eventType }
        == ["created", "updated", "deleted", "written"].map {
          "google.cloud.firestore.document.v1.\($0).withAuthContext"
        }
    )
  }

  @Test("A retry policy is a switch and, beyond true and false, a configuration")
  func retryOfEvents() throws {
    let policy = RetryPolicy(
      attempts: 4,
      window: .seconds(90),
      minBackOff: .milliseconds(500),
      maxBackOff: .seconds(8),
      doublings: 3
    )

    #expect(try retrying(nil)?.retry == false)
    #expect(try retrying(false)?.retry == false)
    #expect(try retrying(true)?.retry == true)
    #expect(try retrying(true)?.retryConfig == nil)
    #expect(try retrying(policy)?.retry == true)
    #expect(
      try retrying(policy)?.retryConfig
        == .init(
          maxAttempts: 4,
          maxRetrySeconds: 90,
          minBackoffSeconds: 0.5,
          maxBackoffSeconds: 8,
          maxDoublings: 3
        )
    )
  }

  @Test("Other services' events have their filters, schedules and tasks their own retries")
  func others() throws {
    let event = try endpoint(
      onCloudEvent("f", type: "t", filters: ["a": "1"], pathPatterns: ["subject": "x/{y}/z"]) { _ in
      }
    )
    let nightly = try endpoint(
      onSchedule(
        "f",
        "0 3 * * *",
        timeZone: "Europe/Berlin",
        options: .init(retry: .init(attempts: 3))
      ) { _ in }
    )
    let plain = try endpoint(onSchedule("f", "every 5 minutes") { _ in })
    let always = try endpoint(
      onSchedule("f", "every 5 minutes") { _ in },
      defaults: .init(retry: true)
    )
    let tasks = try endpoint(
      onTaskDispatched(
        "f",
        Int.self,
        retry: .init(window: .seconds(60)),
        rateLimits: .init(concurrentDispatches: 6, dispatchesPerSecond: 0.5)
      ) { _ in }
    )
    let once = try endpoint(onTaskDispatched("f", Int.self, retry: false) { _ in })
    let usual = try endpoint(onTaskDispatched("f", Int.self) { _ in })
    let typed = try endpoint(onTyped("f", Int.self) { $0.data }, defaults: .init(retry: true))

    #expect(
      event.eventTrigger
        == .init(
          eventType: "t",
          eventFilters: ["a": "1"],
          eventFilterPathPatterns: ["subject": "x/{y}/z"]
        )
    )
    #expect(
      nightly.scheduleTrigger
        == .init(
          schedule: "0 3 * * *",
          timeZone: "Europe/Berlin",
          retryConfig: .init(retryCount: 2)
        )
    )
    #expect(plain.scheduleTrigger == .init(schedule: "every 5 minutes"))
    #expect(always.scheduleTrigger?.retryConfig?.retryCount == 5)
    #expect(
      tasks.taskQueueTrigger
        == .init(
          rateLimits: .init(maxConcurrentDispatches: 6, maxDispatchesPerSecond: 0.5),
          retryConfig: .init(maxAttempts: -1, maxRetrySeconds: 60)
        )
    )
    #expect(once.taskQueueTrigger == .init(retryConfig: .init(maxAttempts: 1)))
    #expect(usual.taskQueueTrigger == .init())
    #expect(typed.httpsTrigger != nil)
  }

  @Test("Mistakes in every kind are told before anything is served")
  func mistakes() {
    let hour = FunctionOptions(timeout: .seconds(1801))
    let wrong = RetryPolicy(
      attempts: 0,
      window: .zero,
      minBackOff: .seconds(2),
      maxBackOff: .seconds(1),
      doublings: -1
    )
    let expected: [([String], Int)] = [
      (problems(onCloudEvent("f", type: "") { _ in }), 1),
      (problems(onCloudEvent("f", type: "t", filters: ["A": "1"]) { _ in }), 1),
      (problems(onCloudEvent("f", type: "t", pathPatterns: ["a": "{b"]) { _ in }), 1),
      (
        problems(
          onCloudEvent("f", type: "t", filters: ["a": "1"], pathPatterns: ["a": "b"]) { _ in }
        ),
        1
      ),
      (problems(onSchedule("f", " ") { _ in }), 1),
      (problems(onSchedule("f", "0 3 * * *", options: hour) { _ in }), 1),
      (
        problems(onSchedule("f", "0 3 * * *", options: .init(retry: .init(attempts: 7))) { _ in }),
        1
      ),
      (problems(onTaskDispatched("f", Int.self, options: hour) { _ in }), 1),
      (problems(onTaskDispatched("f_1", Int.self) { _ in }), 1),
      (
        problems(
          onTaskDispatched(
            "f",
            Int.self,
            rateLimits: .init(concurrentDispatches: 0, dispatchesPerSecond: 0)
          ) { _ in }
        ), 2
      ),
      (problems(onTaskDispatched("f", Int.self, retry: wrong) { _ in }), 4),
      (problems(onTyped("f", Int.self, options: .init(retry: true)) { $0.data }), 1),
    ]
    for (problems, count) in expected {
      #expect(problems.count == count, "\(problems)")
      #expect(problems.allSatisfy { $0.hasPrefix("The function \"f") })
    }
  }
}
