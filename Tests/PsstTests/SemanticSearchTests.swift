import FunctionsTesting
import PsstFunctions
import PsstBackend
import PsstServices
import Testing

@Suite("semanticSearch")
struct SemanticSearchTests {
  /// Runs a test with four messages in two chats; later events wait until the suite settles.
  private func amongMessages(_ test: (ChatFixture) async throws -> Void) async throws {
    try await ChatFixture.run(deliveryFaults: ChatFixture.inOrder) { fixture in
      try await fixture.chat("c2", ["tina", "cora"])
      try await fixture.write("m1", "My knee is sore since Monday")
      try await fixture.write("m2", "Breakfast was oats and berries")
      try await fixture.write("m3", "The left knee hurts when I squat", by: "tina")
      try await fixture.write("m4", "Sore knee, sore knee", by: "cora", in: "c2")
      try await fixture.suite.settle()
      try await test(fixture)
    }
  }

  @Test("Relevant messages of the caller's chats come best first")
  func finds() async throws {
    try await amongMessages { fixture in
      let reply = try await fixture.search("sore knee")

      #expect(reply.results.map(\.messageId) == ["m1", "m3"])
      let first = try #require(reply.results.first)
      #expect(first.chatId == "c1")
      #expect(first.senderId == "carl")
      #expect(first.senderName == "Carl")
      #expect(first.timestamp == 1_714_557_600_123)
      #expect(first.score > reply.results[1].score)
      #expect(reply.provider == "lexical")
      #expect(reply.model == "hashed-words-1")
      #expect(reply.degraded)
    }
  }

  @Test("Limit, chat and score narrow the results")
  func narrows() async throws {
    try await amongMessages { fixture in
      func found(
        _ query: String = "sore knee",
        as uid: String = "carl",
        limit: Int? = nil,
        chatId: String? = nil,
        minScore: Double? = nil
      ) async throws -> [String] {
        try await fixture.search(query, as: uid, limit: limit, chatId: chatId, minScore: minScore)
          .results.map(\.messageId)
      }

      let one = try await found(limit: 1)
      #expect(one == ["m1"])
      #expect(try await found("knee", as: "tina", chatId: "c2") == ["m4"])
      #expect(try await found(minScore: 0.99).isEmpty)
      #expect(try await found(minScore: -1).count == 3)
      #expect(try await found(chatId: "c2").isEmpty)
    }
  }

  @Test("Who has left a chat finds nothing of it, even before the vectors know")
  func leftMember() async throws {
    try await amongMessages { fixture in
      try await fixture.chat("c1", ["tina"])
      #expect(try await fixture.search("sore knee").results.isEmpty)
    }
  }

  @Test("Hits that may not be shown do not crowd out those that may")
  func crowdedOut() async throws {
    try await ChatFixture.run(deliveryFaults: ChatFixture.inOrder) { fixture in
      try await fixture.chat("old", ["carl", "cora"])
      for number in 0..<60 { try await fixture.write("o\(number)", "sore knee", in: "old") }
      try await fixture.say("m1", "my sore knee again, and much else besides")
      try await fixture.chat("old", ["cora"])

      #expect(try await fixture.search("sore knee", limit: 2).results.map(\.messageId) == ["m1"])
    }
  }

  @Test("A message that is gone is not shown, and an edited one as it is now")
  func stale() async throws {
    try await amongMessages { fixture in
      try await fixture.delete("m3")
      try await fixture.write("m1", "My knee is fine")
      let reply = try await fixture.search("sore knee")
      #expect(reply.results.map(\.text) == ["My knee is fine"])
    }
  }

  @Test("A repeated query asks the provider once")
  func cache() async throws {
    try await ChatFixture.run(ChatFixture.tinyModel) { fixture in
      try await fixture.say("m1", "knee")
      let before = fixture.providers.count("/embeddings")
      for _ in 0..<3 { _ = try await fixture.search("  sore knee ") }
      #expect(fixture.providers.count("/embeddings") == before + 1)
    }
  }

