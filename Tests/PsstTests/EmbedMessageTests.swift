import FirestoreClient
import FunctionsRuntime
import OutboundHTTP
import PsstFunctions
import PsstServices
import Testing

@Suite("embedMessage")
struct EmbedMessageTests {
  @Test("A message gets one vector with its metadata, in an index of the model")
  func metadata() async throws {
    let world = World()
    try await world.say("m1", "My knee is sore")

    let record = try #require(world.providers.records["m1"])
    #expect(
      record.metadata == [
        "firestoreMessageId": .string("m1"), "firestoreChatId": .string("c1"),
        "trainerId": .string("tina"), "senderId": .string("carl"), "senderName": .string("Carl"),
        "text": .string("My knee is sore"), "timestamp": .number(1_714_557_600_123),
        "isGroupChat": .boolean(false), "members": .strings(["tina", "carl"]),
      ]
    )
    #expect(
      world.providers.tags
        == ["embedding_provider": "lexical", "embedding_model": "hashed-words-1"]
    )
    #expect(world.logged("Message embedded")?["embedding.provider"] == "lexical")
  }

  @Test("The same event twice leaves the same one vector")
  func twice() async throws {
    let world = World()
    try await world.say("m1", "My knee is sore")
    let first = world.providers.records
    try await world.embed("m1")
    #expect(world.providers.records == first)
  }

  @Test("A message that changes while it is embedded is embedded again")
  func changeMeanwhile() async throws {
    let world = World()
    // The first read of a run is message and chat, the second their people.
    world.store.afterRead(2) {
      $0.put("chats/c1/messages/m1", World.message("My elbow is sore"))
    }
    try await world.say("m1", "My knee is sore")

    #expect(world.providers.records["m1"]?.metadata["text"] == .string("My elbow is sore"))
    #expect(world.providers.count("/vectors/upsert") == 2)
  }

  @Test("Members that change while a message is embedded are in its vector")
  func membersMeanwhile() async throws {
    let world = World()
    world.store.afterRead(2) { store in
      store.put("chats/c1", World.chatFields(["tina", "carl", "cora"]))
    }
    try await world.say("m1", "My knee is sore")
    #expect(
      world.providers.records["m1"]?.metadata["members"] == .strings(["tina", "carl", "cora"])
    )
  }

  @Test("A message that goes while it is embedded leaves no vector")
  func deletionMeanwhile() async throws {
    let world = World()
    world.store.afterRead(2) { $0.put("chats/c1/messages/m1", nil) }
    try await world.say("m1", "My knee is sore")
    #expect(world.providers.records.isEmpty)
  }

  @Test("A message that comes back while its vector is deleted has one in the end")
  func returnMeanwhile() async throws {
    let world = World()
    world.store.afterRead(1) { $0.put("chats/c1/messages/m1", World.message("Back again")) }
    try await world.embed("m1")
    #expect(world.providers.records["m1"]?.metadata["text"] == .string("Back again"))
  }

  @Test("A message that keeps changing is left to a later attempt")
  func restless() async throws {
    let world = World()
    for round in 0..<20 {
      world.store.afterRead(2 * round + 2) {
        $0.put("chats/c1/messages/m1", World.message("Version \(round)"))
      }
    }
    await #expect(throws: EventError.self) { try await world.say("m1", "Version") }
  }

  @Test(
    "What has no words is skipped with a reason, and has no vector any more",
    arguments: [
      (World.message(" \n "), "its text is blank"),
      (
        World.message("").merging(["mediaType": .string("image")]) { $1 },
        "it is media without text"
      ),
    ]
  )
  func skips(message: [String: Value], reason: String) async throws {
    let world = World()
    try await world.say("m1", "My knee is sore")
    world.store.put("chats/c1/messages/m1", message)
    try await world.embed("m1")

    #expect(world.providers.records.isEmpty)
    #expect(world.logged("Message skipped")?["reason"] == reason)
  }

  @Test("A message of no chat is skipped")
  func noChat() async throws {
    let world = World()
    try await world.say("m1", "Hello", in: "nowhere")
    #expect(world.providers.records.isEmpty)
    #expect(world.logged("Message skipped")?["reason"] == "its chat does not exist")
  }

  @Test("A deleted message's vector is deleted")
  func deletion() async throws {
    let world = World()
    try await world.say("m1", "My knee is sore")
    world.store.put("chats/c1/messages/m1", nil)
    try await world.embed("m1")
    #expect(world.providers.records.isEmpty)
    #expect(world.logged("Message is gone, vector deleted") != nil)
  }

  @Test(
    "The trainer is the only one in the chat, else a trainer who sent it, else nobody",
    arguments: [
      (["tina", "carl"], "carl", "tina"), (["tina", "tom"], "tom", "tom"),
      (["tina", "tom", "carl"], "carl", nil), (["carl", "cora"], "carl", nil),
      (["old", "carl"], "carl", "old"), (["ghost", "carl"], "carl", nil),
    ] as [([String], String, String?)]
  )
  func trainer(members: [String], sender: String, trainer: String?) async throws {
    let world = World()
    world.store.put("users/tom", ["displayName": .string("Tom"), "role": .string("trainer")])
    // Stored before roles existed, and so a trainer.
    world.store.put("users/old", ["displayName": .string("Old")])
    world.chat("c1", members, isGroup: members.count > 2)
    try await world.say("m1", "Hello there", by: sender)

    let record = try #require(world.providers.records["m1"])
    #expect(record.metadata["trainerId"] == trainer.map { .string($0) })
  }

  @Test("A provider that fails is tried again in place, then later")
  func providerFailure() async throws {
    let world = World(World.tinyModel)
    let down = OutboundResponse(status: 503)
    world.store.put("chats/c1/messages/m1", World.message("Hello"))
    world.providers.fail(down, OutboundResponse(status: 429, headers: ["retry-after": "2"]))
    try await world.embed("m1")
    #expect(world.waits.all == [.milliseconds(500), .seconds(2)])
    #expect(world.providers.records.keys.contains("m1"))

    world.store.put("chats/c1/messages/m2", World.message("Hello again"))
    world.providers.fail(down, down, down)
    let error = await #expect(throws: EventError.self) { try await world.embed("m2") }
    #expect(error?.message == "the embedding provider answered 503")
  }

  @Test("A wrong key ends the event, and the key is in no message")
  func wrongKey() async throws {
    let world = World(World.tinyModel)
    world.store.put("chats/c1/messages/m1", World.message("Hello"))
    world.providers.fail(OutboundResponse(status: 401))
    let error = await #expect(throws: EventError.self) { try await world.embed("m1") }
    #expect(error?.description.contains("key") == false)
    #expect(world.waits.all.isEmpty)
  }

  @Test("An index of another model is refused with what to do")
  func otherModel() async throws {
    let world = World()
    try await world.say("m1", "Hello")
    let other = World.tinyModel
    let services = MessageServices(
      firestore: world.store.firestore,
      settings: PsstSettings(
        embedding: other,
        vectors: VectorSettings(host: ProviderStandIn.host)
      ),
      http: world.providers
    )
    let error = await #expect(throws: ServiceError.self) { try await services.checkIndex() }
    #expect(error?.kind == .misconfigured)
    #expect(error?.message.contains("lexical/hashed-words-1") == true)
    #expect(error?.message.contains("hearth call backfillEmbeddings") == true)

    try await world.services.checkIndex()
  }

  @Test("An index that was deleted is made again")
  func indexDeleted() async throws {
    let world = World()
    try await world.say("m1", "Hello")
    world.providers.deleteIndex()
    try await world.say("m2", "Hello")
    #expect(Array(world.providers.records.keys) == ["m2"])
  }
}
