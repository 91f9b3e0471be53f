import FunctionsRuntime
import Manifests
import Testing

@Suite("Kinds of functions in the manifest")
struct KindsTests {
  private func endpoint(
    _ function: some CloudFunction,
    defaults: GlobalOptions = GlobalOptions()
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
    try endpoint(
      OnDocumentDeleted<FirestoreDocument>("f", at: "a/{b}", options: .init(retry: retry)) { _ in }
    )
    .eventTrigger
  }

  @Test("Each kind with auth context has the event type of that name")
  func authContext() throws {
    let created = try endpoint(
      OnDocumentCreated<FirestoreDocument>("f", at: "a/{b}", withAuthContext: true) { _ in }
    )
    let updated = try endpoint(
      OnDocumentUpdated<FirestoreDocument>("f", at: "a/{b}", withAuthContext: true) { _ in }
    )
    let deleted = try endpoint(
      OnDocumentDeleted<FirestoreDocument>("f", at: "a/{b}", withAuthContext: true) { _ in }
    )
    let written = try endpoint(
      OnDocumentWritten<[String: FirestoreValue]>("f", at: "a/{b}", withAuthContext: true) {
        event in
        switch event.data {
        case .created, .deleted, .updated: _ = event.auth?.type
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
      OnCloudEvent<[UInt8]>(
        "f",
        type: "t",
        filters: ["a": "1"],
        pathPatterns: ["subject": "x/{y}/z"]
      ) { _ in
      }
    )
    let nightly = try endpoint(
      OnSchedule(
        "f",
        schedule: "0 3 * * *",
        timeZone: "Europe/Berlin",
        options: .init(retry: .init(attempts: 3))
      ) { _ in }
    )
    let plain = try endpoint(OnSchedule("f", schedule: "every 5 minutes") { _ in })
    let always = try endpoint(
      OnSchedule("f", schedule: "every 5 minutes") { _ in },
      defaults: .init(retry: true)
    )
    let tasks = try endpoint(
      OnTaskDispatched<Int>(
        "f",
        rateLimits: .init(concurrentDispatches: 6, dispatchesPerSecond: 0.5),
        options: .init(retry: .init(window: .seconds(60)))
      ) { _ in }
    )
    let once = try endpoint(OnTaskDispatched<Int>("f", options: .init(retry: false)) { _ in })
    let usual = try endpoint(OnTaskDispatched<Int>("f") { _ in })
    let typed = try endpoint(OnTyped<Int, _>("f") { $0.data }, defaults: .init(retry: true))

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

  @Test("Mistakes in every kind are reported before anything is served")
  func mistakes() {
    let hour = Duration.seconds(1801)
    let wrong = RetryPolicy(
      attempts: 0,
      window: .zero,
      minBackOff: .seconds(2),
      maxBackOff: .seconds(1),
      doublings: -1
    )
    let expected: [([String], Int)] = [
      (problems(OnCloudEvent<[UInt8]>("f", type: "") { _ in }), 1),
      (problems(OnCloudEvent<[UInt8]>("f", type: "t", filters: ["A": "1"]) { _ in }), 1),
      (problems(OnCloudEvent<[UInt8]>("f", type: "t", pathPatterns: ["a": "{b"]) { _ in }), 1),
      (
        problems(
          OnCloudEvent<[UInt8]>("f", type: "t", filters: ["a": "1"], pathPatterns: ["a": "b"]) {
            _ in
          }
        ),
        1
      ),
      (problems(OnSchedule("f", schedule: " ") { _ in }), 1),
      (problems(OnSchedule("f", schedule: "0 3 * * *", options: .init(timeout: hour)) { _ in }), 1),
      (
        problems(
          OnSchedule("f", schedule: "0 3 * * *", options: .init(retry: .init(attempts: 7))) { _ in }
        ),
        1
      ),
      (problems(OnTaskDispatched<Int>("f", options: .init(timeout: hour)) { _ in }), 1),
      (problems(OnTaskDispatched<Int>("f_1") { _ in }), 1),
      (
        problems(
          OnTaskDispatched<Int>(
            "f",
            rateLimits: .init(concurrentDispatches: 0, dispatchesPerSecond: 0)
          ) { _ in }
        ), 2
      ),
      (problems(OnTaskDispatched<Int>("f", options: .init(retry: wrong)) { _ in }), 4),
    ]
    for (problems, count) in expected {
      #expect(problems.count == count, "\(problems)")
      #expect(problems.allSatisfy { $0.hasPrefix("The function \"f") })
    }
  }
}
