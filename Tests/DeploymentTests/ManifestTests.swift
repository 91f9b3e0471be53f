import Manifests
import Testing

@testable import Deployment

@Suite("Manifest check")
struct ManifestCheckTests {
  private func endpoint(_ change: (inout FunctionEndpoint) -> Void = { _ in }) -> FunctionEndpoint {
    var endpoint = FunctionEndpoint(entryPoint: "f")
    endpoint.callableTrigger = FunctionEndpoint.CallableTrigger()
    change(&endpoint)
    return endpoint
  }

  private func trigger(type: String, document: String) -> FunctionEndpoint {
    endpoint {
      $0.callableTrigger = nil
      $0.eventTrigger = FunctionEndpoint.EventTrigger(
        eventType: type,
        eventFilters: [:],
        eventFilterPathPatterns: ["document": document]
      )
    }
  }

  private func schedule(_ text: String, _ timeZone: String? = nil) -> FunctionEndpoint {
    endpoint {
      $0.callableTrigger = nil
      $0.scheduleTrigger = FunctionEndpoint.ScheduleTrigger(schedule: text, timeZone: timeZone)
    }
  }

  private let created = "google.cloud.firestore.document.v1.created"

  @Test("minInstances beyond the places is refused in words, of one function and of all together")
  func instancesKept() throws {
    func refusal(_ counts: [String: Int]) -> String? {
      let endpoints = counts.mapValues { count in endpoint { $0.minInstances = count } }
      do {
        try ManifestCheck.validate(FunctionManifest(endpoints: endpoints))
        return nil
      } catch {
        return "\(error)"
      }
    }
    let rule = "of this server's 200 worker places, minInstances can keep 100 in all."

    #expect(refusal(["a": 50, "b": 50, "c": 0]) == nil)
    #expect(refusal(["a": 101]) == "Function a has a minInstances of 101; \(rule) Lower it.")
    #expect(
      refusal(["a": 40, "b": 61])
        == "The functions have a minInstances of 101 together (b 61, a 40); \(rule) Lower some."
    )
  }

  @Test("Sound functions are taken")
  func sound() throws {
    try ManifestCheck.validate(
      FunctionManifest(endpoints: [
        "call": endpoint(), "fire": trigger(type: created, document: "a/{b}"),
        "nightly": schedule("0 3 * * *", "Europe/Berlin"), "often": schedule("every 5 minutes"),
        "other": trigger(type: "some.type", document: "one"),
      ])
    )
  }

  @Test("What cannot be served is refused, and the function is named")
  func unsound() {
    let long = String(repeating: "a", count: 10_000)
    let cases: [(String, FunctionEndpoint, String)] = [
      ("1f", endpoint(), "\"1f\" is not a valid name"),
      ("two", endpoint { $0.httpsTrigger = FunctionEndpoint.HTTPSTrigger() }, "two has 2 triggers"),
      ("none", endpoint { $0.callableTrigger = nil }, "none has 0 triggers"),
      ("long", endpoint { $0.timeoutSeconds = 4_000 }, "long has a timeout of 4000 s"),
      ("wide", endpoint { $0.concurrency = 0 }, "wide has a concurrency of 0"),
      ("big", endpoint { $0.availableMemoryMb = 1 << 40 }, "big has a memory of"),
      ("few", endpoint { $0.minInstances = -1 }, "few has a minInstances of -1; give 0 to 1000."),
      ("many", endpoint { $0.maxInstances = .max }, "many has a maxInstances of \(Int.max);"),
      (
        "odd",
        endpoint {
          $0.minInstances = 3
          $0.maxInstances = 2
        },
        "odd has more minInstances (3) than maxInstances (2)"
      ),
      ("path", trigger(type: created, document: "a/{b"), "path: "),
      ("never", schedule("0 0 30 2 *"), "never: The schedule \"0 0 30 2 *\" never runs"),
      ("zone", schedule("@daily", "Mars"), "zone: There is no time zone \"Mars\""),
      ("nowhere", endpoint { $0.region = [""] }, "nowhere has the region \"\""),
      ("split", endpoint { $0.region = ["eu/west1"] }, "split has the region \"eu/west1\""),
      (
        "global",
        endpoint { $0.region = Array(repeating: "eu1", count: 101) },
        "global has 101 regions; give at most 100."
      ),
      (
        "secret",
        endpoint { $0.secretEnvironmentVariables = [.init(key: "A=B")] },
        "secret has the secret \"A=B\""
      ),
      ("wordy", endpoint { $0.entryPoint = long }, "wordy has a text of 10000 bytes"),
      ("path", trigger(type: created, document: long), "path has a text of 10000 bytes"),
      ("zone", schedule("@daily", long), "zone has a text of 10000 bytes"),
      ("event", trigger(type: "", document: "a/b"), "event has the event type \"\""),
      ("event", trigger(type: "a b", document: "a/b"), "event has the event type \"a b\""),
      ("other", trigger(type: "some.type", document: "a/{b"), "other: The pattern \"a/{b\""),
      (
        "value",
        trigger(type: "google.firebase.database.ref.v1.written", document: "a/b"),
        "value: The pattern \"\" is empty"
      ),
      (long, endpoint(), "\"aaa"),
    ]
    for (name, endpoint, problem) in cases {
      let error = #expect(throws: DeploymentError.self) {
        try ManifestCheck.validate(FunctionManifest(endpoints: [name: endpoint]))
      }
      #expect(error?.message.contains(problem) == true, "\(error?.message ?? "")")
      #expect(error?.message.utf8.count ?? 0 < 1000)
    }
  }

  @Test("Five thousand functions are a deployment, and one more is none")
  func functionsMax() throws {
    var functions: [String: FunctionEndpoint] = [:]
    for number in 1...5000 { functions["f\(number)"] = schedule("every 5 minutes") }
    try ManifestCheck.validate(functions)

    functions["further"] = endpoint()
    let error = #expect(throws: DeploymentError.self) { try ManifestCheck.validate(functions) }
    #expect(error?.message == "There are 5001 functions; a deployment has at most 5000.")
  }

  @Test("The capacity of a function is a number, whatever its options say")
  func capacity() {
    let huge = endpoint {
      $0.concurrency = .max
      $0.maxInstances = .max
    }
    #expect(huge.capacity == .max)
    #expect(endpoint { $0.concurrency = 3 }.capacity == 12)
  }

  @Test(
    "Retry policies and rates out of range are refused, and the option is named",
    arguments: [
      (FunctionEndpoint.RetryConfig(minBackoffSeconds: 1e300), "minBackoffSeconds of 1e+300"),
      (.init(maxBackoffSeconds: -1), "maxBackoffSeconds of -1.0"),
      (.init(maxRetrySeconds: .infinity), "maxRetrySeconds of inf"),
      (.init(maxRetrySeconds: .nan), "maxRetrySeconds of nan"),
      (.init(retryCount: 6), "retryCount of 6; give 0 to 5."),
      (.init(maxAttempts: 0), "maxAttempts of 0"), (.init(maxDoublings: -1), "maxDoublings of -1"),
    ]
  )
  func retryRanges(config: FunctionEndpoint.RetryConfig, problem: String) {
    let endpoint = endpoint {
      $0.callableTrigger = nil
      $0.taskQueueTrigger = FunctionEndpoint.TaskQueueTrigger(retryConfig: config)
    }
    let error = #expect(throws: DeploymentError.self) {
      try ManifestCheck.validate(FunctionManifest(endpoints: ["f": endpoint]))
    }
    #expect(error?.message.contains("Function f has a \(problem)") == true)
  }

  @Test(
    "A queue without a rate, or with one that is no number, is refused",
    arguments: [0, .nan, 501]
  )
  func rates(rate: Double) {
    let endpoint = endpoint {
      $0.callableTrigger = nil
      $0.taskQueueTrigger = .init(rateLimits: .init(maxDispatchesPerSecond: rate))
    }
    let error = #expect(throws: DeploymentError.self) {
      try ManifestCheck.validate(["f": endpoint])
    }
    #expect(error?.message.hasPrefix("Function f has a maxDispatchesPerSecond of \(rate);") == true)
  }

  @Test("All options out of range are named at once")
  func severalProblems() {
    let endpoint = endpoint {
      $0.timeoutSeconds = 0
      $0.concurrency = 2000
    }
    let error = #expect(throws: DeploymentError.self) {
      try ManifestCheck.validate(FunctionManifest(endpoints: ["f": endpoint]))
    }
    #expect(error?.message.split(separator: "\n").count == 2)
  }

  @Test("A manifest of another form is refused")
  func otherForm() {
    var manifest = FunctionManifest(endpoints: ["f": endpoint()])
    manifest.specVersion = "v2"

    #expect(throws: DeploymentError.self) { try ManifestCheck.validate(manifest) }
  }
}
