import FunctionsRuntime
import FunctionsTesting
import OpenAIStub
import PsstFunctions
import PsstModels
import PsstBackend
import Testing

@Suite("backfillProfiles")
struct BackfillProfilesTests {
  /// Writes messages without a contact, so that the profile extraction skips them.
  private func unread(_ fixture: ProfileFixture, _ count: Int = 3) async throws {
    for number in 1...count {
      try await fixture.write("m\(number)", "words about knee \(number)", minute: Int64(number))
    }
    try await fixture.write("ok", "ok")
    try await fixture.write("blank", " ")
    try await fixture.chat("g1", ["tina", "carl", "cora"], isGroup: true)
    try await fixture.write("g", "words about a knee in a group", in: "g1")
    try await fixture.chat("c2", ["tina", "cora"])
    try await fixture.write("c", "words about a knee of a stranger", by: "cora", in: "c2")
    try await fixture.suite.settle()
    #expect(fixture.model.journal.entries.isEmpty)
    try await fixture.contact("carl", of: "tina")
  }

  @Test("A dry run, the default, counts what a real run reads and calls no model")
  func dry() async throws {
    try await ProfileFixture.run(contacts: false) { fixture in
      try await unread(fixture)
      let report = try await fixture.backfillProfiles(dryRun: nil)
      #expect(report.dryRun && report.done)
      #expect((report.scanned, report.missing, report.embedded, report.skipped) == (5, 3, 0, 2))
      #expect(report.tokens > 0 && report.estimatedCostUSD ?? 0 > 0)
      #expect(fixture.model.journal.entries.isEmpty)
      #expect(try await fixture.profile() == nil)
    }
  }

  @Test("What was not read is read, each message once, and a second run has nothing to do")
  func real() async throws {
    try await ProfileFixture.run(contacts: false) { fixture in
      try await unread(fixture)
      try fixture.find((.injuries, "Sore knee"), in: "knee 1")
      try fixture.find(in: "knee")
      let report = try await fixture.backfillProfiles()
      #expect((report.missing, report.embedded, report.failed) == (3, 3, 0))
      #expect(report.done && report.stopped == nil)
      #expect(fixture.model.journal.entries.count == 3)
      #expect(try await fixture.profile()?.injuries.map(\.text) == ["Sore knee"])

      let second = try await fixture.backfillProfiles()
      #expect((second.scanned, second.missing, second.tokens) == (5, 0, 0))
      #expect(fixture.model.journal.entries.count == 3)
    }
  }

  @Test(
    "A chat that is left alone says why",
    arguments: [
      ("g1", "it is in a group chat"), ("c2", "the client is none of the trainer's contacts"),
      ("nowhere", "its chat does not exist"),
    ]
  )
  func chatLeftAlone(chat: String, reason: String) async throws {
    try await ProfileFixture.run(contacts: false) { fixture in
      try await unread(fixture)
      let report = try await fixture.backfillProfiles(chatId: chat)
      #expect(report.stopped == "the chat is left alone because \(reason)")
      #expect(!report.done && report.scanned == 0)
    }
  }

  @Test("A limit ends a run, and the next one goes on")
  func limit() async throws {
    try await ProfileFixture.run(contacts: false) { fixture in
      try await unread(fixture)
      try fixture.find(in: "knee")
      let first = try await fixture.backfillProfiles(limit: 2)
      #expect(first.embedded == 2 && !first.done && first.stopped != nil)
      let second = try await fixture.backfillProfiles(chatId: "c1")
      #expect(second.embedded == 1 && second.done)
    }
  }

