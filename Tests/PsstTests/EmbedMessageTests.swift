import Foundation
import FunctionsTesting
import PsstFunctions
import PsstBackend
import PsstServices
import TestSupport
import Testing

@Suite("embedMessage")
struct EmbedMessageTests {
  @Test("A message gets one vector with its metadata, in an index of the model")
  func metadata() async throws {
    try await ChatFixture.run { fixture in
      try await fixture.say("m1", "My knee is sore")

      let record = try #require(fixture.providers.records["c1#m1"])
      #expect(
        record.metadata == [
          "firestoreMessageId": .string("m1"), "firestoreChatId": .string("c1"),
          "trainerId": .string("tina"), "senderId": .string("carl"), "senderName": .string("Carl"),
          "text": .string("My knee is sore"), "timestamp": .number(1_714_557_600_123),
          "isGroupChat": .boolean(false), "members": .strings(["tina", "carl"]),
        ]
      )
      #expect(
        fixture.providers.tags
          == [
            "embedding_provider": "lexical", "embedding_model": "hashed-words-1",
            "records": "messages-by-chat",
          ]
      )
      #expect(fixture.logged("Message embedded")?["embedding.provider"] == "lexical")
    }
  }

  @Test("The same event twice leaves the same one vector")
  func twice() async throws {
    try await ChatFixture.run { fixture in
      try await fixture.say("m1", "My knee is sore")
      let first = fixture.providers.records
      try await fixture.suite.redeliver(
        fixture.functions.embedMessage,
        document: "chats/c1/messages/m1"
      )
      try await fixture.suite.settle()

      #expect(fixture.providers.records == first)
      #expect(fixture.suite.runCount(of: fixture.functions.embedMessage) == 2)
    }
  }

  @Test(
    "However often events come and in whatever order, each message has its vector as it is now",
    arguments: UInt64(0)..<12
  )
  func anyOrder(seed: UInt64) async throws {
    try await ChatFixture.run(deliveryFaults: DeliveryFaults(seed: seed)) { fixture in
      for id in ["m1", "m2", "m3"] { try await fixture.write(id, "First words of \(id)") }
      try await fixture.chat("c1", ["tina", "carl", "cora"])
      try await fixture.write("m1", "Second words")
      try await fixture.delete("m2")
      try await fixture.delete("m3")
      try await fixture.write("m3", "Back again")
      try await fixture.chat("c1", ["carl", "cora"])
      try await fixture.suite.settle()

      let records = fixture.providers.records
      #expect(records.mapValues(\.text) == ["c1#m1": "Second words", "c1#m3": "Back again"])
      for record in records.values {
        #expect(record.metadata["members"] == .strings(["carl", "cora"]))
        #expect(record.metadata["trainerId"] == nil)
      }
      #expect(try await fixture.suite.deliveries().allSatisfy { $0.state == .succeeded })
    }
  }

  @Test("Read receipts cost nothing: the same text keeps its vector")
  func readReceipts() async throws {
    try await ChatFixture.run(ChatFixture.tinyModel, deliveryFaults: ChatFixture.inOrder) {
      fixture in
      try await fixture.say("m1", "My knee is sore")
      let record = try #require(fixture.providers.records["c1#m1"])
      for reader in ["tina", "carl", "cora", "theo"] {
        try await fixture.suite.firestore.document("chats/c1/messages/m1")
          .update(["readBy": .arrayUnion(reader)])
        try await fixture.suite.settle()
      }
      // Another worker has an empty text cache.
      let other = BackendServices(
        firestore: fixture.suite.firestore,
        settings: PsstSettings(
          embedding: ChatFixture.tinyModel,
          vectors: VectorSettings(host: ProviderStub.host)
        ),
        http: fixture.suite.http
      )
      #expect(try await other.indexer.index(chatID: "c1", messageID: "m1") == .indexed)
      #expect(fixture.providers.count("/embeddings") == 1)
      #expect(fixture.providers.records == ["c1#m1": record])

      try await fixture.say("m1", "My elbow is sore")
      #expect(fixture.providers.count("/embeddings") == 2)
      #expect(fixture.providers.records["c1#m1"]?.values != record.values)
    }
  }

  @Test("Messages that say the same are embedded once, and so is an event that is tried again")
  func equalTexts() async throws {
    try await ChatFixture.run(ChatFixture.tinyModel, deliveryFaults: ChatFixture.inOrder) {
      fixture in
      for id in ["m1", "m2", "m3"] { try await fixture.write(id, "Thanks, see you tomorrow") }
      let providers = fixture.providers
      let down = OutboundResponse(status: 503)
      fixture.suite.http.on("POST", ProviderStub.host + "/ix/chat-messages/vectors/upsert")
        .respond { _ in down }.respond { _ in down }.respond { _ in down }
        .respond { try await providers.send($0) }
      try await fixture.suite.settle()

      #expect(fixture.providers.count("/embeddings") == 1)
      #expect(Set(fixture.providers.records.keys) == ["c1#m1", "c1#m2", "c1#m3"])
      // All three events fail once while the index is down, and then run again.
      #expect(fixture.suite.runCount(of: fixture.functions.embedMessage) == 6)
    }
  }

  @Test("A message's id in another chat reaches no vector but its own")
  func sameID() async throws {
    try await ChatFixture.run { fixture in
      try await fixture.chat("c2", ["cora", "dora"])
      try await fixture.say("m1", "My knee is sore")
      let record = try #require(fixture.providers.records["c1#m1"])
      try await fixture.say("m1", "Taken over", by: "cora", in: "c2")
      #expect(fixture.providers.records["c1#m1"] == record)
      #expect(fixture.providers.records.count == 2)

      try await fixture.delete("m1", in: "c2")
      try await fixture.suite.settle()
      #expect(fixture.providers.records == ["c1#m1": record])
    }
  }

  @Test("Ids of any characters are kept apart; those too long for the index are skipped")
  func unusualIDs() async throws {
    try await ChatFixture.run { fixture in
      try await fixture.chat("c1#m", ["tina", "carl"])
      try await fixture.say("m#1", "one")
      try await fixture.say("1", "two", in: "c1#m")
      try await fixture.say("café 膝", "three")
      #expect(
        fixture.providers.records.mapValues(\.text) == [
          "c1#m%231": "one", "c1%23m#1": "two", "c1#caf%C3%A9%20%E8%86%9D": "three",
        ]
      )

      try await fixture.say(String(repeating: "x", count: 600), "four")
      #expect(fixture.logged("Message skipped")?["reason"] == "its ids are too long")
      #expect(try await fixture.suite.deliveries().allSatisfy { $0.state == .succeeded })
    }
  }

  @Test(
    "A text of any length is embedded and stored cut, once",
    arguments: [
      String(repeating: "knee and elbow ", count: 3000),
      String(repeating: "\u{1}\"/", count: 20_000), String(repeating: "膝", count: 20_000),
      "e" + String(repeating: "\u{301}", count: 30_000),
      String(repeating: " ", count: 30_000) + "knee",
    ]
  )
  func longText(text: String) async throws {
    try await ChatFixture.run(ChatFixture.tinyModel, deliveryFaults: ChatFixture.inOrder) {
      fixture in
      try await fixture.say("m1", text)
      try await fixture.suite.firestore.document("chats/c1/messages/m1")
        .update(["readBy": .arrayUnion("tina")])
      try await fixture.suite.settle()

      let stored = try #require(fixture.providers.records["c1#m1"]?.text)
      #expect(text.drop(while: \.isWhitespace).unicodeScalars.starts(with: stored.unicodeScalars))
      #expect(stored.utf8.count <= 8192 && stored.contains { !$0.isWhitespace })
      #expect(fixture.providers.count("/embeddings") == 1)
      #expect(try await fixture.suite.deliveries().allSatisfy { $0.state == .succeeded })
    }
  }

  @Test("In a group of 1 500, each member finds the messages, and no other user does")
  func largeGroup() async throws {
    try await ChatFixture.run(deliveryFaults: ChatFixture.inOrder) { fixture in
      let members = (0..<1500).map { "uid-\($0)-" + String(repeating: "x", count: 20) }
      try await fixture.chat("g1", members, isGroup: true)
      try await fixture.say("m1", "My knee is sore", by: members[0], in: "g1")

      let record = try #require(fixture.providers.records["g1#m1"])
      let stored = try #require(record.metadata["members"]?.strings)
      #expect(stored.count > 500 && members.starts(with: stored))
      for uid in [members[0], members[1499]] {
        try await fixture.put("users/\(uid)", ["displayName": "Runner", "role": "client"])
        #expect(try await fixture.search("sore knee", as: uid).results.map(\.messageId) == ["m1"])
        let one = try await fixture.search("sore knee", as: uid, chatId: "g1")
        #expect(one.results.map(\.messageId) == ["m1"])
      }
      #expect(try await fixture.search("sore knee", as: "carl").results.isEmpty)
      #expect(try await fixture.search("sore knee", as: "carl", chatId: "g1").results.isEmpty)

      try await fixture.chat("g1", Array(members.dropFirst()), isGroup: true)
      try await fixture.suite.settle()
      #expect(fixture.logged("Chat's vectors refreshed")?["vectors.refreshed"] == "1")
      try await fixture.suite.redeliver(fixture.functions.refreshChatMembers)
      try await fixture.suite.settle()
      #expect(fixture.logged("Chat's vectors refreshed")?["vectors.unchanged"] == "0")
    }
  }

  @Test("A sender that cannot be a user is skipped", arguments: ["", "a/b", "..", "__x__"])
  func malformedSender(sender: String) async throws {
    try await ChatFixture.run { fixture in
      try await fixture.say("m1", "Hello there", by: sender)
      #expect(fixture.providers.records.isEmpty)
      #expect(
        fixture.logged("Message skipped")?["reason"]
          == "it cannot be read: 'senderID' is not the id of a user"
      )
    }
  }

  @Test("A message that changes while it is embedded is embedded again")
  func changeMeanwhile() async throws {
    try await ChatFixture.run(deliveryFaults: ChatFixture.inOrder) { fixture in
      fixture.providers.during("/vectors/upsert") {
        try await fixture.write("m1", "My elbow is sore")
      }
      try await fixture.say("m1", "My knee is sore")

      // The third one comes from the event of the change itself.
      let texts = ["My knee is sore", "My elbow is sore", "My elbow is sore"]
      #expect(fixture.providers.upserted.map(\.text) == texts)
    }
  }

  @Test("Members that change while a message is embedded are in its vector")
  func membersMeanwhile() async throws {
    try await ChatFixture.run(deliveryFaults: ChatFixture.inOrder) { fixture in
      fixture.providers.during("/vectors/upsert") {
        try await fixture.chat("c1", ["tina", "carl", "cora"])
      }
      try await fixture.say("m1", "My knee is sore")

      #expect(
        fixture.providers.upserted.map { $0.metadata["members"] } == [
          .strings(["tina", "carl"]), .strings(["tina", "carl", "cora"]),
        ]
      )
      #expect(fixture.logged("Chat's vectors refreshed")?["vectors.unchanged"] == "1")
    }
  }

  @Test("A new last message of the chat, which the vector does not show, needs no second round")
  func otherFieldsMeanwhile() async throws {
    try await ChatFixture.run(deliveryFaults: ChatFixture.inOrder) { fixture in
      fixture.providers.during("/vectors/upsert") {
        try await fixture.suite.firestore.document("chats/c1").update(["lastMessage": "Hello"])
      }
      try await fixture.say("m1", "My knee is sore")

      #expect(fixture.providers.upserted.map(\.text) == ["My knee is sore"])
    }
  }

  @Test("A message that goes while it is embedded leaves no vector")
  func deletionMeanwhile() async throws {
    try await ChatFixture.run(deliveryFaults: ChatFixture.inOrder) { fixture in
      fixture.providers.during("/vectors/upsert") { try await fixture.delete("m1") }
      try await fixture.say("m1", "My knee is sore")

      #expect(fixture.providers.records.isEmpty)
      // One by the event of the message, one by the event of its deletion.
      #expect(fixture.providers.count("/vectors/delete") == 2)
    }
  }

  @Test("A message that comes back while its vector is deleted has one in the end")
  func returnMeanwhile() async throws {
    try await ChatFixture.run(deliveryFaults: ChatFixture.inOrder) { fixture in
      try await fixture.say("m1", "My knee is sore")
      fixture.providers.during("/vectors/delete") { try await fixture.write("m1", "Back again") }
      try await fixture.delete("m1")
      try await fixture.suite.settle()

      let texts = ["My knee is sore", "Back again", "Back again"]
      #expect(fixture.providers.upserted.map(\.text) == texts)
      #expect(fixture.providers.records["c1#m1"]?.text == "Back again")
    }
  }

  @Test("A message that keeps changing is left to a later attempt")
  func restless() async throws {
    try await ChatFixture.run(deliveryFaults: ChatFixture.inOrder) { fixture in
      for round in 0..<6 {
        fixture.providers.during("/vectors/upsert") {
          try await fixture.write("m1", "Words \(round)")
        }
      }
      try await fixture.say("m1", "Words")

      let runs = fixture.suite.runs(of: fixture.functions.embedMessage).filter { $0.attempt == 1 }
      guard case .failed(let error) = runs.first?.outcome else {
        Issue.record("the first attempt did not fail")
        return
      }
      #expect(error.contains("keeps changing"))
      #expect(fixture.providers.records["c1#m1"]?.text == "Words 5")
      #expect(try await fixture.suite.deliveries().allSatisfy { $0.state == .succeeded })
    }
  }

  @Test(
    "What has no words is skipped with a reason, and has no vector any more",
    arguments: [
      (ChatFixture.message(" \n "), "its text is blank"),
      (ChatFixture.message("").merging(["mediaType": "image"]) { $1 }, "it is media without text"),
    ]
  )
  func skips(message: [String: FieldValue], reason: String) async throws {
    try await ChatFixture.run { fixture in
      try await fixture.say("m1", "My knee is sore")
      try await fixture.put("chats/c1/messages/m1", message)
      try await fixture.suite.settle()

      #expect(fixture.providers.records.isEmpty)
      #expect(fixture.logged("Message skipped")?["reason"] == reason)
    }
  }

  @Test("A message of no chat is skipped")
  func noChat() async throws {
    try await ChatFixture.run { fixture in
      try await fixture.say("m1", "Hello", in: "nowhere")
      #expect(fixture.providers.records.isEmpty)
      #expect(fixture.logged("Message skipped")?["reason"] == "its chat does not exist")
    }
  }

  @Test("A deleted message's vector is deleted")
  func deletion() async throws {
    try await ChatFixture.run { fixture in
      try await fixture.say("m1", "My knee is sore")
      try await fixture.delete("m1")
      try await fixture.suite.settle()

      #expect(fixture.providers.records.isEmpty)
      #expect(fixture.logged("Message is gone, vector deleted") != nil)
    }
  }

  @Test(
    "The trainer is the only one in the chat, else a trainer who sent the message, else none",
    arguments: [
      (["tina", "carl"], "carl", "tina"), (["tina", "tom"], "tom", "tom"),
      (["tina", "tom", "carl"], "carl", nil), (["carl", "cora"], "carl", nil),
      (["old", "carl"], "carl", "old"), (["ghost", "carl"], "carl", nil),
    ] as [([String], String, String?)]
  )
  func trainer(members: [String], sender: String, trainer: String?) async throws {
    try await ChatFixture.run { fixture in
      try await fixture.put("users/tom", ["displayName": "Tom", "role": "trainer"])
      // A user stored before roles existed, and therefore a trainer.
      try await fixture.put("users/old", ["displayName": "Old"])
      try await fixture.chat("c1", members, isGroup: members.count > 2)
      try await fixture.say("m1", "Hello there", by: sender)

      let record = try #require(fixture.providers.records["c1#m1"])
      #expect(record.metadata["trainerId"] == trainer.map { .string($0) })
    }
  }

  @Test("A provider that fails is tried again in place, then later")
  func providerFailure() async throws {
    try await ChatFixture.run(ChatFixture.tinyModel) { fixture in
      let down = OutboundResponse(status: 503)
      fixture.providers.fail(down, OutboundResponse(status: 429, headers: ["retry-after": "2"]))
      try await fixture.say("m1", "Hello")
      #expect(fixture.waits.all == [.milliseconds(500), .seconds(2)])
      #expect(fixture.providers.records.keys.contains("c1#m1"))

      let providers = fixture.providers
      fixture.suite.http.on("POST", ProviderStub.host + "/v1/embeddings")
        .respond { _ in down }.respond { _ in down }.respond { _ in down }
        .respond { try await providers.send($0) }
      try await fixture.say("m2", "Hello again")
      let outcomes = fixture.suite.runs(of: fixture.functions.embedMessage)
        .filter { $0.document == "chats/c1/messages/m2" }.map(\.outcome)
      guard outcomes.count == 2, case .failed(let error) = outcomes[0] else {
        Issue.record("not one failure and one more attempt: \(outcomes)")
        return
      }
      #expect(error.contains("the embedding provider returned 503"))
      #expect(outcomes[1] == .succeeded)
    }
  }

  @Test("A wrong key makes the event wait for an hour, and the key is in no message")
  func wrongKey() async throws {
    try await ChatFixture.run(ChatFixture.tinyModel) { fixture in
      let providers = fixture.providers
      fixture.suite.http.on("POST", ProviderStub.host + "/v1/embeddings").respond(status: 401)
        .respond { try await providers.send($0) }
      let start = fixture.suite.clock.now.date
      try await fixture.say("m1", "Hello")

      #expect(Int(fixture.suite.clock.now.date.timeIntervalSince(start)) == 3600)
      let deliveries = try await fixture.suite.deliveries(of: fixture.functions.embedMessage)
      #expect(deliveries.map(\.state) == [.succeeded])
      #expect(fixture.providers.count("/embeddings") == 1)
      #expect(fixture.waits.all.isEmpty)
      for line in fixture.suite.logs {
        #expect(!"\(line.message) \(line.metadata)".contains("Bearer key"))
      }
    }
  }

  @Test("An index of another model is refused with what to do")
  func otherModel() async throws {
    try await ChatFixture.run { fixture in
      try await fixture.say("m1", "Hello")
      let services = BackendServices(
        firestore: fixture.suite.firestore,
        settings: PsstSettings(
          embedding: ChatFixture.tinyModel,
          vectors: VectorSettings(host: ProviderStub.host)
        ),
        http: fixture.suite.http
      )
      let error = await #expect(throws: ServiceError.self) { try await services.checkIndex() }
      #expect(error?.kind == .misconfigured)
      #expect(error?.message.contains("lexical/hashed-words-1") == true)
      #expect(error?.message.contains("hearth call backfillEmbeddings") == true)

      try await fixture.services.checkIndex()
    }
  }

  @Test("An index with ids of an earlier version is refused with what to do")
  func earlierIDs() async throws {
    try await ChatFixture.run { fixture in
      try await fixture.say("m1", "Hello")
      fixture.providers.retag([
        "embedding_provider": "lexical", "embedding_model": "hashed-words-1",
      ])
      let services = BackendServices(
        firestore: fixture.suite.firestore,
        settings: PsstSettings(
          embedding: .lexical,
          vectors: VectorSettings(host: ProviderStub.host)
        ),
        http: fixture.suite.http
      )
      let error = await #expect(throws: ServiceError.self) { try await services.checkIndex() }
      #expect(error?.kind == .misconfigured)
      #expect(error?.message.contains("hearth call backfillEmbeddings") == true)
      #expect(error?.message.contains("curl -X DELETE") == true)
    }
  }

  @Test("Where the index is of another model, nothing is served")
  func otherModelAtStart() async throws {
    try await ChatFixture.run { fixture in
      try await fixture.say("m1", "Hello")
      let error = await #expect(throws: ServiceError.self) {
        try await withFunctions(\.app) { other in
          other.http.mount(fixture.providers, at: ProviderStub.host)
          return AppFunctions(
            services: BackendServices(
              firestore: other.firestore,
              settings: PsstSettings(
                embedding: ChatFixture.tinyModel,
                vectors: VectorSettings(host: ProviderStub.host)
              ),
              http: other.http
            )
          )
        } test: { _, _ in
          Issue.record("the test began")
        }
      }
      #expect(error?.kind == .misconfigured)
    }
  }

  @Test("An index that was deleted is made again")
  func indexDeleted() async throws {
    try await ChatFixture.run { fixture in
      try await fixture.say("m1", "Hello")
      fixture.providers.deleteIndex()
      try await fixture.say("m2", "Hello")
      #expect(Array(fixture.providers.records.keys) == ["c1#m2"])
    }
  }
}

extension VectorRecord {
  /// The embedded text.
  var text: String? { metadata["text"]?.string }
}
