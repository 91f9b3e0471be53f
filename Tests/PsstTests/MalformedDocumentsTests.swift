import FirestoreClient
import FunctionsTesting
import OpenAIStub
import PsstFunctions
import PsstModels
import PsstBackend
import PsstServices
import Testing

/// All of Psst's functions on documents with arbitrary contents.
@Suite("Malformed documents")
struct MalformedDocumentsTests {
  /// The fixture: a healthy chat `c2` of tom and cora beside the chat `c1` of tina and carl.
  struct Surroundings: Sendable {
    let profiles: ProfileFixture
    let vectors: ProviderStub

    var suite: FunctionsSuite { profiles.suite }

    func put(_ path: String, _ fields: [String: FirestoreValue]) async throws {
      try await suite.firestore.document(path).set(fields.mapValues { .value($0) })
    }

    func isEmbedded(_ messageID: String) -> Bool {
      vectors.records.keys.contains { $0.hasSuffix(messageID) }
    }

    func found(_ query: String, as uid: String) async throws -> [String] {
      try await suite.call(
        profiles.functions.semanticSearch,
        SemanticSearchQuery(query: query, limit: 50, minScore: -1),
        as: .user(uid)
      ).results.map(\.messageId)
    }

    /// The reasons why functions skipped the last message.
    func reasons() -> [String] {
      let functions = profiles.functions
      return [
        profiles.reason(functions.embedMessage),
        profiles.reason(functions.extractProfileInfoOnMessage),
        profiles.reason(functions.recordContact),
      ].compactMap { $0 }
    }

    /// The number of deliveries that did not succeed.
    func failures() async throws -> Int {
      try await suite.deliveries().count { $0.state != .succeeded }
    }

    func backfill() async throws -> BackfillReport {
      try await suite.call(
        profiles.functions.backfillEmbeddings,
        BackfillOrder(dryRun: false, confirm: "backfill"),
        as: .admin
      )
    }

    /// The paths of the contacts that a migration would create.
    func migration() async throws -> Set<String> {
      let reply = try await suite.call(
        profiles.functions.migrateExistingChats,
        MigrateExistingChatsOrder(dryRun: true),
        as: .admin
      )
      return Set(reply.contacts.map(\.path))
    }
  }

  private func run(
    faults: DeliveryFaults? = nil,
    _ test: (Surroundings) async throws -> Void
  ) async throws {
    let model = OpenAIModelStub()
    let vectors = ProviderStub()
    try await withFunctions(\.app, deliveryFaults: faults) { environment in
      environment.http.mount(model, at: OpenAIModelStub.baseURL)
      environment.http.mount(vectors, at: ProviderStub.host)
      return AppFunctions(
        services: BackendServices(
          firestore: environment.firestore,
          settings: PsstSettings(
            embedding: .lexical,
            vectors: VectorSettings(host: ProviderStub.host),
            chat: .openAI(baseURL: OpenAIModelStub.baseURL, key: "key", model: "gpt-4o-mini")
          ),
          http: environment.http,
          retries: ServiceRetries(attemptsMax: 1)
        )
      )
    } test: { suite, functions in
      let fixture = ProfileFixture(suite: suite, functions: functions, model: model)
      try fixture.find((.injuries, "Sore knee"), in: "sore")
      try fixture.find(in: " ")
      try await fixture.populate()
      try await fixture.chat("c2", ["tom", "cora"])
      try await test(Surroundings(profiles: fixture, vectors: vectors))
    }
  }

  // MARK: Known cases

