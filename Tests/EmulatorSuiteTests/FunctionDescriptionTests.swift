import Manifests
import Testing

@testable import EmulatorSuite

@Suite("Function description")
struct FunctionDescriptionTests {
  private func description(
    region: [String] = ["us-central1"],
    _ change: (inout FunctionEndpoint) -> Void
  ) -> FunctionDescription {
    var endpoint = FunctionEndpoint(entryPoint: "f", region: region)
    change(&endpoint)
    return FunctionDescription(
      name: "f",
      endpoint: endpoint,
      project: "demo-test",
      address: ServiceAddress(host: "127.0.0.1", port: 5001)
    )
  }

  @Test("A callable and an HTTP function have the URL that Firebase's clients form")
  func urls() {
    let url = "http://127.0.0.1:5001/demo-test/us-central1/f"
    let callable = FunctionDescription(name: "f", kind: .callable, trigger: nil, url: url)
    #expect(description { $0.callableTrigger = .init() } == callable)
    let http = FunctionDescription(name: "f", kind: .http, trigger: nil, url: url)
    #expect(description { $0.httpsTrigger = .init() } == http)
  }

  @Test("The region is the function's first, or the suite's when it names none")
  func regions() {
    let european = description(region: ["europe-west1", "us-east1"]) {
      $0.callableTrigger = .init()
    }
    #expect(european.url == "http://127.0.0.1:5001/demo-test/europe-west1/f")
    let without = description(region: []) { $0.callableTrigger = .init() }
    #expect(without.url == "http://127.0.0.1:5001/demo-test/us-central1/f")
  }

  @Test(
    "A triggered function shows what fires it and has no URL",
    arguments: [
      ("google.cloud.firestore.document.v1.created", "created chats/{chatId}"),
      ("google.cloud.other.v1.happened", "google.cloud.other.v1.happened chats/{chatId}"),
    ]
  )
  func triggers(type: String, trigger: String) {
    let byPattern = description {
      $0.eventTrigger = .init(
        eventType: type,
        eventFilters: ["database": "(default)"],
        eventFilterPathPatterns: ["document": "chats/{chatId}"]
      )
    }
    #expect(
      byPattern == FunctionDescription(name: "f", kind: .trigger, trigger: trigger, url: nil)
    )
    let exact = description {
      $0.eventTrigger = .init(eventType: type, eventFilters: ["document": "chats/{chatId}"])
    }
    #expect(exact == byPattern)
  }

  @Test("A schedule shows when it runs, a queue its name; both without a URL")
  func schedulesAndTasks() {
    let nightly = description {
      $0.scheduleTrigger = .init(schedule: "0 3 * * *", timeZone: "Europe/Berlin")
    }
    #expect(
      nightly
        == FunctionDescription(
          name: "f",
          kind: .schedule,
          trigger: "0 3 * * * (Europe/Berlin)",
          url: nil
        )
    )
    let queue = description { $0.taskQueueTrigger = .init() }
    #expect(
      queue == FunctionDescription(name: "f", kind: .task, trigger: "tasks of queue f", url: nil)
    )
  }

  @Test("The names of secrets are shown, and nothing else of them")
  func secrets() {
    let secret = description {
      $0.callableTrigger = .init()
      $0.secretEnvironmentVariables = [.init(key: "OPENAI_API_KEY")]
    }
    #expect(secret.secrets == ["OPENAI_API_KEY"])
    #expect(description { $0.callableTrigger = .init() }.secrets == nil)
  }
}