  @Test(
    "Requests that make no sense are refused",
    arguments: [
      SemanticSearchQueryCase(query: "  "), SemanticSearchQueryCase(query: "a", limit: 0),
      SemanticSearchQueryCase(query: "a", limit: 51),
      SemanticSearchQueryCase(query: "a", chatId: "a/b"),
      SemanticSearchQueryCase(query: "a" + String(repeating: "\u{301}", count: 10_000)),
      SemanticSearchQueryCase(query: "a", chatId: ".."),
      SemanticSearchQueryCase(query: "a", chatId: "__x__"),
      SemanticSearchQueryCase(query: "a", minScore: 2),
      SemanticSearchQueryCase(query: String(repeating: "a", count: 1001)),
    ]
  )
  func refusals(query: SemanticSearchQueryCase) async throws {
    try await ChatFixture.run { fixture in
      let error = await #expect(throws: CallableError.self) {
        _ = try await fixture.search(
          query.query,
          limit: query.limit,
          chatId: query.chatId,
          minScore: query.minScore
        )
      }
      #expect(error?.code == .invalidArgument)
      #expect(fixture.providers.requests.isEmpty)
    }
  }

  @Test("Only who is signed in may search", arguments: [TestToken.anonymous, .admin])
  func unauthenticated(token: TestToken) async throws {
    try await ChatFixture.run { fixture in
      let query = SemanticSearchQuery(query: "knee")
      let error = await #expect(throws: CallableError.self) {
        try await fixture.suite.call(fixture.functions.semanticSearch, query, as: token)
      }
      #expect(error?.code == .unauthenticated)
    }
  }

  @Test("A renamed sender has the new name, and one without a usable name has none")
  func senderName() async throws {
    try await amongMessages { fixture in
      try await fixture.put("users/carl", ["displayName": "Charles", "role": "client"])
      try await fixture.put("users/tina", ["displayName": 7, "role": "trainer"])
      let reply = try await fixture.search("sore knee")
      #expect(reply.results.map(\.senderName) == ["Charles", ""])
    }
  }

  @Test("A malformed message hides itself and nothing else")
  func malformed() async throws {
    try await amongMessages { fixture in
      try await fixture.put("chats/c1/messages/m1", ["text": 5, "senderID": "carl"])
      #expect(try await fixture.search("sore knee").results.map(\.messageId) == ["m3"])
    }
  }
}

/// The arguments of a rejected query.
struct SemanticSearchQueryCase: Sendable {
  var query: String
  var limit: Int?
  var chatId: String?
  var minScore: Double?
}

@Suite("semanticSearch without its provider")
struct DegradedSearchTests {
  private static let embeddings = ProviderStub.host + "/v1/embeddings"

  /// Runs a test with messages in two chats and a provider that the test scripts.
  private func amongMessages(
    clock: any Clock<Duration> = WakingClock(wakes: 0),
    _ test: (ChatFixture) async throws -> Void
  ) async throws {
    try await ChatFixture.run(
      ChatFixture.tinyModel,
      deliveryFaults: ChatFixture.inOrder,
      clock: clock
    ) { fixture in
      try await fixture.chat("c2", ["tina", "cora"])
      try await fixture.write("m1", "My knee is sore since Monday")
      try await fixture.write("m2", "Breakfast was oats and berries")
      try await fixture.write("m3", "The left knee hurts when I squat", by: "tina")
      try await fixture.write("m4", "Sore knee, sore knee", by: "cora", in: "c2")
      try await fixture.write("m5", "膝盖很疼", by: "tina")
      try await test(fixture)
    }
  }