  @Test("A member with the role coach stops no message and no backfill")
  func unknownRole() async throws {
    try await run { fixture in
      try await fixture.put(
        "users/coach",
        ["displayName": .string("Coach"), "role": .string("coach")]
      )
      try await fixture.profiles.chat("g1", ["tina", "carl", "coach"], isGroup: true)
      try await fixture.profiles.write("m1", "My knee is sore", in: "g1")
      try await fixture.profiles.write("m2", "So is my back", by: "coach", in: "g1")
      try await fixture.profiles.chat("c3", ["carl", "coach"])
      try await fixture.profiles.write("m3", "My knee is sore", in: "c3")
      try await fixture.suite.settle()

      #expect(try await fixture.failures() == 0)
      #expect(fixture.isEmbedded("m1") && fixture.isEmbedded("m2") && fixture.isEmbedded("m3"))
      let reading = fixture.suite.logs(of: fixture.profiles.functions.extractProfileInfoOnMessage)
      #expect(
        reading.contains { $0.metadata["reason"] == "a member of the chat has an unknown role" }
      )
      #expect(try await fixture.found("sore", as: "tina").contains("m1"))

      fixture.vectors.deleteIndex()
      let reply = try await fixture.backfill()
      #expect(reply.embedded == 3 && reply.failed == 0 && reply.done)
      #expect(try await fixture.migration().contains("contacts/tina/clients/carl"))
    }
  }

  @Test("A text that is no text is skipped with its reason, and its vector is deleted")
  func textIsANumber() async throws {
    try await run { fixture in
      try await fixture.profiles.write("m1", "My knee is sore")
      try await fixture.profiles.write("m2", "The other knee is sore")
      try await fixture.suite.settle()
      #expect(fixture.isEmbedded("m1"))
      try await fixture.profiles.message("m1").update(["text": 5])
      try await fixture.suite.settle()

      #expect(try await fixture.failures() == 0)
      #expect(!fixture.isEmbedded("m1"))
      #expect(
        fixture.profiles.reason(fixture.profiles.functions.embedMessage)
          == "it cannot be read: 'text' is an integer, not a string"
      )
    }
  }

  @Test("A hit whose message has become unreadable is left out, and the others are found")
  func unreadableHit() async throws {
    try await run(faults: .inOrder) { fixture in
      try await fixture.profiles.write("m1", "My knee is sore")
      try await fixture.profiles.write("m2", "The other knee is sore")
      try await fixture.suite.settle()
      // The vector still exists, because the event waits for the suite to settle.
      try await fixture.profiles.message("m1").update(["text": 5])

      #expect(try await fixture.found("sore knee", as: "tina") == ["m2"])
    }
  }

  static let chats: [(MapValue, String)] = [
    (["isGroupChat": .boolean(false)], "its chat cannot be read: 'members' is missing"),
    (
      ["members": .array([.string("tina"), .string("carl")]), "isGroupChat": .string("yes")],
      "its chat cannot be read: 'isGroupChat' is a string, not a boolean"
    ),
  ]

  @Test(
    "The messages of a chat that cannot be read are skipped, and hide no other chat's",
    arguments: chats
  )
  func unreadableChat(fields: MapValue, reason: String) async throws {
    try await run { fixture in
      try await fixture.profiles.write("m1", "My knee is sore")
      try await fixture.profiles.write("w1", "My knee is sore", by: "tina", in: "c2")
      try await fixture.profiles.chat("c2", ["tom", "cora", "tina"], isGroup: true)
      try await fixture.suite.settle()
      try await fixture.suite.firestore.document("chats/c1")
        .set(Dictionary(uniqueKeysWithValues: fields.map { ($0.key, .value($0.value)) }))
      try await fixture.profiles.write("m2", "It is still sore")
      try await fixture.suite.settle()

      #expect(try await fixture.failures() == 0)
      #expect(fixture.reasons() == [reason, reason, reason])
      #expect(try await fixture.found("sore knee", as: "tina") == ["w1"])
      #expect(try await fixture.backfill().done)
    }
  }

  @Test("A name that is a number is no name, and its chats work")
  func nameIsANumber() async throws {
    try await run { fixture in
      try await fixture.put(
        "users/carl",
        ["displayName": .integer(7), "role": .string("client"), "email": .string("c@psst.app")]
      )
      #expect(try await fixture.migration().contains("contacts/tina/clients/carl"))
      try await fixture.profiles.contact("carl", of: "tina")
      try await fixture.profiles.write("m1", "My knee is sore")
      try await fixture.profiles.write("m2", "Is it?", by: "tina")
      try await fixture.suite.settle()

      #expect(try await fixture.failures() == 0)
      #expect(try await Set(fixture.found("knee", as: "tina")) == ["m1", "m2"])
      #expect(try await fixture.profiles.profile()?.injuries.map(\.text) == ["Sore knee"])
    }
  }

  @Test("What cannot be read is logged once for each version of a document")
  func loggedOnce() async throws {
    try await run { fixture in
      func lines() -> [String?] {
        fixture.suite.logs.filter { $0.message == "Fields cannot be read" }
          .map { $0.metadata["reason"] }
      }
      try await fixture.put("users/carl", ["displayName": .integer(7), "role": .string("client")])
      for number in 1...3 { try await fixture.profiles.write("m\(number)", "My knee is sore") }
      try await fixture.suite.settle()
      #expect(lines() == ["'displayName' is an integer, not a string"])

      try await fixture.put(
        "users/carl",
        ["displayName": .boolean(true), "role": .string("client")]
      )
      try await fixture.profiles.write("m4", "My knee is sore")
      try await fixture.suite.settle()
      #expect(lines().count == 2)
      #expect(lines().last == "'displayName' is a boolean, not a string")
    }
  }

  // MARK: Every field with every type of value

  /// A valid document whose fields are replaced one after another.
  struct Subject: Sendable, CustomTestStringConvertible {
    var path: String
    var fields: [String: FirestoreValue]
    var testDescription: String { path }
  }

  private static let time = FirestoreValue.timestamp(ProfileFixture.time(0))
  private static let item = FirestoreValue.map([
    "id": .string("i1"), "text": .string("Knee"), "category": .string("injuries"),
    "confidence": .string("high"), "timestamp": time, "sourceMessageId": .string("m1"),
    "sourceChatId": .string("c1"),
  ])

  static let subjects = [
    Subject(
      path: "users/carl",
      fields: [
        "id": .string("carl"), "displayName": .string("Carl"), "email": .string("carl@psst.app"),
        "role": .string("client"), "createdAt": time, "fcmToken": .string("token"),
      ]
    ),
    Subject(
      path: "users/tina",
      fields: [
        "displayName": .string("Tina"), "email": .string("tina@psst.app"),
        "role": .string("trainer"),
      ]
    ),
    Subject(
      path: "chats/c1",
      fields: [
        "id": .string("c1"), "members": .array([.string("tina"), .string("carl")]),
        "isGroupChat": .boolean(false), "groupName": .string("Two"), "lastMessage": .string("Hi"),
        "lastMessageTimestamp": time, "createdAt": time, "updatedAt": time,
      ]
    ),
    Subject(
      path: "chats/c1/messages/odd",
      fields: [
        "id": .string("odd"), "text": .string("My knee is sore"), "senderID": .string("carl"),
        "timestamp": time, "readBy": .array([.string("tina")]), "mediaType": .string("image"),
        "mediaURL": .string("https://psst.app/1"),
      ]
    ),
    Subject(
      path: "clientProfiles/tina/clients/carl",
      fields: [
        "clientId": .string("carl"), "trainerId": .string("tina"), "injuries": .array([item]),
        "goals": .array([]), "totalItems": .integer(1), "createdAt": time, "updatedAt": time,
        "lastReviewedAt": time,
      ]
    ),
    Subject(
      path: "contacts/tina/clients/carl",
      fields: [
        "clientId": .string("carl"), "displayName": .string("Carl"),
        "email": .string("carl@psst.app"), "addedAt": time, "lastContactedAt": time,
      ]
    ),
  ]

  /// Values of every type; nil stands for a missing field.
  static let values: [FirestoreValue?] = [
    nil, .null, .boolean(true), .integer(5), .double(.nan), .bytes([0, 255]),
    .string(""), .string("yes"), .string("a/b"),
    .string(String(repeating: "x", count: 200_000)), .string("ردّ 🏋🏽‍♀️ e\u{301} \u{202E}膝が痛い"),
    .timestamp(Timestamp(microseconds: 0)),
    .timestamp(Timestamp("9999-12-31T23:59:59.999999Z") ?? Timestamp(microseconds: 0)),
    .geoPoint(GeoPoint(latitude: 1, longitude: 2)), .vector([1, 2]), .array([]),
    .array([.integer(7), .string(""), .string("a/b"), .null, .string("ghost"), .map([:])]),
    .array((0..<300).map { .string("ghost\($0)") }), .map([:]), .map(["tina": .boolean(true)]),
  ]

  @Test("Whatever stands in a field, everybody else's messages work", arguments: subjects)
  func anyValue(subject: Subject) async throws {
    try await run { fixture in
      var number = 0
      for field in subject.fields.keys.sorted() {
        for value in Self.values {
          number += 1
          var fields = subject.fields
          fields[field] = value
          try await fixture.put(subject.path, fields)
          try await fixture.profiles.write(
            "m\(number)",
            "Sore knee",
            by: "tina",
            minute: Int64(number)
          )
          try await fixture.suite.settle()

          if !subject.path.hasSuffix("c1") {
            let what = Comment("\(field) is \(String(describing: value).prefix(60))")
            #expect(fixture.isEmbedded("m\(number)"), what)
          }
        }
        try await fixture.profiles.message("m\(number)").delete()
        try await fixture.profiles.write(
          "w\(number)",
          "Sore knee",
          by: "cora",
          in: "c2",
          minute: Int64(number)
        )
        try await fixture.suite.settle()
        #expect(fixture.isEmbedded("w\(number)"), "\(field)")
        let found = try await fixture.found("sore knee", as: "cora")
        #expect(!found.isEmpty && found.allSatisfy { $0.hasPrefix("w") }, "\(field)")
        _ = try await fixture.found("sore knee", as: "tina")
        #expect(try await fixture.migration().contains("contacts/tom/clients/cora"), "\(field)")
        #expect(try await fixture.failures() == 0, "\(field)")
      }
      fixture.vectors.deleteIndex()
      #expect(try await fixture.backfill().done)
      #expect(fixture.isEmbedded("w\(number)"))
      #expect(try await fixture.profiles.fields("chats/c2")["lastMessage"] == .string("Sore knee"))
    }
  }
}
