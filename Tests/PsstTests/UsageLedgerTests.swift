import FirestoreClient
import FunctionsRuntime
import FunctionsTesting
import OpenAIStub
import OutboundHTTP
import PsstFunctions
import PsstModels
@testable import PsstBackend
import Testing

@Suite("Ledger of model calls")
struct UsageLedgerTests {
  // MARK: Charges

  @Test("A message is charged to its sender and in the app's sum, as the provider counted it")
  func message() async throws {
    try await UsageFixture.run { fixture in
      try await fixture.profiles.write("m1", "My knee is sore")
      try await fixture.suite.settle()
      let carl = try #require(try await fixture.day("carl"))
      let app = try #require(try await fixture.day("_app"))
      let tokens = fixture.tokens.byModel

      #expect(carl.requests == 2)
      #expect(carl.tokens == fixture.tokens.total.tokens)
      #expect(carl.byModel.mapValues(\.tokens) == tokens.mapValues(\.tokens))
      #expect(carl.byModel.mapValues(\.requests) == tokens.mapValues { _ in 1 })
      let embedding = try #require(carl.byModel["text-embedding-3-small"])
      #expect(embedding.nanodollars == embedding.tokens * 20)
      let chat = try #require(carl.byModel["gpt-4o-mini"])
      #expect(chat.nanodollars > chat.tokens * 150)
      #expect(carl.counts.nanodollars == embedding.nanodollars + chat.nanodollars)
      #expect(app.counts == carl.counts && app.byModel == carl.byModel)
      #expect(try await fixture.day("tina") == nil)
    }
  }

  @Test("A search is charged to who searches, and a query that is known costs nothing")
  func search() async throws {
    try await UsageFixture.run { fixture in
      for _ in 0..<3 { _ = try await fixture.search("sore knee", as: "tina") }
      let tina = try #require(try await fixture.day("tina"))
      #expect(tina.requests == 1 && tina.tokens == fixture.tokens.total.tokens)
      #expect(try await fixture.day("_app")?.counts == tina.counts)
    }
  }

  @Test("A backfill is charged to the app alone")
  func backfill() async throws {
    try await UsageFixture.run { fixture in
      // Events wait until the suite settles, so the backfill finds a message without a vector.
      try await fixture.profiles.write("m1", "My knee is sore")
      let report = try await fixture.services.embeddingBackfill.run(chatID: nil, dryRun: false)

      #expect(report.tokens > 0)
      let app = try await fixture.day("_app")
      let carl = try await fixture.day("carl")
      #expect(app?.tokens == report.tokens)
      #expect(carl == nil)
    }
  }

  @Test("The lexical stand-in writes no ledger")
  func lexical() async throws {
    try await ChatFixture.run { fixture in
      try await fixture.say("m1", "My knee is sore")
      _ = try await fixture.search("knee")
      let documents = try await fixture.suite.documents()
      #expect(documents.keys.allSatisfy { !$0.contains("/days/") })
    }
  }

  @Test(
    "Lost, doubled and reordered events leave sums that are what the provider counted",
    arguments: 0..<6 as Range<UInt64>
  )
  func faultyEvents(seed: UInt64) async throws {
    try await UsageFixture.run(deliveryFaults: DeliveryFaults(seed: seed)) { fixture in
      for number in 0..<5 {
        let sender = number.isMultiple(of: 2) ? "carl" : "tina"
        try await fixture.profiles.write("m\(number)", "My knee is sore, day \(number)", by: sender)
      }
      try fixture.model.fail(
        StubFault(.chat, status: 500),
        StubFault(.embeddings, status: 400),
        StubFault(.embeddings, call: 3, alter: .vectorMissing)
      )
      try await fixture.suite.settle()
      try await fixture.profiles.write("m1", "Off to Rome")
      try await fixture.profiles.message("m2").delete()
      try await fixture.suite.clock.advance(by: .seconds(1200))
      let app = try #require(try await fixture.day("_app"))
      let carl = try #require(try await fixture.day("carl"))
      let tina = try #require(try await fixture.day("tina"))
      let counted = fixture.tokens

      #expect(app.tokens == counted.total.tokens)
      #expect(app.byModel.mapValues(\.tokens) == counted.byModel.mapValues(\.tokens))
      #expect(app.tokens == carl.tokens + tina.tokens)
      #expect(app.requests == carl.requests + tina.requests)
      #expect(app.requests == counted.total.requests)
      #expect(app.counts.nanodollars == carl.counts.nanodollars + tina.counts.nanodollars)
    }
  }

  // MARK: Individual calls

  /// Runs a test with a ledger over a database that can fail, without functions.
  private func withLedger(
    _ limits: UsageLimits = UsageLimits(dollarsPerDay: 1_000_000),
    _ test: (UsageFixture, UsageLedger) async throws -> Void
  ) async throws {
    try await UsageFixture.run(limits: limits) { fixture in
      let clock = fixture.suite.clock
      let ledger = UsageLedger(
        firestore: fixture.faults.firestore,
        limits: limits,
        now: { clock.now.date }
      )
      try await test(fixture, ledger)
    }
  }

