import Foundation
import FunctionsTesting
import OpenAIStub
import OutboundHTTP
@testable import PsstFunctions
import PsstModels
import PsstBackend
import PsstServices
import Synchronization

/// All of Psst's functions with paid models for embeddings and answers.
struct UsageFixture: Sendable {
  let profiles: ProfileFixture
  let tokens: CountedTokens
  let vectors: ProviderStub
  /// A database that fails only the commits of the services.
  let faults: FaultyFirestore

  var suite: FunctionsSuite { profiles.suite }
  var functions: AppFunctions { profiles.functions }
  var services: BackendServices { profiles.functions.services }
  var model: OpenAIModelStub { profiles.model }

  static let embedding = EmbeddingModel(
    provider: "openai",
    name: "text-embedding-3-small",
    dimension: 8,
    relevanceThreshold: 0.3,
    dollarsPerMillionTokens: 0.02
  )

  static func run(
    limits: UsageLimits = UsageLimits(),
    deliveryFaults: DeliveryFaults? = .inOrder,
    _ test: (UsageFixture) async throws -> Void
  ) async throws {
    let model = OpenAIModelStub()
    let tokens = CountedTokens(model)
    let vectors = ProviderStub()
    let faults = Mutex<FaultyFirestore?>(nil)
    try await withFunctions(
      \.app,
      startTime: ProfileFixture.morning,
      deliveryFaults: deliveryFaults
    ) { environment in
      environment.http.mount(tokens, at: OpenAIModelStub.baseURL)
      environment.http.mount(vectors, at: ProviderStub.host)
      let faulty = FaultyFirestore(environment.firestore)
      faults.withLock { $0 = faulty }
      return AppFunctions(
        services: BackendServices(
          firestore: faulty.firestore,
          settings: PsstSettings(
            embedding: .openAI(baseURL: OpenAIModelStub.baseURL, key: "key", model: embedding),
            vectors: VectorSettings(host: ProviderStub.host),
            chat: .openAI(baseURL: OpenAIModelStub.baseURL, key: "key", model: "gpt-4o-mini"),
            limits: limits
          ),
          http: environment.http,
          retries: ServiceRetries(attemptsMax: 1, now: { environment.now.date }),
          clock: WakingClock(wakes: 0)
        )
      )
    } test: { suite, functions in
      guard let faults = faults.withLock(\.self) else { return }
      let profiles = ProfileFixture(suite: suite, functions: functions, model: model)
      try await profiles.populate()
      try await profiles.contact("carl", of: "tina")
      try profiles.find((.injuries, "Sore knee"), in: "knee")
      try profiles.find((.travel, "Rome"), in: "rome")
      try profiles.find(in: " ")
      try await suite.settle()
      try await test(
        UsageFixture(profiles: profiles, tokens: tokens, vectors: vectors, faults: faults)
      )
    }
  }

  // MARK: Ledger

  /// The counts of a payer for a day, or for one model on that day.
  struct Counts: Decodable, Hashable, Sendable {
    var requests = 0
    var tokens = 0
    var costUSD = 0.0

    /// The cost in whole billionths of a dollar, because sums of small numbers are inexact.
    var nanodollars: Int { Int((costUSD * 1e9).rounded()) }
  }

  struct Day: Decodable, Sendable {
    var requests: Int
    var tokens: Int
    var costUSD: Double
    var byModel: [String: Counts]

    var counts: Counts { Counts(requests: requests, tokens: tokens, costUSD: costUSD) }
  }

  /// Returns a payer's day in the ledger; nil if there is none.
  func day(_ payer: String, _ day: String? = nil) async throws -> Day? {
    let day = day ?? String("\(suite.clock.now)".prefix(10))
    let snapshot = try await suite.firestore.document("usage/\(payer)/days/\(day)").get()
    return snapshot.exists ? try snapshot.data(as: Day.self) : nil
  }

  func search(_ query: String, as uid: String = "carl") async throws -> SemanticSearchReply {
    try await suite.call(
      functions.semanticSearch,
      SemanticSearchQuery(query: query),
      as: .user(uid)
    )
  }
}

/// A transport that adds up the usage reported by a provider.
final class CountedTokens: HTTPTransport {
  struct Sum: Hashable, Sendable {
    var requests = 0
    var tokens = 0
  }

  private struct Reply: Decodable {
    struct Usage: Decodable {
      var total_tokens: Int
    }
    var usage: Usage
  }

  private struct Request: Decodable {
    var model: String
  }

  private let inner: any HTTPTransport
  private let state = Mutex<[String: Sum]>([:])

  init(_ inner: any HTTPTransport) {
    self.inner = inner
  }

  /// The sums by model.
  var byModel: [String: Sum] { state.withLock { $0 } }

  var total: Sum {
    byModel.values.reduce(into: Sum()) { sum, part in
      sum.requests += part.requests
      sum.tokens += part.tokens
    }
  }

  func send(_ request: OutboundRequest) async throws -> OutboundResponse {
    let response = try await inner.send(request)
    // Only successful responses report usage.
    if let reply = try? JSONDecoder().decode(Reply.self, from: Data(response.body)) {
      let model = try JSONDecoder().decode(Request.self, from: Data(request.body)).model
      state.withLock { sums in
        sums[model, default: Sum()].requests += 1
        sums[model, default: Sum()].tokens += reply.usage.total_tokens
      }
    }
    return response
  }
}
