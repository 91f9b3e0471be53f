import FirestoreClient
import FunctionsRuntime
import FunctionsTesting
import OutboundHTTP
import PsstFunctions
@testable import PsstBackend
import Synchronization
import Testing

@Suite("backfillEmbeddings")
struct BackfillEmbeddingsTests {
  private static let embeddings = ProviderStub.host + "/v1/embeddings"

  /// Creates messages m0, m1, … and one message of each kind that needs no vector.
  private func messages(_ count: Int, _ fixture: AdministrationFixture) async throws {
    try await fixture.people()
    for number in 0..<count { try await fixture.message("m\(number)", "Knee number \(number)") }
    try await fixture.message("blank", " \n")
    try await fixture.message("image", nil)
  }

  @Test("Messages without a vector get the record that embedMessage makes")
  func records() async throws {
    try await withAdministration { fixture in
      try await messages(3, fixture)
      for number in 0..<3 {
        _ = try await fixture.services.indexer.index(chatID: "c1", messageID: "m\(number)")
      }
      let made = fixture.providers.records
      try await fixture.services.vectors.delete(["c1#m0", "c1#m2"])
      let dry = try await fixture.backfill(dryRun: true)
      #expect(fixture.providers.records.count == 1)
      let real = try await fixture.backfill()

      #expect(fixture.providers.records == made)
      #expect(dry.scanned == 5 && dry.missing == 2 && dry.embedded == 0 && dry.skipped == 2)
      #expect(real.scanned == 5 && real.missing == 2 && real.embedded == 2 && real.skipped == 2)
      #expect(real.done && real.stopped == nil && real.estimatedCostUSD == 0)
    }
  }

  @Test("A second run writes nothing")
  func secondRun() async throws {
    try await withAdministration { fixture in
      try await messages(3, fixture)
      _ = try await fixture.backfill()
      let upserts = fixture.providers.count("/vectors/upsert")
      let second = try await fixture.backfill()

      #expect(second.missing == 0 && second.embedded == 0 && second.done)
      #expect(fixture.providers.count("/vectors/upsert") == upserts)
    }
  }

  @Test("A limit ends a run, and the next one goes on and looks at everything")
  func limit() async throws {
    try await withAdministration { fixture in
      try await messages(5, fixture)
      let first = try await fixture.backfill(limit: 3)
      #expect(first.embedded == 3 && !first.done && first.stopped != nil)
      #expect(fixture.providers.records.keys.sorted() == ["c1#m0", "c1#m1", "c1#m2"])

      try await fixture.services.vectors.delete(["c1#m0"])
      let second = try await fixture.backfill()
      #expect(second.embedded == 3 && second.scanned == 7 && second.done)
      #expect(fixture.providers.records.count == 5)
    }
  }

  @Test("A run after one that was killed between two pages pays for what is left alone")
  func crash() async throws {
    try await withAdministration { fixture in
      try await fixture.people()
      for number in 0..<500 { try await fixture.message("m\(number)", "Knee \(number)") }
      // lease · page of 480 · the database fails · the lease is not released
      fixture.faults.decide { $0 == 1 ? .none() : .refused }
      fixture.faults.refuseQueries(after: 1)
      let error = await #expect(throws: CallableError.self) { try await fixture.backfill() }
      #expect(error?.code == .unavailable)
      #expect(fixture.providers.records.count == 480)
      fixture.faults.decide(nil)
      fixture.faults.refuseQueries(after: nil)
      try await fixture.outliveLeases()
      let reply = try await fixture.backfill()

      #expect(reply.scanned == 500 && reply.missing == 20 && reply.embedded == 20 && reply.done)
      #expect(fixture.providers.records.count == 500)
    }
  }

  @Test("Only the chat asked for is embedded, and nothing but messages of chats")
  func scope() async throws {
    try await withAdministration { fixture in
      try await messages(1, fixture)
      try await fixture.message("other", "Knee elsewhere", in: "c2")
      try await fixture.message("orphan", "Knee nowhere", in: "none")
      try await fixture.db.document("users/tina/ai_conversations/a/messages/x").set([
        "text": "Hello", "content": "Hello",
      ])
      try await fixture.db.document("archive/a/messages/y").set(["text": "Hello"])
      let one = try await fixture.backfill(chatId: "c1")
      #expect(one.embedded == 1 && one.done)
      #expect(Array(fixture.providers.records.keys) == ["c1#m0"])

      let all = try await fixture.backfill()
      #expect(all.scanned == 5 && all.embedded == 1 && all.skipped == 3 && all.done)
      #expect(fixture.providers.records.keys.sorted() == ["c1#m0", "c2#other"])
    }
  }

