import FunctionsTesting
import OpenAIStub
import PsstFunctions
import PsstModels
import PsstBackend
import Testing

/// The final state of all Psst functions when events are duplicated and reordered.
@Suite("Psst under delivery faults")
struct FaultModeTests {
  /// The writes of a test, in steps; the suite settles after each step.
  struct Story: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var steps: [@Sendable (ProfileFixture) async throws -> Void]

    init(_ description: String, _ steps: (@Sendable (ProfileFixture) async throws -> Void)...) {
      testDescription = description
      self.steps = steps
    }
  }

  static let stories = [
    Story(
      "messages of two chats",
      { fixture in
        try await fixture.chat("c2", ["tom", "cora"])
        for minute in 1...4 as ClosedRange<Int64> {
          let sender = minute % 2 == 0 ? "tina" : "carl"
          try await fixture.write("a\(minute)", "sore knee \(minute)", by: sender, minute: minute)
          try await fixture.write(
            "b\(minute)",
            "rome \(minute)",
            by: "cora",
            in: "c2",
            minute: minute
          )
        }
      }
    ),
    Story(
      "edits before and after the events have come",
      { fixture in
        for id in ["m1", "m2"] { try await fixture.write(id, "first words of \(id)") }
        try await fixture.write("m1", "sore knee")
      },
      { fixture in
        try await fixture.write("m2", "rome, after all", minute: 2)
        try await fixture.write("m1", "", mediaType: "image")
      }
    ),
    Story(
      "deletions, and messages that come back",
      { fixture in
        for id in ["m1", "m2", "m3"] { try await fixture.write(id, "sore knee \(id)") }
        try await fixture.message("m2").delete()
        try await fixture.message("m3").delete()
        try await fixture.write("m3", "rome instead", minute: 3)
      },
      { fixture in
        try await fixture.message("m1").delete()
        try await fixture.write("m2", "back again", by: "tina", minute: 5)
      }
    ),
    Story(
      "members who come and go",
      { fixture in
        try await fixture.write("m1", "sore knee")
        try await fixture.chat("c1", ["tina", "carl", "cora"], isGroup: true)
        try await fixture.write("m2", "rome", by: "cora", minute: 2)
      },
      { fixture in
        try await fixture.chat("c1", ["carl", "cora"])
        try await fixture.write("m3", "sore again", by: "cora", minute: 3)
      },
      { fixture in
        try await fixture.suite.firestore.document("chats/c1").delete()
        try await fixture.message("m3").delete()
      }
    ),
    Story(
      "facts that two messages state, of which one is edited and one is deleted",
      { fixture in
        try await fixture.write("m1", "sore knee", minute: 1)
        try await fixture.write("m2", "sore knee, in rome", minute: 2)
        try await fixture.write("m3", "off to rome", by: "tina", minute: 3)
      },
      { fixture in
        try await fixture.message("m1").delete()
        try await fixture.message("m3").update(["text": "sore, not away"])
      },
      { fixture in
        try await fixture.message("m2").update(["text": "nothing of the kind"])
        try await fixture.message("m2").update(["readBy": .arrayUnion("tina")])
      }
    ),
    Story(
      "calendar events that overlap, move, change their titles, are cancelled and deleted",
      { fixture in
        try await fixture.event("e1", "Knee", hours: 0...2)
        try await fixture.event("e2", "Back", hours: 1...3)
        try await fixture.event("e3", "Rome", hours: 2...4)
        try await fixture.event("e4", "All week", hours: -48...120)
      },
      { fixture in
        try await fixture.event("e1", "Knee and hip", hours: 0...2)
        try await fixture.event("e2", "Back", hours: 5...6)
        try await fixture.event("e3", "Rome", hours: 2...4, status: "cancelled")
        try await fixture.event("e2", "Back", hours: 1...3)
      },
      { fixture in
        try await fixture.suite.firestore.document("calendar/tina/events/e4").delete()
        try await fixture.event("e3", "Rome", hours: 1...4)
        try await fixture.event("e5", "Knee", hours: 0...9, of: "tom")
      }
    ),
    Story(
      "strangers, blanks and a chat that is not there",
      { fixture in
        try await fixture.write("m1", "sore knee", by: "nobody")
        try await fixture.write("m2", "   ")
        try await fixture.write("m3", "rome", in: "nowhere")
        try await fixture.write("m4", "sore knee", minute: 9)
      }
    ),
  ]

  /// The final state of a story: every document and every vector.
  private struct Ending: Equatable {
    var documents: [String: MapValue]
    var vectors: [String: VectorRecord]
    var calls: [String: Int]
  }

  private func ending(of story: Story, _ faults: DeliveryFaults) async throws -> Ending {
    let model = OpenAIModelStub()
    let vectors = ProviderStub()
    return try await withFunctions(\.app, deliveryFaults: faults) { environment in
      environment.http.mount(model, at: OpenAIModelStub.baseURL)
      environment.http.mount(vectors, at: ProviderStub.host)
      let settings = PsstSettings(
        embedding: .lexical,
        vectors: VectorSettings(host: ProviderStub.host),
        chat: .openAI(baseURL: OpenAIModelStub.baseURL, key: "key", model: "gpt-4o-mini")
      )
      return AppFunctions(
        services: BackendServices(
          firestore: environment.firestore,
          settings: settings,
          http: environment.http,
          retries: ServiceRetries(attemptsMax: 1)
        )
      )
    } test: { suite, functions in
      let fixture = ProfileFixture(suite: suite, functions: functions, model: model)
      try await fixture.populate()
      try await fixture.contact("carl", of: "tina")
      try fixture.find((.injuries, "Sore knee"), in: "sore")
      try fixture.find((.travel, "Rome"), in: "rome")
      try fixture.find(in: " ")
      for step in story.steps {
        try await step(fixture)
        try await suite.settle()
      }
      #expect(try await suite.deliveries().allSatisfy { $0.state == .succeeded })
      // A duplicated event may call a model twice, and the ledger then records both calls.
      let documents = try await suite.documents().filter { !$0.key.hasPrefix("usage/") }
        .mapValues { fields in
          // The times of the writes may differ.
          fields.filter {
            $0.key != "updatedAt" && $0.key != "createdAt"
              && !($0.key == "timestamp" && fields["turnId"] == .string("welcome"))
          }
        }
      let runs = Dictionary(grouping: suite.runs, by: \.function).mapValues(\.count)
      return Ending(documents: documents, vectors: vectors.records, calls: runs)
    }
  }

  @Test(
    "Lost, doubled and reordered events leave the database and the vectors as orderly ones do",
    arguments: stories
  )
  func sameEnding(story: Story) async throws {
    let orderly = try await ending(of: story, .inOrder)
    for seed in 0..<20 as Range<UInt64> {
      let faulty = try await ending(of: story, DeliveryFaults(seed: seed))

      #expect(faulty.documents == orderly.documents, "seed \(seed)")
      #expect(faulty.vectors == orderly.vectors, "seed \(seed)")
      #expect(faulty.calls.values.reduce(0, +) > orderly.calls.values.reduce(0, +))
    }
  }

  @Test("Together the stories make every trigger of Psst run")
  func everyTrigger() async throws {
    var ran: Set<String> = []
    for story in Self.stories { ran.formUnion(try await ending(of: story, .inOrder).calls.keys) }
    #expect(
      ran == [
        "detectCalendarConflicts", "embedMessage", "extractProfileInfoOnMessage", "recordContact",
        "refreshChatMembers", "welcomeUser",
      ]
    )
  }
}