  @Test("A run ends before a message that would cost too much, dry or real")
  func cost() async throws {
    try await ProfileFixture.run(contacts: false) { fixture in
      try await unread(fixture, 20)
      // Ten times the tokens expected for a message of this length.
      let costly = ScriptedReply(
        json: .object(["facts": .array([])]),
        usage: ["prompt_tokens": 4000, "completion_tokens": 10]
      )
      try fixture.model.add(StubScript(rules: [.init(contains: "knee", reply: costly)]))
      let all = try await fixture.backfillProfiles(dryRun: nil).estimatedCostUSD ?? 0
      let half = try await fixture.backfillProfiles(dryRun: nil, maxCostUSD: all / 2)
      #expect((9...10).contains(half.missing) && !half.done)

      #expect(try await fixture.backfillProfiles(maxCostUSD: 0).embedded == 0)
      let real = try await fixture.backfillProfiles(maxCostUSD: all / 2)
      #expect((1...9).contains(real.embedded) && !real.done)
      #expect(real.stopped?.contains("maxCostUSD") == true)
      #expect(fixture.model.journal.entries.count == real.embedded)
    }
  }

  @Test("A refused message counts with its tokens, and the others are read")
  func refused() async throws {
    try await ProfileFixture.run(contacts: false) { fixture in
      try await unread(fixture)
      try fixture.model.add(
        StubScript(rules: [
          .init(contains: "knee 2", reply: ScriptedReply(content: "No.", refusal: "No."))
        ])
      )
      try fixture.find(in: "knee")
      let report = try await fixture.backfillProfiles()
      #expect((report.embedded, report.failed, report.done) == (2, 1, true))
      #expect(report.tokens == (try await fixture.usage("_app")))
      #expect(report.errors == ["the model refused to answer"])
      let lines = fixture.suite.logs.filter { $0.message == "A backfill left messages out" }
      #expect(lines.map { $0.metadata["reason"] } == ["the model refused to answer"])
    }
  }

  @Test("When the provider is down the run ends with the reason, and a later one goes on")
  func outage() async throws {
    try await ProfileFixture.run(contacts: false) { fixture in
      try await unread(fixture)
      try fixture.find(in: "knee")
      try fixture.model.fail(StubFault(.chat, times: 3, status: 503))
      // The third failure opens the circuit; the first call after that is a probe.
      for _ in 1...3 {
        let report = try await fixture.backfillProfiles()
        #expect(!report.done && report.stopped?.contains("503") == true)
      }
      try await fixture.suite.clock.advance(by: .seconds(3600))
      #expect(try await fixture.backfillProfiles().done)
    }
  }

  @Test("Without a model, and with an order that makes no sense, nothing is done")
  func refusals() async throws {
    try await ProfileFixture.run(withModel: false) { fixture in
      await #expect(throws: CallableError.self) { try await fixture.backfillProfiles() }
    }
    try await ProfileFixture.run { fixture in
      for order in [
        BackfillOrder(dryRun: false), BackfillOrder(dryRun: false, confirm: "yes"),
        BackfillOrder(limit: 0), BackfillOrder(maxCostUSD: -1), BackfillOrder(chatId: "a/b"),
        BackfillOrder(chatId: ".."), BackfillOrder(chatId: "__x__"),
      ] {
        await #expect(throws: CallableError.self) {
          try await fixture.suite.call(fixture.functions.backfillProfiles, order, as: .admin)
        }
      }
      await #expect(throws: CallableError.self) {
        try await fixture.suite.call(
          fixture.functions.backfillProfiles,
          BackfillOrder(),
          as: .user("tina")
        )
      }
    }
  }
}

extension ProfileFixture {
  fileprivate func backfillProfiles(
    chatId: String? = nil,
    limit: Int? = nil,
    dryRun: Bool? = false,
    maxCostUSD: Double? = nil
  ) async throws -> BackfillReport {
    try await suite.call(
      functions.backfillProfiles,
      BackfillOrder(
        chatId: chatId,
        limit: limit,
        dryRun: dryRun,
        confirm: "backfill",
        maxCostUSD: maxCostUSD
      ),
      as: .admin
    )
  }

  /// Returns the tokens that the ledger records for a payer on all days.
  fileprivate func usage(_ payer: String) async throws -> Int {
    try await suite.firestore.collection("usage").document(payer).collection("days").get()
      .reduce(0) { sum, day in
        if case .integer(let tokens)? = day["tokens"] { sum + Int(tokens) } else { sum }
      }
  }
}