  @Test("A message that is edited while it is embedded has the vector of its last text")
  func editedMeanwhile() async throws {
    try await withAdministration(ChatFixture.tinyModel) { fixture in
      try await messages(2, fixture)
      let providers = fixture.providers
      fixture.suite.http.on("POST", Self.embeddings)
        .respond { request in
          try await fixture.message("m1", "Quite another text")
          return try await providers.send(request)
        }
        .respond { try await providers.send($0) }
      let reply = try await fixture.backfill()

      #expect(reply.embedded == 2 && reply.failed == 0)
      let record = try #require(fixture.providers.records["c1#m1"])
      #expect(record.metadata["text"] == .string("Quite another text"))
    }
  }

  @Test("A text that the provider refuses fails alone")
  func refused() async throws {
    try await withAdministration(ChatFixture.tinyModel) { fixture in
      try await messages(4, fixture)
      let providers = fixture.providers
      fixture.suite.http.on("POST", Self.embeddings).respond { request in
        let isRefused = String(decoding: request.body, as: UTF8.self).contains("number 2")
        return isRefused ? OutboundResponse(status: 400) : try await providers.send(request)
      }
      let reply = try await fixture.backfill()

      #expect(reply.missing == 4 && reply.embedded == 3 && reply.failed == 1 && reply.done)
      #expect(fixture.providers.records.keys.sorted() == ["c1#m0", "c1#m1", "c1#m3"])
    }
  }

  @Test("A provider that is down ends the run, and the next one does what is left")
  func providerDown() async throws {
    try await withAdministration(ChatFixture.tinyModel) { fixture in
      try await messages(2, fixture)
      let providers = fixture.providers
      // Three failures: the call itself and its immediate retries.
      let route = fixture.suite.http.on("POST", Self.embeddings)
      for _ in 0..<3 { route.respond(status: 503) }
      route.respond { try await providers.send($0) }
      let first = try await fixture.backfill()
      #expect(first.failed == 2 && first.embedded == 0 && !first.done)
      #expect(first.stopped?.contains("503") == true)

      // The circuit is still open.
      let second = try await fixture.backfill()
      #expect(second.failed == 2 && second.stopped?.contains("503") == true)

      try await fixture.suite.clock.advance(by: .seconds(30))
      let third = try await fixture.backfill()
      #expect(third.embedded == 2 && third.done)
    }
  }

  @Test("Runs at once go one after another, also over other chats, and pay once")
  func concurrentRuns() async throws {
    try await withAdministration(ChatFixture.tinyModel) { fixture in
      try await messages(4, fixture)
      async let all = fixture.backfill()
      async let chat = fixture.backfill(chatId: "c1")
      let replies = try await [all, chat]

      #expect(replies.map(\.embedded).sorted() == [0, 4])
      #expect(replies.allSatisfy { $0.done })
      #expect(fixture.providers.count("/embeddings") == 1)
    }
  }

  @Test("Beside a run that is alive there is no other; a dry run needs no lease")
  func heldLease() async throws {
    try await withAdministration { fixture in
      try await messages(2, fixture)
      try await fixture.lease("backfillEmbeddings")
      #expect(try await fixture.backfill(dryRun: true).missing == 2)

      let error = await fixture.refusal { try await fixture.backfill() } as? CallableError
      #expect(error?.code == .aborted)
      #expect(error?.message.contains("held by the run other") == true)
      #expect(fixture.providers.records.isEmpty)
    }
  }

  @Test("Tokens are the provider's, estimated for a dry run, and cost what the model costs")
  func cost() async throws {
    guard case .openAI(let baseURL, let key, var model) = ChatFixture.tinyModel else { return }
    model.dollarsPerMillionTokens = 2
    try await withAdministration(.openAI(baseURL: baseURL, key: key, model: model)) { fixture in
      try await messages(2, fixture)
      let dry = try await fixture.backfill(dryRun: true)
      #expect(dry.tokens == 8)
      #expect(dry.estimatedCostUSD == 0.000016)

      let real = try await fixture.backfill()
      #expect(real.tokens > 0)
      #expect(real.estimatedCostUSD == 2 * Double(real.tokens) / 1_000_000)
    }
    try await withAdministration(ChatFixture.tinyModel) { fixture in
      let unpriced = try await fixture.backfill()
      #expect(unpriced.estimatedCostUSD == nil)
    }
  }

