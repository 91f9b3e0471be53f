import FunctionsTesting
import OpenAIStub
import OutboundHTTP
import PsstFunctions
import PsstModels
import PsstBackend
import PsstServices
import Testing

/// Messages that wait hours or days for a provider that fails for everyone.
@Suite("Outages of providers")
struct OutageTests {
  /// A failure of a provider that affects everyone.
  struct Outage: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var answer: Result<OutboundResponse, OutboundHTTPError>
    /// The problem to correct, as named in the log.
    var correction: String?

    static func status(
      _ status: Int,
      _ body: String = "",
      headers: OutboundHeaders = [:],
      correction: String? = nil
    ) -> Outage {
      Outage(
        testDescription: "\(status) \(body) \(headers)",
        answer: .success(
          OutboundResponse(status: status, headers: headers, body: Array(body.utf8))
        ),
        correction: correction
      )
    }
  }

  static let wrongKey = Outage.status(
    401,
    #"{"error":{"message":"Incorrect API key provided: key.","code":"invalid_api_key"}}"#,
    correction: "OPENAI_API_KEY"
  )
  static let outages = [
    wrongKey,
    .status(
      404,
      #"{"error":{"message":"The model does not exist","code":"model_not_found"}}"#,
      correction: "PSST_EMBEDDING_MODEL"
    ),
    .status(
      429,
      #"{"error":{"message":"Slow down","code":"rate_limit_exceeded"}}"#,
      headers: ["retry-after": "1"]
    ),
    .status(
      429,
      #"{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}"#,
      correction: "quota"
    ),
    .status(500), .status(302), .status(200, "<html>Sign in</html>"),
    .status(200, #"{"data":[]}"#),
    Outage(
      testDescription: "nothing",
      answer: .failure(OutboundHTTPError(.timedOut, "no answer in 30 s"))
    ),
  ]

  /// The real time that hours of a hundred events may take, beside other tests on two cores.
  private static let hoursTimeout: Duration = .seconds(120)

  private func write(_ count: Int, _ fixture: ChatFixture) async throws {
    for number in 0..<count { try await fixture.write("m\(number)", "message number \(number)") }
  }

  @Test(
    "An hour of outage with 100 waiting messages costs few requests",
    arguments: [.status(503), wrongKey] as [Outage]
  )
  func hour(outage: Outage) async throws {
    try await expectFewRequests(outage, messages: 100)
  }

  @Test("However a provider fails everybody, messages wait for it", arguments: outages)
  func kinds(outage: Outage) async throws {
    try await expectFewRequests(outage, messages: 10)
  }

  private func expectFewRequests(_ outage: Outage, messages: Int) async throws {
    try await ChatFixture.run(ChatFixture.tinyModel) { fixture in
      fixture.providers.breakDown("/embeddings", outage.answer)
      try await write(messages, fixture)
      try await fixture.suite.clock.advance(by: .seconds(3599), timeout: Self.hoursTimeout)

      let requests = fixture.providers.count("/embeddings")
      #expect(requests >= 1 && requests < 40)
      #expect(
        try await fixture.suite.deliveries(of: fixture.functions.embedMessage)
          .allSatisfy { $0.state == .pending }
      )
      let lines = fixture.suite.logs.filter { $0.message == "Events wait for a provider" }
      #expect(lines.count == 1)
      #expect(lines.first?.level == (outage.correction == nil ? .warning : .error))
      if let correction = outage.correction {
        #expect(lines.first?.metadata["reason"]?.contains(correction) == true)
      }

      fixture.providers.recover()
      try await fixture.suite.clock.advance(by: .seconds(3600), timeout: Self.hoursTimeout)
      #expect(fixture.providers.records.count == messages)
      #expect(try await fixture.suite.deliveries().allSatisfy { $0.state == .succeeded })
    }
  }

  @Test(
    "A day of outage with 100 waiting messages costs few requests, and ends none of their events",
    arguments: [.status(503), wrongKey] as [Outage]
  )
  func day(outage: Outage) async throws {
    try await ChatFixture.run(ChatFixture.tinyModel) { fixture in
      fixture.providers.breakDown("/embeddings", outage.answer)
      try await write(100, fixture)
      try await fixture.suite.clock.advance(by: .seconds(22 * 3600), timeout: Self.hoursTimeout)
      #expect(fixture.providers.count("/embeddings") < 150)
      #expect(
        try await fixture.suite.deliveries(of: fixture.functions.embedMessage)
          .allSatisfy { $0.state == .pending }
      )

      fixture.providers.recover()
      try await fixture.suite.settle()
      #expect(fixture.providers.records.count == 100)
    }
  }

  @Test(
    "An outage of the chat model makes messages wait too, for few requests",
    arguments: [
      StubFault(.chat, times: 1_000_000, status: 401),
      StubFault(.chat, times: 1_000_000, status: 404),
      StubFault(
        .chat,
        times: 1_000_000,
        status: 429,
        body: ["error": ["message": "spent", "code": "insufficient_quota"]]
      ),
      StubFault(.chat, times: 1_000_000, status: 429, headers: ["retry-after": "1"]),
      StubFault(.chat, times: 1_000_000, status: 500),
      StubFault(.chat, times: 1_000_000, body: "<html>"),
      StubFault(.chat, times: 1_000_000, reset: true),
    ]
  )
  func chatModel(fault: StubFault) async throws {
    try await ProfileFixture.run { fixture in
      try fixture.model.fail(fault)
      for number in 0..<20 { try await fixture.write("m\(number)", "My knee is sore \(number)") }
      try await fixture.suite.clock.advance(by: .seconds(3599), timeout: Self.hoursTimeout)

      let requests = fixture.model.journal.entries.count
      #expect(requests >= 1 && requests < 40)
      let deliveries = try await fixture.suite.deliveries(
        of: fixture.functions.extractProfileInfoOnMessage
      )
      #expect(deliveries.count == 20)
      #expect(deliveries.allSatisfy { $0.state == .pending })
    }
  }

  @Test("While the index takes no vectors, no message is embedded for it, and searches still work")
  func indexTakesNothing() async throws {
    try await ChatFixture.run(ChatFixture.tinyModel) { fixture in
      try await fixture.say("m", "The index is known")
      fixture.providers.breakDown("/vectors/upsert", .success(OutboundResponse(status: 503)))
      try await write(100, fixture)
      try await fixture.suite.clock.advance(by: .seconds(3600), timeout: Self.hoursTimeout)

      #expect(fixture.providers.count("/vectors/upsert") < 40)
      #expect(fixture.providers.count("/embeddings") < 150)
      let reply = try await fixture.search("The index is known")
      #expect(reply.results.map(\.messageId) == ["m"] && !reply.degraded)
      fixture.providers.recover()
      try await fixture.suite.settle()
      #expect(fixture.providers.records.count == 101)
    }
  }

  @Test("An index of another model is looked at a few times, and messages wait")
  func otherModel() async throws {
    try await ChatFixture.run(ChatFixture.tinyModel) { fixture in
      try await fixture.say("m", "The index is known")
      fixture.providers.deleteIndex()
      fixture.providers.retag(["embedding_provider": "openai", "embedding_model": "other"])
      let services = BackendServices(
        firestore: fixture.suite.firestore,
        settings: PsstSettings(
          embedding: ChatFixture.tinyModel,
          vectors: VectorSettings(host: ProviderStub.host)
        ),
        http: fixture.suite.http
      )
      let before = fixture.providers.requests.count
      for _ in 0..<50 {
        let error = await #expect(throws: ServiceError.self) { try await services.checkIndex() }
        #expect(error?.kind == .misconfigured)
        #expect(error?.circuit == .open)
      }
      #expect(fixture.providers.requests.count == before + 1)
    }
  }

  @Test("While the circuit is open, a search asks no provider and searches the words at once")
  func search() async throws {
    try await ChatFixture.run(ChatFixture.tinyModel) { fixture in
      try await fixture.say("m1", "My knee is sore")
      fixture.providers.breakDown("/embeddings", .success(OutboundResponse(status: 503)))
      _ = try await fixture.search("sore knee")
      let requests = fixture.providers.requests.count
      let reply = try await fixture.search("knee")

      #expect(reply.results.map(\.messageId) == ["m1"])
      #expect(reply.degraded && reply.provider == "words")
      #expect(fixture.providers.requests.count == requests)
    }
  }

  @Test("A message that the model never answers in the form asked for holds up no other message")
  func oneMessageOnly() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.model.add(
        StubScript(rules: [
          .init(contains: "odd", reply: ScriptedReply(content: "Well, well", unchecked: true))
        ])
      )
      try fixture.find((.injuries, "Sore knee"), in: "knee")
      for number in 0..<8 {
        try await fixture.write("odd\(number)", "odd words, number \(number)")
      }
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.clock.advance(by: .seconds(60))

      #expect(try await fixture.profile()?.totalItems == 1)
      let states = try await fixture.suite.deliveries(
        of: fixture.functions.extractProfileInfoOnMessage
      )
      .map(\.state)
      // A retry would pay for the same reply again.
      #expect(states.count { $0 == .dead } == 8)
      #expect(fixture.suite.logs.allSatisfy { $0.message != "Events wait for a provider" })
    }
  }
}