  private static let model = PricedModel(name: "m", price: ModelPrice(input: 1_000_000))
  private static let ten = TokenUsage(promptTokens: 10)

  private func failure(_ call: () async throws -> Void) async throws -> ServiceError? {
    do {
      try await call()
      return nil
    } catch let error as ServiceError {
      return error
    }
  }

  @Test("Names of models are names, whatever characters they have")
  func names() async throws {
    try await withLedger { fixture, ledger in
      let names = ["org/model-1.5:free", "a`b", "~*[]", "é 1", "requests"]
      for name in names {
        let model = PricedModel(name: name, price: nil)
        try await ledger.count(model, for: .user("carl"), atMost: Self.ten) { $0 = Self.ten }
      }
      let day = try #require(try await fixture.day("carl"))
      #expect(Set(day.byModel.keys) == Set(names))
      #expect(day.byModel.values.allSatisfy { $0.tokens == 10 && $0.costUSD == 0 })
      #expect(day.tokens == 50 && day.requests == 5)
    }
  }

  @Test(
    "A sender whose id no user can have is charged to the app",
    arguments: ["_app", "", "a/b", ".", "..", "__a__", String(repeating: "u", count: 129)]
  )
  func impossibleUsers(uid: String) async throws {
    try await withLedger { fixture, ledger in
      try await ledger.count(Self.model, for: .user(uid), atMost: Self.ten) { $0 = Self.ten }
      #expect(try await fixture.day("_app")?.tokens == 10)
    }
  }

  @Test("Of two calls at once of which a limit allows one, one is made")
  func twoAtOnce() async throws {
    let limits = [
      UsageLimits(userTokensPerDay: 15, dollarsPerDay: 1000),
      UsageLimits(userTokensPerDay: 10, dollarsPerDay: 1000),
      UsageLimits(dollarsPerDay: 15), UsageLimits(dollarsPerDay: 10),
    ]
    for limits in limits {
      try await withLedger(limits) { fixture, ledger in
        try await ledger.count(Self.model, for: .user("carl"), atMost: Self.ten) { used in
          // The first call is in progress.
          let second = try await failure {
            try await ledger.count(Self.model, for: .user("carl"), atMost: Self.ten) { _ in
              _ = Issue.record("the second call is made")
            }
          }
          #expect(second?.kind == .limitReached)
          used = TokenUsage(promptTokens: 4)
        }
        let day = try #require(try await fixture.day("carl"))
        #expect(day.requests == 1 && day.tokens == 4 && day.costUSD == 4)
      }
    }
  }

  @Test("Many calls at once, of several workers, never use more than the limit")
  func manyAtOnce() async throws {
    let limits = UsageLimits(userTokensPerDay: 55, dollarsPerDay: 1000)
    try await withLedger(limits) { fixture, ledger in
      let clock = fixture.suite.clock
      let count = await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<20 {
          let ledger = UsageLedger(
            firestore: fixture.suite.firestore,
            limits: limits,
            now: { clock.now.date }
          )
          group.addTask {
            // Only the fact that a refused call is not made matters here.
            let isMade = try? await ledger.count(
              Self.model,
              for: .user("carl"),
              atMost: Self.ten
            ) { used in
              used = Self.ten
              return true
            }
            return isMade ?? false
          }
        }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect((1...5).contains(count))
      let day = try #require(try await fixture.day("carl"))
      #expect(day.tokens == 10 * count && day.requests == count)
      let app = try await fixture.day("_app")
      #expect(app?.counts == day.counts)
    }
  }

  @Test("Another user's calls, and the app's own, do not count against a user")
  func others() async throws {
    try await withLedger(UsageLimits(userTokensPerDay: 10, dollarsPerDay: 1000)) { _, ledger in
      for payer in [Payer.user("carl"), .user("tina"), .app, .app] {
        try await ledger.count(Self.model, for: payer, atMost: Self.ten) { $0 = Self.ten }
      }
      let error = try await failure {
        try await ledger.count(Self.model, for: .user("carl"), atMost: Self.ten) { _ in }
      }
      #expect(error?.kind == .limitReached)
    }
  }

  @Test("A failed call releases its reservation and keeps the used tokens")
  func failedCall() async throws {
    try await withLedger { fixture, ledger in
      let refused = ServiceError(.refused, "no")
      for used in [0, 3] {
        let error = try await failure {
          try await ledger.count(Self.model, for: .user("carl"), atMost: Self.ten) { usage in
            usage = TokenUsage(promptTokens: used)
            throw refused
          }
        }
        var expected = refused
        expected.usage = TokenUsage(promptTokens: used)
        #expect(error == expected)
      }
      let day = try #require(try await fixture.day("carl"))
      #expect(day.counts == UsageFixture.Counts(requests: 1, tokens: 3, costUSD: 3))
    }
  }

