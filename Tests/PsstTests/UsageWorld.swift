import Foundation
import FunctionsTesting
import OpenAIStub
import OutboundHTTP
@testable import PsstFunctions
import PsstModels
import PsstServices
import Synchronization

/// All of Psst's functions with paid models for embeddings and answers.
struct UsageWorld: Sendable {
  let scene: Scene
  let tokens: CountedTokens
  let vectors: ProviderStandIn
  /// A database that fails only the commits of the services.
  let faults: FaultyFirestore

  var suite: FunctionsSuite { scene.suite }
  var functions: MessageFunctions { scene.functions }
  var services: MessageServices { scene.functions.services }
  var model: OpenAIStandIn { scene.model }

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
    _ test: (UsageWorld) async throws -> Void
  ) async throws {
    let model = OpenAIStandIn()
    let tokens = CountedTokens(model)
    let vectors = ProviderStandIn()
    let faults = Mutex<FaultyFirestore?>(nil)
    try await withFunctions(
      \.app,
      startTime: Scene.morning,
      deliveryFaults: deliveryFaults
    ) { world in
      world.http.mount(tokens, at: OpenAIStandIn.baseURL)
      world.http.mount(vectors, at: ProviderStandIn.host)
      let faulty = FaultyFirestore(world.firestore)
      faults.withLock { $0 = faulty }
      return MessageFunctions(
        services: MessageServices(
          firestore: faulty.firestore,
          settings: PsstSettings(
            embedding: .openAI(baseURL: OpenAIStandIn.baseURL, key: "key", model: embedding),
            vectors: VectorSettings(host: ProviderStandIn.host),
            chat: .openAI(baseURL: OpenAIStandIn.baseURL, key: "key", model: "gpt-4o-mini"),
            limits: limits
          ),
          http: world.http,
          retries: ServiceRetries(attemptsMax: 1, now: { world.now.date }),
          clock: WakingClock(wakes: 0)
        )
      )
    } test: { suite, functions in
      guard let faults = faults.withLock(\.self) else { return }
      let scene = Scene(suite: suite, functions: functions, model: model)
      try await scene.populate()
      try await scene.contact("carl", of: "tina")
      try scene.find((.injuries, "Sore knee"), in: "knee")
      try scene.find((.travel, "Rome"), in: "rome")
      try scene.find(in: " ")
      try await suite.settle()
      try await test(
        UsageWorld(scene: scene, tokens: tokens, vectors: vectors, faults: faults)
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
