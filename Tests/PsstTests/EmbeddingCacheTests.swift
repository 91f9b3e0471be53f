import FunctionsTesting
import OpenAIStub
@testable import PsstBackend
import Synchronization
import Testing

@Suite("Cache of embeddings")
struct EmbeddingCacheTests {
  /// A provider that answers when a test lets it, and can refuse a payer.
  private final class Held: EmbeddingProvider {
    let model = LexicalEmbedding().model
    private let state = Mutex<(asked: [Payer], refused: Payer?)>(([], nil))
    private let isLet = SharedResult<Void>()
    private let isAsked = SharedResult<Void>()

    init(refusing payer: Payer? = nil) {
      state.withLock { $0.refused = payer }
    }

    var asked: [Payer] { state.withLock(\.asked) }
    func answer() { isLet.finish(.success(())) }
    func waitUntilAsked() async throws { try await isAsked.value() }

    func embeddings(of texts: [String], for payer: Payer) async throws -> Embeddings {
      let isRefused = state.withLock { state in
        state.asked.append(payer)
        return state.refused == payer
      }
      isAsked.finish(.success(()))
      try await isLet.value()
      if isRefused { throw ServiceError(.limitReached, "no") }
      var embeddings = LexicalEmbedding().embeddings(of: texts, for: payer)
      embeddings.usage = TokenUsage(promptTokens: 5)
      return embeddings
    }
  }

  private func ask(
    _ cache: EmbeddingCache,
    _ text: String,
    _ provider: any EmbeddingProvider,
    for payer: Payer = .user("carl")
  ) async throws -> (vector: [Float], usage: TokenUsage) {
    var usage = TokenUsage()
    let vector = try await cache.vector(of: text, by: provider, for: payer, usage: &usage)
    return (vector, usage)
  }

  @Test("What was used longest ago is forgotten")
  func forgets() async throws {
    let provider = Held()
    provider.answer()
    let cache = EmbeddingCache(entriesMax: 2)
    for text in ["a", "b", "a", "c", "a", "b"] { _ = try await ask(cache, text, provider) }
    #expect(provider.asked.count == 4)
  }

  // one     asks ───────────────── answer
  // others        join ─────────── answer
  @Test("Simultaneous calls for the same text share one request, which one of them reports")
  func shared() async throws {
    let provider = Held()
    let cache = EmbeddingCache()
    let results = try await withThrowingTaskGroup(
      of: (vector: [Float], usage: TokenUsage).self
    ) { group in
      group.addTask { try await ask(cache, "knee", provider) }
      try await provider.waitUntilAsked()
      for _ in 0..<3 {
        group.addTask { try await ask(cache, "knee", provider, for: .user("tina")) }
      }
      group.addTask {
        provider.answer()
        return try await ask(cache, "knee", provider)
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(provider.asked == [.user("carl")])
    #expect(Set(results.map(\.vector)).count == 1)
    #expect(results.reduce(0) { $0 + $1.usage.totalTokens } == 5)
  }

  // one     asks ── cancelled
  // other        join ─────────── answer
  @Test("A caller who gives up fails no other, and what was paid for is kept")
  func cancellation() async throws {
    let provider = Held()
    let cache = EmbeddingCache()
    let first = Task { try await ask(cache, "knee", provider) }
    try await provider.waitUntilAsked()
    let second = Task { try await ask(cache, "knee", provider) }
    first.cancel()
    // The first caller does not wait for the provider, which has not answered yet.
    await #expect(throws: CancellationError.self) { _ = try await first.value }
    provider.answer()
    let vector = try await second.value.vector
    #expect(!vector.isEmpty)
    _ = try await ask(cache, "knee", provider)
    #expect(provider.asked.count == 1)
  }

  @Test("A request whose only caller gave up is kept for the next")
  func abandoned() async throws {
    let provider = Held()
    let cache = EmbeddingCache()
    let caller = Task { try await ask(cache, "knee", provider) }
    try await provider.waitUntilAsked()
    caller.cancel()
    await #expect(throws: CancellationError.self) { _ = try await caller.value }
    provider.answer()
    let next = try await ask(cache, "knee", provider)
    #expect(!next.vector.isEmpty)
    #expect(provider.asked.count == 1)
  }

  @Test("A payer at the limit fails no other payer, and a failure is not remembered")
  func limits() async throws {
    let provider = Held(refusing: .user("carl"))
    let cache = EmbeddingCache()
    let first = Task { try await ask(cache, "knee", provider) }
    try await provider.waitUntilAsked()
    let second = Task { try await ask(cache, "knee", provider, for: .user("tina")) }
    provider.answer()
    await #expect(throws: ServiceError.self) { _ = try await first.value }
    let vector = try await second.value.vector
    #expect(!vector.isEmpty)
    #expect(provider.asked == [.user("carl"), .user("tina")])
  }

  @Test("Four messages of the same text cost one embedding, whatever their events do")
  func messages() async throws {
    for faults in [DeliveryFaults.inOrder, DeliveryFaults(seed: 1)] {
      try await ChatFixture.run(ChatFixture.tinyModel, deliveryFaults: faults) { fixture in
        for number in 0..<4 { try await fixture.write("m\(number)", "Same words") }
        try await fixture.suite.settle()
        #expect(fixture.providers.records.count == 4)
        #expect(fixture.providers.count("/embeddings") == 1)
      }
    }
  }

  @Test("Equal texts indexed at once cost one embedding")
  func indexer() async throws {
    try await ChatFixture.run(ChatFixture.tinyModel, deliveryFaults: .inOrder) { fixture in
      for number in 0..<4 { try await fixture.write("m\(number)", "Same words") }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<4 {
          group.addTask {
            _ = try await fixture.services.indexer.index(chatID: "c1", messageID: "m\(number)")
          }
        }
        try await group.waitForAll()
      }
      #expect(fixture.providers.count("/embeddings") == 1)
    }
  }
}