  @Test("A cancelled call stays counted as the most it could use, a finished one is corrected")
  func cancelledCall() async throws {
    try await withLedger { fixture, ledger in
      await #expect(throws: CancellationError.self) {
        try await ledger.count(Self.model, for: .user("carl"), atMost: Self.ten) { _ in
          throw CancellationError()
        }
      }
      let carl = try await fixture.day("carl")
      #expect(carl?.tokens == 10)

      await withTaskGroup(of: Void.self) { group in
        group.addTask {
          // Only the correction matters here.
          try? await ledger.count(Self.model, for: .user("tina"), atMost: Self.ten) { used in
            withUnsafeCurrentTask { $0?.cancel() }
            used = TokenUsage(promptTokens: 4)
          }
        }
      }
      let tina = try await fixture.day("tina")
      #expect(tina?.tokens == 4)
    }
  }

  @Test("Answers that cannot be used are counted as the provider counted them")
  func unusableAnswers() async throws {
    try await UsageFixture.run { fixture in
      try fixture.model.add(
        StubScript(rules: [
          .init(contains: "odd", reply: ScriptedReply(content: "Well, well", unchecked: true))
        ])
      )
      try await fixture.profiles.write("m1", "odd,words,indeed")
      try await fixture.suite.clock.advance(by: .zero)
      let sum = try #require(fixture.tokens.byModel["gpt-4o-mini"])
      let chat = try await fixture.day("carl")?.byModel["gpt-4o-mini"]

      #expect(sum.requests == 2)
      #expect(chat?.tokens == sum.tokens && chat?.requests == 2)
    }
  }

  @Test("A number that cannot be right in a provider's answer is none in the ledger")
  func senselessUsage() async throws {
    try await UsageFixture.run { fixture in
      // A text of two bytes has one token by its length, and four with marks at most.
      for (number, (tokens, sum)) in [(-5, 1), (0, 2), (1_000_000_000_000_000, 6)].enumerated() {
        try fixture.model.fail(
          StubFault(
            .embeddings,
            body: [
              "data": [["index": 0, "embedding": [1, 0, 0, 0, 0, 0, 0, 0]]],
              "usage": ["prompt_tokens": JSON(integerLiteral: tokens)],
            ]
          )
        )
        _ = try await fixture.services.embeddings.embeddings(of: ["a\(number)"], for: .user("tom"))
        #expect(try await fixture.day("tom")?.tokens == sum)
      }
    }
  }

  // MARK: Without a ledger

  @Test("Without a ledger no model is called: searches fall back to words and events wait")
  func deadLedger() async throws {
    try await UsageFixture.run { fixture in
      try await fixture.profiles.write("m1", "My knee is sore")
      try await fixture.suite.settle()
      let calls = fixture.model.journal.entries.count
      fixture.faults.decide { _ in .refused }
      let error = try await failure {
        _ = try await fixture.services.embeddings.embeddings(of: ["a"], for: .app)
      }
      #expect(error?.kind == .unavailable && error?.message.contains("ledger") == true)

      try await fixture.profiles.write("m2", "My knee is better")
      try await fixture.suite.clock.advance(by: .seconds(5))
      #expect(fixture.model.journal.entries.count == calls)
      #expect(
        try await fixture.suite.deliveries(of: fixture.functions.embedMessage)
          .contains { $0.state == .pending }
      )
      fixture.faults.decide(nil)
      try await fixture.suite.clock.advance(by: .seconds(600))
      #expect(try await fixture.suite.deliveries().allSatisfy { $0.state == .succeeded })
    }
  }

  @Test("A reservation with unknown outcome lets no call through and remains")
  func unheardReservation() async throws {
    try await withLedger { fixture, ledger in
      fixture.faults.decide { _ in .unheard }
      let error = try await failure {
        try await ledger.count(Self.model, for: .user("carl"), atMost: Self.ten) { _ in
          _ = Issue.record("the model is called")
        }
      }
      #expect(error?.kind == .unavailable)
      #expect(try await fixture.day("carl")?.tokens == 10)
    }
  }

  @Test("A correction that fails leaves the most that the call could use, and its answer")
  func failedCorrection() async throws {
    try await withLedger { fixture, ledger in
      fixture.faults.decide { $0 == 1 ? .none() : .refused }
      let answer = try await ledger.count(Self.model, for: .user("carl"), atMost: Self.ten) {
        used in
        used = TokenUsage(promptTokens: 4)
        return "paid for"
      }
      #expect(answer == "paid for")
      #expect(try await fixture.day("carl")?.tokens == 10)
    }
  }

  @Test("While a provider's circuit is open, its calls write no ledger")
  func openCircuit() async throws {
    try await UsageFixture.run { fixture in
      try fixture.model.fail(StubFault(.embeddings, status: 401))
      for text in ["a", "b"] {
        _ = try await failure {
          _ = try await fixture.services.embeddings.embeddings(of: [text], for: .app)
        }
      }
      // The commits so far reserved tokens and returned them; this resets their count.
      fixture.faults.decide(nil)
      let error = try await failure {
        _ = try await fixture.services.embeddings.embeddings(of: ["c"], for: .app)
      }
      #expect(error?.kind == .misconfigured)
      #expect(fixture.faults.commits == 0)
    }
  }
}