  @Test("Without a confirmed order nothing is embedded")
  func dryUnlessConfirmed() async throws {
    try await withAdministration { fixture in
      try await messages(2, fixture)
      let reply = try await fixture.suite.call(
        fixture.functions.backfillEmbeddings,
        BackfillOrder(),
        as: .admin
      )
      #expect(reply.dryRun && reply.missing == 2 && reply.embedded == 0 && reply.done)
      for confirm in [nil, "", "migrate"] as [String?] {
        let error = await #expect(throws: CallableError.self) {
          try await fixture.backfill(confirm: confirm)
        }
        #expect(error?.code == .invalidArgument)
      }
      #expect(fixture.providers.records.isEmpty)
    }
  }

  /// A model that costs `dollars` for a million tokens.
  private static func pricedModel(_ dollars: Double?) -> EmbeddingSettings {
    guard case .openAI(let baseURL, let key, var model) = ChatFixture.tinyModel else {
      return .lexical
    }
    model.dollarsPerMillionTokens = dollars
    return .openAI(baseURL: baseURL, key: key, model: model)
  }

  @Test("A run spends no more than maxCostUSD, and the next one goes on", arguments: [true, false])
  func maxCost(isDry: Bool) async throws {
    let limits = UsageLimits(dollarsPerDay: 1_000_000)
    try await withAdministration(Self.pricedModel(1_000_000), limits: limits) { fixture in
      try await fixture.people()
      // A batch has 120 messages, each with 16 bytes and 4 tokens.
      for number in 100..<350 { try await fixture.message("m\(number)", "Knee number \(number)!") }
      let part = try await fixture.backfill(dryRun: isDry, maxCostUSD: 500)
      #expect(part.estimatedCostUSD.map { $0 > 400 && $0 <= 500 } == true)
      #expect(part.stopped?.contains("maxCostUSD") == true && !part.done)
      #expect(part.embedded == (isDry ? 0 : 120))

      let none = try await fixture.backfill(dryRun: isDry, maxCostUSD: 0)
      #expect(none.tokens == 0 && none.embedded == 0 && none.stopped != nil)

      let rest = try await fixture.backfill(dryRun: isDry, maxCostUSD: 1000)
      #expect(rest.done && rest.embedded == (isDry ? 0 : 130))
    }
  }

  @Test("A cost that cannot be counted, or makes no sense, is refused")
  func senselessCost() async throws {
    try await withAdministration(Self.pricedModel(nil)) { fixture in
      try await messages(1, fixture)
      let unknown = await #expect(throws: CallableError.self) {
        try await fixture.backfill(maxCostUSD: 1)
      }
      #expect(unknown?.code == .failedPrecondition)
      #expect(unknown?.message.contains("PSST_EMBEDDING_PRICE") == true)
      let negative = await #expect(throws: CallableError.self) {
        try await fixture.backfill(maxCostUSD: -1)
      }
      #expect(negative?.code == .invalidArgument)
      #expect(fixture.providers.records.isEmpty)
    }
  }

  @Test("A record that the index refuses fails alone; every text is paid once, and counted")
  func refusedRecord() async throws {
    try await withAdministration(ChatFixture.tinyModel) { fixture in
      try await messages(4, fixture)
      let providers = fixture.providers
      fixture.suite.http.on("POST", ProviderStub.host + "/ix/chat-messages/vectors/upsert")
        .respond { request in
          let isRefused = String(decoding: request.body, as: UTF8.self).contains("number 2")
          return isRefused ? OutboundResponse(status: 400) : try await providers.send(request)
        }
      let reply = try await fixture.backfill()

      #expect(reply.embedded == 3 && reply.failed == 1 && reply.done)
      #expect(reply.errors.count == 1 && reply.errors.first?.contains("400") == true)
      #expect(fixture.suite.logs.contains { $0.message == "A backfill left messages out" })
      // Four texts of 13 bytes each.
      #expect(reply.tokens == 13)
      #expect(fixture.providers.count("/embeddings") == 1)
    }
  }

  @Test("Tokens of a batch whose vectors could not be stored are counted")
  func indexDown() async throws {
    try await withAdministration(ChatFixture.tinyModel) { fixture in
      try await messages(4, fixture)
      fixture.suite.http.on("POST", ProviderStub.host + "/ix/chat-messages/vectors/upsert")
        .respond(status: 503)
      let reply = try await fixture.backfill()

      #expect(reply.embedded == 0 && reply.failed == 4 && !reply.done)
      #expect(reply.tokens == 13)
      #expect(reply.stopped?.contains("503") == true)
    }
  }

  @Test("Long texts are embedded in requests that the provider takes, equal ones once")
  func longTexts() async throws {
    try await withAdministration(ChatFixture.tinyModel) { fixture in
      try await fixture.people()
      let long = String(repeating: "knee and elbow ", count: 3000)
      for number in 0..<50 { try await fixture.message("m\(number)", "\(number) \(long)") }
      for number in 50..<60 { try await fixture.message("m\(number)", "The same again") }
      let reply = try await fixture.backfill()

      #expect(reply.embedded == 60 && reply.failed == 0 && reply.done)
      let requests = fixture.providers.requests.filter { $0.url.hasSuffix("/embeddings") }
      #expect(requests.count == 2)
      let texts = requests.map { String(decoding: $0.body, as: UTF8.self) }
      #expect(texts.map { $0.ranges(of: "The same again").count }.reduce(0, +) == 1)
    }
  }

  @Test("A message that can have no vector is skipped by each run, dry or not")
  func unusualIDs() async throws {
    try await withAdministration { fixture in
      try await messages(1, fixture)
      try await fixture.message(String(repeating: "x", count: 600), "Hello")
      try await fixture.message("café", "Hello")
      let dry = try await fixture.backfill(dryRun: true)
      #expect(dry.missing == 2 && dry.skipped == 3)
      let real = try await fixture.backfill()
      #expect(real.embedded == 2 && real.skipped == 3 && real.failed == 0)
    }
  }

  @Test("An index of another model is refused with what to do")
  func otherModel() async throws {
    try await withAdministration { fixture in
      try await messages(1, fixture)
      _ = try await fixture.services.indexer.index(chatID: "c1", messageID: "m0")
      fixture.providers.retag(["embedding_provider": "openai", "embedding_model": "tiny"])
      let services = BackendServices(
        firestore: fixture.db,
        settings: PsstSettings(
          embedding: .lexical,
          vectors: VectorSettings(host: ProviderStub.host)
        ),
        http: fixture.providers
      )
      let error = await #expect(throws: ServiceError.self) {
        try await services.embeddingBackfill.run(chatID: nil, limit: nil, dryRun: true)
      }
      #expect(error?.kind == .misconfigured)
      #expect(error?.message.contains("hearth call backfillEmbeddings") == true)
    }
  }

  @Test(
    "Only administrators may, and only what makes sense",
    arguments: [
      (TestToken.anonymous, StatusCode.unauthenticated), ("tina", .permissionDenied),
      (.user("tina", claims: ["admin": .boolean(true)]), .invalidArgument),
      (.admin, .invalidArgument),
    ]
  )
  func access(token: TestToken, code: StatusCode) async throws {
    try await withAdministration { fixture in
      for (chatID, limit) in [("", 1), ("a/b", 1), ("c1", 0), ("c1", -1)] {
        let error = await #expect(throws: CallableError.self) {
          try await fixture.backfill(chatId: chatID, limit: limit, as: token)
        }
        #expect(error?.code == code)
      }
    }
  }

  @Test("Requests keep within both rates, and a pause is not made up for")
  func pace() {
    var pace = RequestPace(BackfillSettings(requestsPerMinute: 60, tokensPerMinute: 600))
    #expect(pace.wait(tokens: 1, now: .zero) == .zero)
    #expect(pace.wait(tokens: 100, now: .zero) == .seconds(1))
    #expect(pace.wait(tokens: 1, now: .seconds(2)) == .seconds(9))
    #expect(pace.wait(tokens: 1, now: .seconds(60)) == .zero)
    #expect(pace.wait(tokens: 1, now: .seconds(60)) == .seconds(1))
  }

  @Test("A rate of nothing is refused, others are taken")
  func rates() throws {
    #expect(throws: ServiceError.self) {
      try BackfillSettings(environment: ["PSST_EMBEDDING_TOKENS_PER_MINUTE": "0"])
    }
    let settings = try BackfillSettings(environment: ["PSST_EMBEDDING_REQUESTS_PER_MINUTE": "12.5"])
    #expect(settings == BackfillSettings(requestsPerMinute: 12.5))
  }
}