  @Test(
    "The caller's recent messages are searched for the words, best first",
    arguments: [
      OutboundResponse(status: 503), OutboundResponse(status: 500), OutboundResponse(status: 401),
      OutboundResponse(status: 404), OutboundResponse(status: 200, body: Array("<html>".utf8)),
      OutboundResponse(
        status: 429,
        body: Array(#"{"error":{"code":"insufficient_quota","message":"m"}}"#.utf8)
      ),
      OutboundResponse(status: 429, headers: ["retry-after": "600"]),
    ]
  )
  func words(fault: OutboundResponse) async throws {
    try await amongMessages { fixture in
      fixture.suite.http.on("POST", Self.embeddings).respond { _ in fault }
      let reply = try await fixture.search("the sore knees")

      #expect(reply.results.map(\.messageId) == ["m1", "m3"])
      #expect(reply.results.map(\.senderName) == ["Carl", "Tina"])
      #expect(reply.degraded && reply.provider == "words" && reply.model == "recent-messages")
      #expect(fixture.logged("Search degraded to words")?["reason"]?.isEmpty == false)
    }
  }

  @Test("A wrong key is an error in the log once, however many search")
  func loudOnce() async throws {
    try await amongMessages { fixture in
      fixture.suite.http.on("POST", Self.embeddings).respond(status: 401)
      for query in ["knee", "oats", "berries"] { _ = try await fixture.search(query) }
      let lines = fixture.suite.logs.filter { $0.message == "Search degraded to words" }
      #expect(lines.map(\.level) == [.error, .info, .info])
    }
  }

  @Test("An index that is down is no reason to find nothing")
  func indexDown() async throws {
    try await amongMessages { fixture in
      fixture.suite.http.on("GET", ProviderStub.host + "/indexes/chat-messages")
        .respond(status: 503)
      let reply = try await fixture.search("sore knee")
      #expect(reply.results.map(\.messageId) == ["m1", "m3"])
      #expect(reply.degraded)
    }
  }

  @Test("A provider that does not answer is waited for only so long")
  func silence() async throws {
    try await amongMessages(clock: WakingClock(wakes: 1)) { fixture in
      fixture.suite.http.on("POST", Self.embeddings).respond { _ in
        try await Task.sleep(for: .seconds(3600))
        return OutboundResponse(status: 500)
      }
      let reply = try await fixture.search("sore knee")
      #expect(reply.results.map(\.messageId) == ["m1", "m3"])
      #expect(reply.degraded)
    }
  }

  @Test("A database that does not answer either ends the search with what was found")
  func databaseSilent() async throws {
    try await amongMessages { fixture in
      let faults = FaultyFirestore(fixture.suite.firestore)
      faults.stallQueries()
      let services = BackendServices(
        firestore: faults.firestore,
        settings: PsstSettings(
          embedding: ChatFixture.tinyModel,
          vectors: VectorSettings(host: ProviderStub.host)
        ),
        http: fixture.suite.http,
        // The first sleeper limits the semantic search, the second one the keyword search.
        clock: WakingClock(wakes: 2)
      )
      let found = try await services.search.search("sore knee", as: "carl", limit: 10)
      #expect(found.hits.isEmpty && found.model.isDegraded)
      #expect(found.failure?.kind == .unavailable)
    }
  }

  @Test("Limit, chat, score and membership narrow the results as ever")
  func narrows() async throws {
    try await amongMessages { fixture in
      fixture.suite.http.on("POST", Self.embeddings).respond(status: 503)
      func found(
        _ query: String,
        as uid: String = "tina",
        limit: Int? = nil,
        chatId: String? = nil,
        minScore: Double? = nil
      ) async throws -> [String] {
        try await fixture.search(query, as: uid, limit: limit, chatId: chatId, minScore: minScore)
          .results.map(\.messageId)
      }

      #expect(try await found("knee", chatId: "c2") == ["m4"])
      #expect(try await found("sore knee", limit: 1).count == 1)
      #expect(try await found("knee tomorrow") == ["m1", "m3", "m4"])
      #expect(try await found("knee tomorrow", minScore: 0.9).isEmpty)
      #expect(try await found("nothing like it", minScore: -1).isEmpty)
      #expect(try await found("很疼") == ["m5"])
      #expect(try await found("sore knee", as: "carl", chatId: "c2").isEmpty)
      try await fixture.chat("c1", ["tina"])
      #expect(try await found("sore knee", as: "carl").isEmpty)
    }
  }

  @Test("With many chats, those with the latest messages are searched")
  func manyChats() async throws {
    try await amongMessages { fixture in
      fixture.suite.http.on("POST", Self.embeddings).respond(status: 503)
      for number in 0..<60 {
        try await fixture.put(
          "chats/x\(number)",
          [
            "members": ["cora"], "isGroupChat": false,
            "lastMessageTimestamp": .value(Timestamp(microseconds: Int64(number) * 1_000_000)),
          ]
        )
        try await fixture.write("n\(number)", "Ankle", by: "cora", in: "x\(number)")
      }
      let found = try await fixture.search("ankle", as: "cora", limit: 50).results.map(\.chatId)
      #expect(Set(found) == Set((20..<60).map { "x\($0)" }))
    }
  }
}

@Suite("refreshChatMembers")
struct RefreshChatMembersTests {
  @Test("New members are in the chat's vectors, and no text is embedded again")
  func refreshes() async throws {
    try await ChatFixture.run(ChatFixture.tinyModel) { fixture in
      for number in 0..<5 { try await fixture.write("m\(number)", "message number \(number)") }
      try await fixture.suite.settle()
      let vectors = fixture.providers.records.mapValues(\.values)
      let embedded = fixture.providers.count("/embeddings")
      try await fixture.chat("c1", ["tina", "carl", "cora"])
      try await fixture.suite.settle()

      #expect(
        fixture.providers.records.values.allSatisfy {
          $0.metadata["members"] == .strings(["tina", "carl", "cora"])
        }
      )
      #expect(fixture.providers.records.mapValues(\.values) == vectors)
      #expect(fixture.providers.count("/embeddings") == embedded)
      #expect(fixture.logged("Chat's vectors refreshed")?["vectors.refreshed"] == "5")
    }
  }

