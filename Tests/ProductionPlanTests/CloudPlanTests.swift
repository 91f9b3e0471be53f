import Manifests
import Testing

@testable import ProductionPlan

/// Returns a function with a trigger and options.
func function(_ change: (inout FunctionEndpoint) -> Void) -> FunctionEndpoint {
  var endpoint = FunctionEndpoint(entryPoint: "f")
  change(&endpoint)
  return endpoint
}

/// Returns a callable with options.
func callable(_ change: (inout FunctionEndpoint) -> Void = { _ in }) -> FunctionEndpoint {
  function {
    $0.callableTrigger = .init()
    change(&$0)
  }
}

@Suite("Cloud plan")
struct CloudPlanTests {
  @Test(
    "A service's name is the function's in lower case, with hyphens",
    arguments: [("embedMessage", "embedmessage"), ("send_mail", "send-mail"), ("a", "a")]
  )
  func serviceName(function: String, name: String) throws {
    #expect(try ServiceName.make(from: function) == name)
  }

  @Test(
    "A name that no service can have is refused in words",
    arguments: [
      (String(repeating: "a", count: 50), "at most 49"), ("f_", "rename"), ("f-", "rename"),
    ]
  )
  func badName(function: String, words: String) {
    let error = #expect(throws: PlanError.self) { try ServiceName.make(from: function) }
    #expect(error?.description.contains(words) == true)
  }

