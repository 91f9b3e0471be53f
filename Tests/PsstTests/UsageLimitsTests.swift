import FirestoreClient
import Foundation
import FunctionsRuntime
import FunctionsTesting
import OpenAIStub
import PsstFunctions
import PsstModels
@testable import PsstBackend
import PsstServices
import Testing

@Suite("Limits of a day's model calls")
struct UsageLimitsTests {
  private static let day = Duration.seconds(86_400)

  /// The present time to the next midnight in UTC.
  private func untilMidnight(_ fixture: UsageFixture) -> Duration {
    .microseconds(86_400_000_000 - fixture.suite.clock.now.microseconds % 86_400_000_000)
  }

  private func states(
    _ fixture: UsageFixture,
    _ function: some CloudFunction
  ) async throws -> [EventDelivery.State] {
    try await fixture.suite.deliveries(of: function).map(\.state)
  }

  @Test("A user who has used the day's tokens waits for the next day; other users do not")
  func userTokens() async throws {
    try await UsageFixture.run(limits: UsageLimits(userTokensPerDay: 30)) { fixture in
      // What follows is within one day, whenever the test runs.
      try await fixture.suite.clock.advance(by: untilMidnight(fixture))
      // An embedding reserves the bytes of its text, and a reading by the chat model far more.
      try await fixture.profiles.write("m1", "My knee is sore today")
      try await fixture.suite.clock.advance(by: .zero)
      let first = try #require(try await fixture.day("carl"))
      #expect(first.requests == 1 && first.tokens > 0)

      for number in 0..<10 {
        try await fixture.profiles.write("n\(number)", "Knee, again: \(number)")
      }
      try await fixture.profiles.write("t1", "Rest, then", by: "tina")
      try await fixture.suite.clock.advance(by: .seconds(7200))
      let carl = try #require(try await fixture.day("carl"))
      #expect(carl.tokens <= 30)
      #expect(try await fixture.day("tina")?.requests == 1)
      #expect(fixture.vectors.records["c1#t1"] != nil)
      #expect(try await states(fixture, fixture.functions.embedMessage).contains(.pending))

      let lines = fixture.suite.logs.filter { $0.message == "Events wait for a provider" }
      // One for each of the two, because reading needs more than anybody has.
      #expect(lines.count == 2)
      #expect(
        lines.allSatisfy { $0.metadata["reason"]?.contains("PSST_USER_TOKENS_PER_DAY") == true }
      )
    }
  }

  @Test("When the app's dollars are spent, events wait and go on at the start of the next day")
  func appDollars() async throws {
    // Enough for one message's embedding and reading, whose reservations are below a cent.
    try await UsageFixture.run(limits: UsageLimits(dollarsPerDay: 0.0062)) { fixture in
      let path = "usage/_app/days/" + String("\(fixture.suite.clock.now)".prefix(10))
      try await fixture.suite.firestore.document(path).set(["costUSD": 0.0062])
      try await fixture.profiles.write("m1", "My knee is sore")
      try await fixture.suite.clock.advance(by: untilMidnight(fixture) - .seconds(1))
      #expect(fixture.model.journal.entries.isEmpty)
      #expect(try await states(fixture, fixture.functions.embedMessage) == [.pending])
      #expect(
        try await states(fixture, fixture.functions.extractProfileInfoOnMessage) == [.pending]
      )

      try await fixture.suite.clock.advance(by: .seconds(601))
      #expect(fixture.vectors.records.count == 1)
      #expect(try await fixture.suite.deliveries().allSatisfy { $0.state == .succeeded })
      #expect(try await fixture.day("_app")?.requests == 2)
    }
  }

  @Test("A hundred events that wait for the next day ask the ledger a few times an hour")
  func waitingIsCheap() async throws {
    try await UsageFixture.run(limits: UsageLimits(userTokensPerDay: 0)) { fixture in
      for number in 0..<50 {
        try await fixture.profiles.write("m\(number)", "Knee, again: \(number)")
      }
      try await fixture.suite.clock.advance(by: .seconds(60))
      fixture.faults.decide(nil)
      try await fixture.suite.clock.advance(by: .seconds(3600))
      // Each question is a reservation and its return.
      #expect((2...24).contains(fixture.faults.commits))
      #expect(fixture.model.journal.entries.isEmpty)
      let states = try await states(fixture, fixture.functions.embedMessage)
      #expect(states.count == 50 && states.allSatisfy { $0 == .pending })
    }
  }

  @Test("At a limit, searches find words and say so, and a backfill stops with the reason")
  func searchAndBackfill() async throws {
    for limits in [UsageLimits(dollarsPerDay: 0), UsageLimits(dollarsPerDay: 1e-8)] {
      try await UsageFixture.run(limits: limits) { fixture in
        try await fixture.profiles.write("m1", "My knee is sore")
        let reply = try await fixture.search("sore knee")
        #expect(reply.degraded && reply.provider == "words")
        #expect(reply.results.map(\.messageId) == ["m1"])

        let report = try await fixture.suite.call(
          fixture.functions.backfillEmbeddings,
          BackfillOrder(dryRun: false, confirm: "backfill"),
          as: .admin
        )
        #expect(report.stopped?.contains("PSST_DOLLARS_PER_DAY") == true)
        #expect(!report.done && report.embedded == 0 && report.tokens == 0)
        #expect(fixture.model.journal.entries.isEmpty)
      }
    }
  }

  @Test("Zero dollars stop every call, also of a model without a price, and write nothing")
  func off() async throws {
    try await UsageFixture.run(limits: UsageLimits(dollarsPerDay: 0)) { fixture in
      let clock = fixture.suite.clock
      let ledger = UsageLedger(
        firestore: fixture.suite.firestore,
        limits: UsageLimits(dollarsPerDay: 0),
        now: { clock.now.date }
      )
      let error = await #expect(throws: ServiceError.self) {
        try await ledger.count(
          PricedModel(name: "free", price: nil),
          for: .app,
          atMost: TokenUsage()
        ) { _ in }
      }
      #expect(error?.kind == .limitReached)
      #expect(error?.message.contains("PSST_DOLLARS_PER_DAY is 0") == true)
      let day = try await fixture.day("_app")
      #expect(day == nil)
    }
  }

  @Test("A refusal that may pass is short, one of a spent limit longer, and none outlasts the day")
  func waits() throws {
    let refusals = UsageRefusals()
    let noon = Timestamp(microseconds: 1_777_636_800_000_000).date
    let day = UsageDay(of: noon)
    #expect(day.name == "2026-05-01" && day.end.timeIntervalSince(noon) == 43_200)

    func add(_ uid: String?, size: Double, isSpent: Bool, at time: Date) -> ServiceError {
      refusals.add(
        .init(payer: uid.map(Payer.user) ?? .app, reason: "no", size: size, isSpent: isSpent),
        on: day,
        now: time
      )
    }
    func held(_ uid: String?, _ tokens: Int, _ dollars: Double, at time: Date) -> ServiceError? {
      do {
        try refusals.check(
          uid.map(Payer.user) ?? .app,
          tokens: tokens,
          dollars: dollars,
          on: UsageDay(of: time),
          now: time
        )
        return nil
      } catch {
        return error as? ServiceError
      }
    }

    let full = add("a", size: 10, isSpent: false, at: noon)
    #expect(full.retryAfter == .seconds(2) && full.isNews)
    #expect(held("a", 9, 5, at: noon) == nil && held("b", 10, 5, at: noon) == nil)
    #expect(held("a", 10, 5, at: noon + 1)?.retryAfter == .seconds(2))
    #expect(held("a", 10, 5, at: noon + 2) == nil)

    let spent = add("a", size: 5, isSpent: true, at: noon)
    #expect(spent.retryAfter == .seconds(600) && !spent.isNews)
    let again = held("a", 0, 0, at: noon + 59)
    #expect(again?.retryAfter == .seconds(600) && again?.isNews == false)

    let late = add(nil, size: 2, isSpent: false, at: day.end - 1)
    #expect(late.retryAfter == .seconds(1) && late.isNews)
    #expect(held("b", 100, 2, at: day.end - 1)?.retryAfter == .seconds(1))
    #expect(held("b", 100, 1, at: day.end - 1) == nil && held(nil, 100, 1, at: day.end - 1) == nil)
    #expect(held("b", 100, 2, at: day.end) == nil)
  }

  // MARK: Searches

  @Test("Of sixty searches of one user in three seconds 30 are made, and others are not affected")
  func searches() async throws {
    try await UsageFixture.run { fixture in
      var made = 0
      var refusals: [CallableError] = []
      for second in 0..<3 {
        for number in 0..<20 {
          do {
            _ = try await fixture.search("query \(second) \(number)")
            made += 1
          } catch let error as CallableError {
            refusals.append(error)
          }
        }
        try await fixture.suite.clock.advance(by: .seconds(1))
      }
      #expect(made == 30 && refusals.count == 30)
      #expect(fixture.model.journal.entries.count == 30)
      let refusal = try #require(refusals.last)
      #expect(refusal.code == .resourceExhausted)
      #expect(refusal.message == "Too many requests; try again in 58 seconds.")
      #expect(refusal.details as? FirestoreValue == .map(["retryAfterSeconds": .integer(58)]))
      _ = try await fixture.search("query", as: "tina")

      // The first twenty are a minute old at that time.
      try await fixture.suite.clock.advance(by: .seconds(57))
      for number in 0..<20 { _ = try await fixture.search("again \(number)") }
      await #expect(throws: CallableError.self) { _ = try await fixture.search("once more") }
    }
  }

  @Test("Searches at the same moment are counted for all workers together")
  func simultaneousSearches() async throws {
    try await UsageFixture.run(limits: UsageLimits(searchesPerMinute: 3)) { fixture in
      let limits = (0..<4).map { _ in
        CallLimit(
          firestore: fixture.suite.firestore,
          limits: UsageLimits(searchesPerMinute: 3),
          now: { [clock = fixture.suite.clock] in clock.now.date }
        )
      }
      let made = await withTaskGroup(of: Bool.self) { group in
        for number in 0..<20 {
          group.addTask {
            do {
              try await limits[number % 4].count(.searches, of: "carl")
              return true
            } catch {
              return false
            }
          }
        }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(made == 3)
    }
  }

  @Test("Calls of one kind do not use up those of another")
  func separateKinds() async throws {
    try await UsageFixture.run { fixture in
      let limit = CallLimit(
        firestore: fixture.suite.firestore,
        limits: UsageLimits(searchesPerMinute: 2),
        now: { [clock = fixture.suite.clock] in clock.now.date }
      )
      for kind in CallLimit.Kind.allCases + CallLimit.Kind.allCases {
        try await limit.count(kind, of: "carl")
      }
      for kind in CallLimit.Kind.allCases {
        await #expect(throws: CallLimitError.self) { try await limit.count(kind, of: "carl") }
      }
    }
  }

  @Test("A search that makes no sense is not counted")
  func senselessSearch() async throws {
    try await UsageFixture.run(limits: UsageLimits(searchesPerMinute: 1)) { fixture in
      for _ in 0..<3 {
        let error = await #expect(throws: CallableError.self) { _ = try await fixture.search(" ") }
        #expect(error?.code == .invalidArgument)
      }
      _ = try await fixture.search("knee")
    }
  }

  // MARK: Settings

  @Test("Limits and prices are read from the environment")
  func settings() throws {
    let none = try PsstSettings(environment: [:])
    #expect(none.limits == UsageLimits())
    #expect(none.limits.userTokensPerDay == 200_000 && none.limits.dollarsPerDay == 10)
    #expect(none.limits.searchesPerMinute == 30)
    let set = try PsstSettings(environment: [
      "PSST_USER_TOKENS_PER_DAY": "5000000", "PSST_DOLLARS_PER_DAY": "0",
      "PSST_SEARCHES_PER_MINUTE": "7",
    ])
    #expect(
      set.limits
        == UsageLimits(userTokensPerDay: 5_000_000, dollarsPerDay: 0, searchesPerMinute: 7)
    )
  }

  @Test(
    "A chat model has the list price unless another is set",
    arguments: [
      ("gpt-4o-mini", [:], ModelPrice(input: 0.15, output: 0.6)),
      ("gpt-4o-mini", ["PSST_CHAT_OUTPUT_PRICE": "1"], ModelPrice(input: 0.15, output: 1)),
      (
        "own", ["PSST_CHAT_INPUT_PRICE": "0", "PSST_CHAT_OUTPUT_PRICE": "2"],
        ModelPrice(input: 0, output: 2)
      ),
      ("own", [:], nil),
    ] as [(String, [String: String], ModelPrice?)]
  )
  func chatPrice(model: String, prices: [String: String], expected: ModelPrice?) throws {
    let environment = ["OPENAI_API_KEY": "k", "PSST_CHAT_MODEL": model]
    let settings = try PsstSettings(environment: environment.merging(prices) { $1 })
    guard case .openAI(_, _, _, let price) = settings.chat else {
      Issue.record("no chat model")
      return
    }
    #expect(price == expected)
  }

  @Test(
    "Settings that make no sense are refused by their names",
    arguments: [
      ("PSST_USER_TOKENS_PER_DAY", "many"), ("PSST_USER_TOKENS_PER_DAY", "-1"),
      ("PSST_USER_TOKENS_PER_DAY", "1.5"), ("PSST_DOLLARS_PER_DAY", "-1"),
      ("PSST_DOLLARS_PER_DAY", "nan"), ("PSST_DOLLARS_PER_DAY", "$5"),
      ("PSST_DOLLARS_PER_DAY", "inf"), ("PSST_SEARCHES_PER_MINUTE", "0"),
      ("PSST_SEARCHES_PER_MINUTE", "1001"), ("PSST_SEARCHES_PER_MINUTE", "2.5"),
      ("PSST_CHAT_INPUT_PRICE", "-1"), ("PSST_CHAT_OUTPUT_PRICE", "free"),
      ("PSST_CHAT_INPUT_PRICE", "1"), ("PSST_EMBEDDING_PRICE", "-0.1"),
      // A limit that nobody reads would be none.
      ("PSST_DOLLARS_PER_DAYS", "0"), ("PSST_LIMIT", "5"),
    ]
  )
  func wrongSettings(name: String, value: String) {
    let error = #expect(throws: ServiceError.self) {
      try PsstSettings(environment: [
        "OPENAI_API_KEY": "k", "PSST_CHAT_MODEL": "own", name: value,
      ])
    }
    #expect(error?.kind == .misconfigured && error?.message.contains(name) == true)
  }
}
