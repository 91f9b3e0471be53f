import OutboundHTTP
@testable import PsstBackend
import Testing

@Suite("Embeddings")
struct EmbeddingTests {
  private func similarity(_ left: String, _ right: String) -> Double {
    let vectors = LexicalEmbedding().embeddings(of: [left, right], for: .app).vectors
    return zip(vectors[0], vectors[1]).reduce(0) { $0 + Double($1.0 * $1.1) }
  }

  @Test("Texts that share words are close, others are not, and all have unit length")
  func lexical() {
    let threshold = LexicalEmbedding().model.relevanceThreshold
    #expect(similarity("sore knee", "My knee is sore since Monday") > threshold)
    #expect(similarity("squats", "I was squatting yesterday") > threshold)
    #expect(similarity("sore knee", "Breakfast was oats and berries") < threshold)
    #expect(similarity("is it on the", "where is it on the map") < 0.9)
    for text in ["a", "🏋️", "…", "knee knee", ""] {
      #expect(abs(similarity(text, text) - 1) < 1e-5)
    }
  }

  @Test("Texts are embedded in order, whichever form the answer has", arguments: [true, false])
  func forms(isBase64: Bool) async throws {
    let providers = ProviderStub()
    if !isBase64 { providers.answersWithArrays() }
    guard case .openAI(let baseURL, let key, let model) = ChatFixture.tinyModel else { return }
    let embedding = OpenAIEmbedding(model: model, baseURL: baseURL, key: key, http: providers)
    let texts = ["sore knee", "oats", "squats"]
    var usage = TokenUsage()
    let vectors = try await embedding.embeddings(of: texts, usage: &usage)

    #expect(vectors == LexicalEmbedding().embeddings(of: texts, for: .app).vectors)
    #expect(providers.requests.map { $0.headers["authorization"] } == ["Bearer key"])
  }

  @Test("Requests stay within the service's limits")
  func batches() {
    let short = Array(repeating: "word", count: 5000)
    #expect(OpenAIEmbedding.batches(short).map(\.count) == [2048, 2048, 904])
    let long = Array(repeating: String(repeating: "é", count: 4096), count: 40)
    #expect(OpenAIEmbedding.batches(long).map(\.count) == [36, 4])
    #expect(OpenAIEmbedding.batches([]).isEmpty)
    #expect(OpenAIEmbedding.clipped(String(repeating: "é", count: 9000)).utf8.count == 8192)
    #expect(OpenAIEmbedding.clipped("short") == "short")
  }

  @Test("A model that gives vectors of another length is refused")
  func dimension() async throws {
    guard case .openAI(let baseURL, let key, var model) = ChatFixture.tinyModel else { return }
    model.dimension = 100
    let embedding = OpenAIEmbedding(
      model: model,
      baseURL: baseURL,
      key: key,
      http: ProviderStub()
    )
    let error = await #expect(throws: ServiceError.self) {
      var usage = TokenUsage()
      return try await embedding.embeddings(of: ["a"], usage: &usage)
    }
    #expect(error?.kind == .misconfigured)
  }
}

@Suite("Settings of Psst")
struct PsstSettingsTests {
  @Test("Without a provider the embedding is lexical and the vectors are the emulator's")
  func defaults() throws {
    let settings = try PsstSettings(environment: [
      "OPENAI_API_KEY": "", "HEARTH_VECTORS_HOST": "http://127.0.0.1:9",
    ])
    guard case .lexical = settings.embedding else {
      Issue.record("a provider without a key")
      return
    }
    #expect(settings.vectors.host == "http://127.0.0.1:9")
    #expect(settings.vectors.index == "chat-messages")
  }

  @Test("A key asks for the usual model, with its own dimension and threshold")
  func openAI() throws {
    let settings = try PsstSettings(environment: [
      "OPENAI_API_KEY": "k", "PINECONE_HOST": "api.pinecone.io",
    ])
    guard case .openAI(let baseURL, "k", let model) = settings.embedding else {
      Issue.record("no provider")
      return
    }
    #expect(baseURL == "https://api.openai.com/v1")
    #expect(model.name == "text-embedding-3-small")
    #expect(model.dimension == 1536)
    #expect(model.relevanceThreshold == 0.3)
    #expect(!model.isDegraded)
    #expect(settings.vectors.host == "https://api.pinecone.io")
  }

  @Test("The stand-in serves beside a server of chat models when it is named")
  func lexicalByName() throws {
    let settings = try PsstSettings(environment: [
      "OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "PSST_EMBEDDING_MODEL": "hashed-words-1",
      "PSST_CHAT_MODEL": "mine",
    ])

    guard case .lexical = settings.embedding else {
      Issue.record("not the stand-in")
      return
    }
    #expect(settings.chat == .openAI(baseURL: "http://127.0.0.1:1/v1", key: nil, model: "mine"))
  }

  @Test("A model of unknown length needs its dimension, and numbers must be numbers")
  func unknownModel() throws {
    var environment = ["OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "PSST_EMBEDDING_MODEL": "mine"]
    #expect(throws: ServiceError.self) { try PsstSettings(environment: environment) }
    environment["PSST_EMBEDDING_DIMENSION"] = "many"
    #expect(throws: ServiceError.self) { try PsstSettings(environment: environment) }
    environment["PSST_EMBEDDING_DIMENSION"] = "64"
    guard case .openAI(_, nil, let model) = try PsstSettings(environment: environment).embedding
    else {
      Issue.record("no provider")
      return
    }
    #expect(model.dimension == 64)
  }
}
