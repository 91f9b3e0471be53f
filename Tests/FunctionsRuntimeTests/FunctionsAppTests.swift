import Events
import FunctionsRuntime
import Identity
import Invocation
import Testing

@Suite("Functions app")
struct FunctionsAppTests {
  private func problems(_ app: FunctionsApp) -> [String] {
    do {
      _ = try app.manifest()
      return []
    } catch {
      return error.problems
    }
  }

  private func problems(of options: FunctionOptions) -> [String] {
    problems(FunctionsApp { onCall("f", Value.self, options: options) { _ in } })
  }

  @Test("The manifest has every function with its options, defaults and trigger")
  func manifest() throws {
    let isOn = true
    let app = FunctionsApp(
      defaults: .init(region: "europe-west1", memory: .mib512, retry: true, secrets: ["KEY"])
    ) {
      onCall("call", Value.self, options: .init(region: "us-east4", timeout: .milliseconds(90_500)))
      {
        _ in
      }
      if isOn {
        onDocumentCreated("created", at: "/chats/{chatId}/", options: .init(concurrency: 1)) { _ in
        }
      } else {
        onDocumentCreated("off", at: "chats/{chatId}") { _ in }
      }
      for number in 1...2 {
        onDocumentWritten("written\(number)", at: "chats/c\(number)", options: .init(retry: false))
        {
          _ in
        }
      }
    }
    let manifest = try app.manifest()

    #expect(manifest.endpoints.keys.sorted() == ["call", "created", "written1", "written2"])
    let call = try #require(manifest.endpoints["call"])
    #expect(call.entryPoint == "call")
    #expect(call.region == ["us-east4"])
    #expect(call.timeoutSeconds == 91)
    #expect(call.availableMemoryMb == 512)
    #expect(call.secretEnvironmentVariables == [.init(key: "KEY")])
    #expect(call.callableTrigger != nil)
    #expect(call.eventTrigger == nil)
    let created = try #require(manifest.endpoints["created"])
    #expect(created.region == ["europe-west1"])
    #expect(created.concurrency == 1)
    #expect(
      created.eventTrigger
        == .init(
          eventType: "google.cloud.firestore.document.v1.created",
          eventFilters: ["database": "(default)", "namespace": "(default)"],
          eventFilterPathPatterns: ["document": "/chats/{chatId}/"],
          retry: true
        )
    )
    #expect(
      manifest.endpoints["written2"]?.eventTrigger
        == .init(
          eventType: "google.cloud.firestore.document.v1.written",
          eventFilters: [
            "database": "(default)", "namespace": "(default)", "document": "chats/c2",
          ],
          retry: false
        )
    )
  }

  @Test("Names follow Cloud Functions' rule", arguments: ["a", "aB-9_z"])
  func goodNames(name: String) {
    #expect(problems(FunctionsApp { onCall(name, Value.self) { _ in } }) == [])
  }

  @Test(
    "Bad names are refused with the rule",
    arguments: ["", "1a", "_a", "a.b", "a b", "ä", String(repeating: "a", count: 64)]
  )
  func badNames(name: String) {
    let problems = problems(FunctionsApp { onCall(name, Value.self) { _ in } })

    #expect(problems.count == 1)
    #expect(problems.first?.contains("must start with a letter") == true)
  }

  @Test("All problems are told at once: equal names, bad patterns, no functions")
  func allProblems() {
    let app = FunctionsApp {
      onCall("twice", Value.self) { _ in }
      onDocumentCreated("twice", at: "chats/{id}") { _ in }
      onCall("twice", Value.self) { _ in }
      onDocumentCreated("collection", at: "chats/{chatId}/messages") { _ in }
      onDocumentCreated("brace", at: "chats/{chatId") { _ in }
    }
    let problems = problems(app)

    #expect(problems.count == 3)
    #expect(problems.first == "Two functions are named \"twice\"; give each a name of its own.")
    #expect(problems.dropFirst().first?.hasPrefix("The function \"collection\" cannot be") == true)
    #expect(problems.last?.contains("{chatId") == true)
    #expect(self.problems(FunctionsApp {}).count == 1)
  }

  @Test(
    "Options out of their ranges are refused",
    arguments: [
      .init(region: "Europe"), .init(region: "us"), .init(timeout: .zero),
      .init(timeout: .seconds(3601)), .init(concurrency: 0), .init(concurrency: 1001),
      .init(minInstances: -1), .init(maxInstances: 0), .init(minInstances: 3, maxInstances: 2),
      .init(retry: true), .init(secrets: ["lower"]), .init(secrets: ["FIREBASE_X"]),
      .init(secrets: [""]), .init(secrets: ["1A"]),
    ] as [FunctionOptions]
  )
  func badOptions(options: FunctionOptions) {
    #expect(problems(of: options).count == 1, "\(problems(of: options))")
  }

  @Test(
    "Options at the ends of their ranges are accepted",
    arguments: [
      .init(region: "northamerica-northeast1"), .init(timeout: .seconds(3600)),
      .init(timeout: .milliseconds(1)), .init(concurrency: 1), .init(concurrency: 1000),
      .init(minInstances: 2, maxInstances: 2), .init(secrets: ["A_1", "OPENAI_API_KEY"]),
    ] as [FunctionOptions]
  )
  func goodOptions(options: FunctionOptions) {
    #expect(problems(of: options) == [])
  }

  @Test("Events end sooner than callables may")
  func eventTimeout() {
    func app(_ seconds: Int) -> FunctionsApp {
      FunctionsApp {
        onDocumentCreated("f", at: "a/{b}", options: .init(timeout: .seconds(seconds))) { _ in }
      }
    }

    #expect(problems(app(540)) == [])
    #expect(problems(app(541)).count == 1)
  }

  @Test("A target that no function has is refused with the names there are")
  func unknownTarget() {
    let app = FunctionsApp {
      onCall("a", Value.self) { _ in }
      onCall("b", Value.self) { _ in }
    }
    let error = #expect(throws: InvalidFunctions.self) {
      try FunctionHost(app: app, target: "c", credentials: CredentialReader(mode: .emulator))
    }
    #expect(error?.description.contains("There are: a, b.") == true)
  }
}