  @Test(
    "Two functions with one service's name are refused, and both are named",
    arguments: [("sendMail", "sendmail"), ("send_mail", "send-mail")]
  )
  func collision(one: String, other: String) {
    let error = #expect(throws: PlanError.self) {
      try CloudPlan(functions: [one: callable(), other: callable()], settings: .init())
    }
    #expect(error?.description.contains(one) == true)
    #expect(error?.description.contains(other) == true)
  }

  @Test("A function on values has a trigger with path patterns, and needs the database's API")
  func values() throws {
    let plan = try CloudPlan(
      functions: [
        "mirror": function {
          $0.eventTrigger = .init(
            eventType: "google.firebase.database.ref.v1.written",
            eventFilters: ["instance": "main"],
            eventFilterPathPatterns: ["ref": "presence/{uid}"]
          )
        }
      ],
      settings: .init()
    )

    let trigger = try #require(plan.triggers.first)
    #expect(trigger.kind == .database && plan.apis.contains("firebasedatabase.googleapis.com"))
    #expect(
      trigger.resource(in: .init()).properties["filters"] == "instance=main, ref~presence/{uid}"
    )
    let files = try ProductionFiles(plan).files.map(\.text).joined()
    #expect(files.contains("--event-filters-path-pattern='ref=presence/{uid}'"))
    #expect(files.contains("match-path-pattern"))
  }

  @Test("Callables, HTTP and blocking functions are public; what the project triggers is not")
  func access() throws {
    let plan = try CloudPlan(
      functions: [
        "call": callable(), "web": function { $0.httpsTrigger = .init() },
        "ask": function { $0.blockingTrigger = .init(eventType: "user.beforeSignIn") },
        "tick": function { $0.scheduleTrigger = .init(schedule: "0 3 * * *") },
        "work": function { $0.taskQueueTrigger = .init() },
        "event": function {
          $0.eventTrigger = .init(
            eventType: "google.cloud.firestore.document.v1.created",
            eventFilters: ["database": "books", "document": "a/b"]
          )
        },
      ],
      settings: .init()
    )

    #expect(plan.services.filter(\.isPublic).map(\.function) == ["ask", "call", "web"])
    #expect(plan.blocking.map(\.event) == ["beforeSignIn"])
    #expect(plan.databases == ["(default)", "books"])
    #expect(plan.jobs.map(\.timeZone) == ["Etc/UTC"])
    #expect(plan.queues.map(\.maxAttempts) == [3])
    #expect(plan.apis.contains("eventarc.googleapis.com"))
  }

  @Test("A project of callables needs no account that calls them")
  func callablesOnly() throws {
    let plan = try CloudPlan(functions: ["call": callable()], settings: .init())

    #expect(!plan.needsInvoker)
    #expect(!plan.apis.contains("eventarc.googleapis.com"))
    #expect(!plan.resources.contains { $0.id.contains("hearth-invoker") })
  }

  @Test("A requested function runs in each of its regions, a triggered one in the first")
  func regions() throws {
    let plan = try CloudPlan(
      functions: [
        "web": function {
          $0.httpsTrigger = .init()
          $0.region = ["europe-west1", "us-east1"]
        },
        "tick": function {
          $0.scheduleTrigger = .init(schedule: "0 3 * * *")
          $0.region = ["europe-west1", "us-east1"]
        },
      ],
      settings: .init()
    )

    #expect(plan.services.map(\.region) == ["europe-west1", "europe-west1", "us-east1"])
    #expect(Set(plan.services.map(\.label)).count == 3)
    #expect(plan.warnings.contains { $0.function == "tick" && $0.text.contains("one region") })
  }

  @Test("A secret of one function is in the environment of none")
  func secretsInEnvironment() throws {
    let plan = try CloudPlan(
      functions: [
        "one": callable { $0.secretEnvironmentVariables = [.init(key: "KEY")] }, "two": callable(),
      ],
      settings: .init(environment: ["KEY": "sk-1", "GREETING": "hello", "PORT": "1"])
    )

    for service in plan.services {
      #expect(
        service.environment.map(\.name).sorted() == [
          "CLOUD_RUN_TIMEOUT_SECONDS", "FUNCTION_SIGNATURE_TYPE", "FUNCTION_TARGET",
          "GCLOUD_PROJECT", "GREETING",
        ]
      )
    }
    #expect(plan.warnings.map(\.text).contains { $0.hasPrefix("KEY is a secret") })
    #expect(plan.warnings.map(\.text).contains { $0.hasPrefix("PORT is set by Cloud Run") })
  }

  @Test(
    "A secret with the name of a variable that is set anyway is refused, and both are named",
    arguments: [
      "GCLOUD_PROJECT", "FUNCTION_TARGET", "FUNCTION_SIGNATURE_TYPE", "CLOUD_RUN_TIMEOUT_SECONDS",
      "PORT", "K_SERVICE", "K_REVISION", "K_CONFIGURATION", "X_GOOGLE_KEY",
    ]
  )
  func secretOfThePlatform(name: String) throws {
    let functions = ["call": callable { $0.secretEnvironmentVariables = [.init(key: name)] }]
    let error = #expect(throws: PlanError.self) {
      try CloudPlan(functions: functions, settings: .init())
    }

    #expect(error?.description.hasPrefix("call has the secret \(name),") == true)
  }

  @Test("Each variable that the plan sets is one that a secret cannot have")
  func variablesOfPlan() throws {
    let plan = try CloudPlan(functions: ["call": callable()], settings: .init())

    #expect(
      Set(plan.services.flatMap(\.environment).map(\.name)) == ProductionChecks.variablesOfPlan
    )
  }

  @Test(
    "A topic that Pub/Sub does not allow is refused, because gcloud would read it as a flag",
    arguments: [
      ("--project=other", false), ("", false), ("1st", false), ("a b", false), ("orders", true),
      ("A-b_c.d~e+f%2", true),
    ]
  )
  func topic(topic: String, isAllowed: Bool) {
    let endpoint = function {
      $0.eventTrigger = .init(
        eventType: "google.cloud.pubsub.topic.v1.messagePublished",
        eventFilters: ["topic": topic]
      )
    }
    let plan = try? CloudPlan(functions: ["f": endpoint], settings: .init())

    #expect((plan != nil) == isAllowed)
  }

  @Test(
    "An instance gets the wanted CPUs where Cloud Run allows them, else the fewest",
    arguments: [
      (256, nil, "1", false, false), (4096, nil, "1", false, false), (4097, nil, "2", false, false),
      (16_384, nil, "4", false, false), (24_576, nil, "6", false, false),
      (32_768, nil, "8", false, false), (512, 0.25, "0.25", true, false),
      (513, 0.25, "1", false, true), (1024, 0.5, "0.5", true, false), (256, 2, "2", false, false),
      (1024, 4, "1", false, true), (256, 3, "1", false, true), (256, 1.5, "1", false, true),
      (256, 0.01, "1", false, true),
    ] as [(Int, Double?, String, Bool, Bool)]
  )
  func cpu(memory: Int, wanted: Double?, text: String, isFraction: Bool, isProblem: Bool) {
    let choice = CPUChoice(memoryMebibytes: memory, wanted: wanted)

    #expect(choice.text == text)
    #expect(choice.isFraction == isFraction)
    #expect((choice.problem != nil) == isProblem)
  }

  @Test("Less than one CPU means one invocation at a time, and a warning says so")
  func fraction() throws {
    let functions = [
      "many": callable { $0.concurrency = 10 }, "one": callable { $0.concurrency = 1 },
    ]
    let plan = try CloudPlan(functions: functions, settings: .init(cpu: 0.5))

    #expect(plan.services.map(\.concurrency) == [1, 1])
    #expect(plan.warnings.map(\.function) == ["many"])
  }

  @Test(
    "What production does not take is a warning that names the function",
    arguments: [
      (callable { $0.timeoutSeconds = 4000 }, "4000 s"),
      (callable { $0.region = ["mars-north1"] }, "mars-north1"),
      (
        function {
          $0.scheduleTrigger = .init(schedule: "0 3 * * *")
          $0.region = ["africa-south1"]
        }, "gcloud scheduler locations list"
      ),
      (function { $0.scheduleTrigger = .init(schedule: "0 3 * * *", timeZone: "CET") }, "CET"),
      (
        function { $0.eventTrigger = .init(eventType: "*", eventFilters: [:]) },
        "NOT GENERATED: it wants every event"
      ),
      (
        function { $0.eventTrigger = .init(eventType: "my.own", eventFilters: [:]) },
        "NOT GENERATED: Eventarc has no event \"my.own\""
      ),
      (
        function {
          $0.eventTrigger = .init(
            eventType: "google.cloud.pubsub.topic.v1.messagePublished",
            eventFilters: [:]
          )
        }, "filter topic"
      ),
    ]
  )
  func warning(endpoint: FunctionEndpoint, words: String) throws {
    let plan = try CloudPlan(functions: ["f": endpoint], settings: .init())

    #expect(plan.warnings.contains { $0.function == "f" && $0.text.contains(words) })
  }

  @Test("An ordinary function has no warning")
  func noWarning() throws {
    let plan = try CloudPlan(
      functions: [
        "call": callable { $0.timeoutSeconds = 3600 },
        "tick": function {
          $0.scheduleTrigger = .init(schedule: "0 3 * * *", timeZone: "Europe/Berlin")
        },
      ],
      settings: .init()
    )

    #expect(plan.warnings == [])
  }

  @Test("A difference names what is removed, added and changed, with both values")
  func difference() throws {
    let before = try CloudPlan(
      functions: ["stays": callable(), "goes": callable()],
      settings: .init(environment: ["A": "one"])
    )
    let after = try CloudPlan(
      functions: ["stays": callable { $0.availableMemoryMb = 512 }, "comes": callable()],
      settings: .init(environment: ["A": "two\nlines"])
    )

    #expect(PlanDifference(from: before.resources, to: before.resources).isEmpty)
    #expect(
      PlanDifference(from: before.resources, to: after.resources).lines == [
        "- service us-central1/goes", "+ service us-central1/comes",
        "~ service us-central1/stays", "    environment A: one -> \"two\\nlines\"",
        "    memory: 256 MiB -> 512 MiB",
      ]
    )
  }

  @Test("No text of a plan can pass for a line of a difference")
  func forgedDifference() {
    let old = [
      CloudResource("index a\n+ service x", ["b\r\nc": "1"]),
      CloudResource("gone\u{2028}- x"),
    ]
    let new = [
      CloudResource("index a\n+ service x", ["b\r\nc": "2\u{85}\u{202E}"]),
      CloudResource("new\t\u{1B}[2J"),
    ]

    #expect(
      PlanDifference(from: old, to: new).lines == [
        "- gone\\u{2028}- x", "+ new\\t\\u{1B}[2J", "~ index a\\n+ service x",
        "    b\\r\\nc: 1 -> \"2\\u{0085}\\u{202E}\"",
      ]
    )
  }
}