  @Test("A trainer who leaves is in no vector any more")
  func trainerLeaves() async throws {
    try await ChatFixture.run { fixture in
      try await fixture.say("m1", "Hello there")
      #expect(fixture.providers.records["c1#m1"]?.metadata["trainerId"] == .string("tina"))
      try await fixture.chat("c1", ["carl", "cora"])
      try await fixture.suite.settle()
      #expect(fixture.providers.records["c1#m1"]?.metadata["trainerId"] == nil)
    }
  }

  @Test("A deleted chat's vectors go with it, and no others")
  func deletedChat() async throws {
    try await ChatFixture.run { fixture in
      // IDs with a common prefix, and IDs that resemble vector IDs of the deleted chat.
      for chat in ["c", "c10", "c1#m", "c1%23m"] { try await fixture.chat(chat, ["tina", "carl"]) }
      for number in 0..<120 { try await fixture.write("m\(number)", "message \(number)") }
      for chat in ["c", "c10", "c1#m", "c1%23m"] { try await fixture.write("1", "hello", in: chat) }
      try await fixture.suite.settle()
      #expect(fixture.providers.records.count == 124)
      try await fixture.suite.firestore.document("chats/c1").delete()
      try await fixture.suite.settle()

      #expect(
        Set(fixture.providers.records.keys) == ["c#1", "c10#1", "c1%23m#1", "c1%2523m#1"]
      )
      #expect(fixture.logged("Chat is gone, vectors deleted")?["vectors.deleted"] == "120")
    }
  }

  @Test("A second run finds nothing left to do, page after page")
  func pages() async throws {
    try await ChatFixture.run { fixture in
      for number in 0..<230 { try await fixture.write("m\(number)", "message \(number)") }
      try await fixture.suite.settle()
      try await fixture.chat("c1", ["tina", "carl", "cora"])
      try await fixture.suite.settle()
      #expect(fixture.logged("Chat's vectors refreshed")?["vectors.refreshed"] == "230")

      try await fixture.suite.redeliver(fixture.functions.refreshChatMembers)
      try await fixture.suite.settle()
      #expect(fixture.logged("Chat's vectors refreshed")?["vectors.unchanged"] == "230")
    }
  }

  @Test("A new last message is no change of members")
  func sameMembers() async throws {
    try await ChatFixture.run { fixture in
      try await fixture.suite.firestore.document("chats/c1").update(["lastMessage": "Hello"])
      try await fixture.suite.settle()

      #expect(fixture.logged("Chat skipped") != nil)
      #expect(fixture.providers.requests.isEmpty)
    }
  }

  @Test("A late event does what the chat is now, not what it was")
  func lateEvent() async throws {
    try await ChatFixture.run(deliveryFaults: ChatFixture.inOrder) { fixture in
      try await fixture.say("m1", "Hello there")
      try await fixture.chat("c1", ["tina", "carl", "cora"])
      try await fixture.chat("c1", ["carl"])
      try await fixture.suite.settle()

      #expect(
        fixture.providers.upserted.map { $0.metadata["members"] }
          == [.strings(["tina", "carl"]), .strings(["carl"])]
      )
      #expect(fixture.logged("Chat's vectors refreshed")?["vectors.unchanged"] == "1")
    }
  }
}
