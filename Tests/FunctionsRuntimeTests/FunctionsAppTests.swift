import Manifests
import Events
import FunctionsRuntime
import Identity
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

  private func problems(of options: CallableOptions) -> [String] {
    problems(FunctionsApp { OnCall<FirestoreValue, _>("f", options: options) { _ in } })
  }

  @Test("A typed path is deployed as its pattern, and one that lacks a property is refused")
  func typedPaths() throws {
    struct ChatPath: DocumentPath {
      var chatID = ""
      static let pattern: Pattern = "chats/\(\.chatID)"
    }
    struct LongPath: DocumentPath {
      var chatID = ""
      var messageID = ""
      static let pattern: Pattern = "chats/\(\.chatID)"
    }
    struct CollectionPath: DocumentPath {
      var chatID = ""
      static let pattern: Pattern = "chats/\(\.chatID)/messages"
    }
    struct PartialPath: DocumentPath {
      var chatID = ""
      static let pattern: Pattern = "chats/chat-\(\.chatID)"
    }
    func app(_ path: (some DocumentPath).Type) -> FunctionsApp {
      FunctionsApp { OnDocumentCreated<FirestoreDocument>("f", path: path) { _, _ in } }
    }
    let trigger = try #require(app(ChatPath.self).functions.first?.trigger)
    #expect(trigger == .document(DocumentEventType(.created), pattern: "chats/{chatID}"))
    #expect(problems(app(ChatPath.self)) == [])
    #expect(
      problems(app(LongPath.self)) == [
        "The function \"f\" cannot be triggered. LongPath has the property 'messageID', which its "
          + "pattern \"chats/{chatID}\" lacks; add it, as in users/\\(\\.userID), or compute it."
      ]
    )
    #expect(problems(app(CollectionPath.self)).first?.contains("names a collection") == true)
    #expect(problems(app(PartialPath.self)).first?.contains("malformed segment") == true)
  }

  @Test("The manifest has every function with its options, defaults and trigger")
  func manifest() throws {
    let isOn = true
    let app = FunctionsApp(
      defaults: .init(region: "europe-west1", memory: .mib512, secrets: ["KEY"], retry: true)
    ) {
      OnCall<FirestoreValue, _>(
        "call",
        options: .init(region: "us-east4", timeout: .milliseconds(90_500))
      ) {
        _ in
      }
      if isOn {
        OnDocumentCreated<FirestoreDocument>(
          "created",
          at: "/chats/{chatId}/",
          options: .init(concurrency: 1)
        ) { _ in
        }
      } else {
        OnDocumentCreated<FirestoreDocument>("off", at: "chats/{chatId}") { _ in }
      }
      for number in 1...2 {
        OnDocumentWritten<FirestoreDocument>(
          "written\(number)",
          at: "chats/c\(number)",
          options: .init(retry: false)
        ) {
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
    #expect(problems(FunctionsApp { OnCall<FirestoreValue, _>(name) { _ in } }) == [])
  }

  @Test(
    "Bad names are refused with the rule",
    arguments: ["", "1a", "_a", "a.b", "a b", "ä", String(repeating: "a", count: 64)]
  )
  func badNames(name: String) {
    let problems = problems(FunctionsApp { OnCall<FirestoreValue, _>(name) { _ in } })

    #expect(problems.count == 1)
    #expect(problems.first?.contains("must start with a letter") == true)
  }

  @Test("All problems are reported at once: equal names, bad patterns, no functions")
  func allProblems() {
    let app = FunctionsApp {
      OnCall<FirestoreValue, _>("twice") { _ in }
      OnDocumentCreated<FirestoreDocument>("twice", at: "chats/{id}") { _ in }
      OnCall<FirestoreValue, _>("twice") { _ in }
      OnDocumentCreated<FirestoreDocument>("collection", at: "chats/{chatId}/messages") { _ in }
      OnDocumentCreated<FirestoreDocument>("brace", at: "chats/{chatId") { _ in }
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
      .init(secrets: ["lower"]), .init(secrets: ["FIREBASE_X"]),
      .init(secrets: [""]), .init(secrets: ["1A"]),
    ] as [CallableOptions]
  )
  func badOptions(options: CallableOptions) {
    #expect(problems(of: options).count == 1, "\(problems(of: options))")
  }

  @Test(
    "Options at the ends of their ranges are accepted",
    arguments: [
      .init(region: "northamerica-northeast1"), .init(timeout: .seconds(3600)),
      .init(timeout: .milliseconds(1)), .init(concurrency: 1), .init(concurrency: 1000),
      .init(minInstances: 2, maxInstances: 2), .init(secrets: ["A_1", "OPENAI_API_KEY"]),
    ] as [CallableOptions]
  )
  func goodOptions(options: CallableOptions) {
    #expect(problems(of: options) == [])
  }

  @Test("Each kind takes those of the app's defaults that it has an option for")
  func defaults() {
    let app = FunctionsApp(
      defaults: .init(retry: true, dates: .rfc3339, cors: .none, enforceAppCheck: true)
    ) {
      OnCall<FirestoreValue, _>("call") { _ in }
      OnRequest("request") { _ in .text("") }
      OnTyped<FirestoreValue, _>("typed") { $0.data }
      OnDocumentCreated<FirestoreDocument>("created", at: "a/{b}") { _ in }
      OnSchedule("nightly", schedule: "0 3 * * *") { _ in }
      OnCloudEvent<[UInt8]>("event", type: "t") { _ in }
      OnTaskDispatched<Int>("task") { _ in }
    }
    let options = Dictionary(uniqueKeysWithValues: app.functions.map { ($0.name, $0.options) })

    #expect(
      options == [
        "call": .init(dates: .rfc3339, cors: CORSOrigins.none, enforceAppCheck: true),
        "request": .init(cors: CORSOrigins.none), "typed": .init(dates: .rfc3339),
        "created": .init(retry: true), "nightly": .init(retry: true),
        "event": .init(retry: true, dates: .rfc3339), "task": .init(retry: true, dates: .rfc3339),
      ]
    )
  }

  @Test("Events end sooner than callables may")
  func eventTimeout() {
    func app(_ seconds: Int) -> FunctionsApp {
      FunctionsApp {
        OnDocumentCreated<FirestoreDocument>(
          "f",
          at: "a/{b}",
          options: .init(timeout: .seconds(seconds))
        ) { _ in }
      }
    }

    #expect(problems(app(540)) == [])
    #expect(problems(app(541)).count == 1)
  }

  @Test("A target that no function has is refused with the names there are")
  func unknownTarget() {
    let app = FunctionsApp {
      OnCall<FirestoreValue, _>("a") { _ in }
      OnCall<FirestoreValue, _>("b") { _ in }
    }
    let error = #expect(throws: InvalidFunctionsError.self) {
      try FunctionHost(app: app, target: "c", credentials: CredentialReader(mode: .emulator))
    }
    #expect(error?.description.contains("There are: a, b.") == true)
  }
}
