import DocumentModel
import SecurityRules

/// Evaluates Psst's rules in this process, to measure the pure cost of a decision.
///
/// All documents are in memory.
struct RuleDecisions {
  private let ruleset: Ruleset
  private let documents = ChatDocuments()

  /// Parses the rules; throws if they are invalid.
  init(rules: String) throws { ruleset = try Ruleset(name: "firestore.rules", content: rules) }

  /// Evaluates a request repeatedly on one thread, with coverage, as the emulator does.
  func perSecond(_ request: RuledRequest, for duration: Duration) throws -> Double {
    let coverage = Coverage()
    let asked = Self.request(request)
    let clock = ContinuousClock()
    let began = clock.now
    var count = 0
    while clock.now - began < duration {
      let decision = ruleset.decide(
        asked,
        documents: documents,
        ledger: AccessLedger(isSingle: true),
        coverage: coverage
      )
      guard decision.isAllowed else {
        throw BenchmarkError("The rules refused: \(decision.message(for: asked.method))")
      }
      count += 1
    }
    return Double(count) / ((clock.now - began) / .seconds(1))
  }

  private static func request(_ request: RuledRequest) -> RulesRequest {
    let time = RuleTimestamp(Timestamp(microseconds: 0))
    let auth = RuleValue.map(
      .entries(["uid": .string(RulesLoad.trainer), "token": .map(.entries([:]))])
    )
    let messages = ["databases", "(default)", "documents", "chats", "ruled", "messages"]
    let message = RuleValue.map(
      .entries([
        "data": .map(
          .entries([
            "senderID": .string(RulesLoad.trainer),
            "text": .string("The knee is better today, I walked for half an hour."),
            "timestamp": .timestamp(time), "readBy": .list([.string(RulesLoad.trainer)]),
          ])
        ),
        "id": .string("m"),
      ])
    )
    let path = messages.map { RulesRequest.PathStep.known($0) }
    switch request {
    case .get:
      return RulesRequest(
        method: .get,
        path: path + [.known("m")],
        time: time,
        auth: auth,
        resource: message
      )
    case .create:
      return RulesRequest(
        method: .create,
        path: path + [.known("m")],
        time: time,
        auth: auth,
        resource: .null,
        newResource: message
      )
    case .query:
      return RulesRequest(
        method: .list,
        path: path + [.unknown],
        time: time,
        auth: auth,
        query: .map(.entries(["limit": .int(20)])),
        constraints: [QueryConstraints([])]
      )
    }
  }
}

/// The chat, both of its members and their contact.
private struct ChatDocuments: RulesDocuments {
  private let documents: [String: RuleValue] = [
    "users/trainer": data(["role": .string("trainer")]),
    "users/client": data(["role": .string("client")]),
    "contacts/trainer/clients/client": data([:]),
    RulesLoad.chat: data([
      "members": .list([.string(RulesLoad.trainer), .string(RulesLoad.client)])
    ]),
  ]

  private static func data(_ fields: [String: RuleValue]) -> RuleValue {
    .map(.entries(["data": .map(.entries(fields))]))
  }

  func document(_ path: RulePath, after: Bool) -> RuleValue? {
    documents[path.segments.dropFirst(3).joined(separator: "/")]
  }
}
