import Foundation
import FirestoreClient
import FunctionsTesting
import OpenAIStub
import PsstFunctions
import PsstModels
import PsstBackend

/// A trainer, clients and other users, with a model whose findings a test scripts.
struct ProfileFixture: Sendable {
  let suite: FunctionsSuite
  let functions: AppFunctions
  let model: OpenAIModelStub

  /// A time at which a test begins that speaks of days: far from midnight, and always the same.
  static let morning = Timestamp(microseconds: 1_777_626_000_000_000)

  static let chatCompletions = OpenAIModelStub.baseURL + "/chat/completions"

  /// Runs a test with the functions that follow a message, except those on vectors.
  static func run(
    withModel: Bool = true,
    contacts: Bool = true,
    faults: DeliveryFaults? = nil,
    _ test: (ProfileFixture) async throws -> Void
  ) async throws {
    let model = OpenAIModelStub()
    try await withFunctions(Self.app, deliveryFaults: faults) { environment in
      environment.http.mount(model, at: OpenAIModelStub.baseURL)
      environment.http.mount(ProviderStub(), at: ProviderStub.host)
      return AppFunctions(
        services: BackendServices(
          firestore: environment.firestore,
          settings: PsstSettings(
            embedding: .lexical,
            vectors: VectorSettings(host: ProviderStub.host),
            chat: withModel
              ? .openAI(baseURL: OpenAIModelStub.baseURL, key: "key", model: "gpt-4o-mini") : .none
          ),
          http: environment.http,
          retries: ServiceRetries(attemptsMax: 1, now: { environment.now.date })
        )
      )
    } test: { suite, functions in
      let fixture = ProfileFixture(suite: suite, functions: functions, model: model)
      try await fixture.populate()
      if contacts {
        try await fixture.contact("carl", of: "tina")
        try await fixture.contact("cora", of: "old")
      }
      try await test(fixture)
    }
  }

  private static func app(_ functions: AppFunctions) -> FunctionsApp {
    FunctionsApp {
      functions.extractProfileInfoOnMessage
      functions.recordContact
      functions.refreshChatMembers
      functions.backfillProfiles
    }
  }

  func populate() async throws {
    let people: [(String, UserRole?)] = [
      ("tina", .trainer), ("tom", .trainer), ("carl", .client), ("cora", .client), ("old", nil),
    ]
    for (uid, role) in people {
      try await suite.firestore.document("users/\(uid)")
        .set(User(displayName: uid.capitalized, email: "\(uid)@psst.app", role: role))
    }
    try await chat("c1", ["tina", "carl"])
  }

  // MARK: Writing

  func chat(_ id: String, _ members: [String], isGroup: Bool = false) async throws {
    try await suite.firestore.document("chats/\(id)").set([
      "id": .value(id), "members": .value(members), "isGroupChat": .value(isGroup),
      "lastMessage": "", "lastMessageTimestamp": .value(Self.time(0)),
      "updatedAt": .value(Self.time(0)),
    ])
  }

  func contact(_ clientID: String, of trainerID: String) async throws {
    try await Client.reference(in: suite.firestore, trainerID: trainerID, clientID: clientID).set(
      Client(
        clientId: clientID,
        displayName: clientID.capitalized,
        email: "\(clientID)@psst.app",
        addedAt: Self.time(0)
      )
    )
  }

  /// Writes a message dated `minute` minutes after the start.
  func write(
    _ id: String,
    _ text: String,
    by sender: String = "carl",
    in chat: String = "c1",
    minute: Int64 = 1,
    mediaType: String? = nil
  ) async throws {
    try await message(id, in: chat).set(
      Message(text: text, senderID: sender, timestamp: Self.time(minute), mediaType: mediaType)
    )
  }

  /// Writes a calendar event that spans `hours`, in a year that no clock has reached.
  func event(
    _ id: String,
    _ title: String,
    hours: ClosedRange<Int64>,
    of trainer: String = "tina",
    status: String = "scheduled"
  ) async throws {
    try await suite.firestore.document("calendar/\(trainer)/events/\(id)").set([
      "trainerId": .value(trainer), "clientId": "carl", "title": .value(title),
      "startTime": .value(Self.hour(hours.lowerBound)),
      "endTime": .value(Self.hour(hours.upperBound)), "eventType": "call",
      "status": .value(status), "createdBy": "trainer",
    ])
  }

  /// Scripts the model to find facts in messages with certain words.
  func find(_ facts: (ProfileCategory, String)..., in words: String) throws {
    try model.add(StubScript(rules: [.init(contains: words, reply: Self.reply(facts))]))
  }

  static func reply(_ facts: [(ProfileCategory, String)]) -> ScriptedReply {
    ScriptedReply(
      json: .object([
        "facts": .array(
          facts.map { category, text in
            .object([
              "category": .string(category.rawValue), "text": .string(text),
              "confidence": .string("high"),
            ])
          }
        )
      ])
    )
  }

  // MARK: Reading

  func message(_ id: String, in chat: String = "c1") -> DocumentReference {
    suite.firestore.collection("chats").document(chat).collection("messages").document(id)
  }

  func profile(
    _ clientID: String = "carl",
    of trainerID: String = "tina"
  ) async throws -> ClientProfile? {
    let path = "clientProfiles/\(trainerID)/clients/\(clientID)"
    let snapshot = try await suite.firestore.document(path).get()
    return snapshot.exists ? try snapshot.data(as: ClientProfile.self) : nil
  }

  func fields(_ path: String) async throws -> MapValue {
    try await suite.firestore.document(path).get().fields
  }

  /// The reason why a function skipped the last message.
  func reason(_ function: some CloudFunction) -> String? {
    suite.logs(of: function).last { $0.message == "Message skipped" }?.metadata["reason"]
  }

  /// An hour of May 1, 2100 (UTC).
  static func hour(_ hour: Int64) -> Timestamp {
    Timestamp(microseconds: 4_112_812_800_000_000 + hour * 3_600_000_000)
  }

  static func time(_ minute: Int64) -> Timestamp {
    Timestamp(microseconds: 1_777_626_000_000_000 + minute * 60_000_000)
  }
}
