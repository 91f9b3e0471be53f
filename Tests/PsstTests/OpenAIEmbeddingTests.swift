import Foundation
import OpenAIStub
import OutboundHTTP
@testable import PsstBackend
import TestSupport
import Testing

/// The stub and providers that use it; waits are recorded instead of performed.
struct StubbedProviders: Sendable {
  let stub = OpenAIModelStub()
  let waits = WaitLog()
  /// November 6, 1994, 08:49:37 GMT.
  static let now = Date(timeIntervalSince1970: 784_111_777)

  func retries(waitMax: Duration = .seconds(120)) -> ServiceRetries {
    ServiceRetries(
      waitMax: waitMax,
      sleep: { [waits] in waits.add($0) },
      random: { 0 },
      now: { Self.now }
    )
  }

  func embedding(
    _ name: String = "text-embedding-3-small",
    dimension: Int = 8,
    waitMax: Duration = .seconds(120)
  ) -> OpenAIEmbedding {
    OpenAIEmbedding(
      model: EmbeddingModel(
        provider: "openai",
        name: name,
        dimension: dimension,
        relevanceThreshold: 0.3
      ),
      baseURL: OpenAIModelStub.baseURL,
      key: "sk-test",
      http: stub,
      retries: retries(waitMax: waitMax)
    )
  }

  func chat() -> OpenAIChat {
    OpenAIChat(
      model: "gpt-4o-mini",
      baseURL: OpenAIModelStub.baseURL,
      key: "sk-test",
      http: stub,
      retries: retries()
    )
  }

  var statuses: [Int] { stub.journal.entries.map(\.status) }
}

@Suite("Embeddings of a server that fails")
struct OpenAIEmbeddingTests {
  private let providers = StubbedProviders()

  /// Embeds one text and returns the error; nil if it succeeds.
  private func failure(waitMax: Duration = .seconds(120)) async throws -> ServiceError? {
    do {
      var usage = TokenUsage()
      let vectors = try await providers.embedding(waitMax: waitMax)
        .embeddings(of: ["sore knee"], usage: &usage)
      #expect(vectors.map(\.count) == [8])
      return nil
    } catch let error as ServiceError {
      return error
    }
  }

  @Test(
    "What passes is tried again, and then again",
    arguments: [408, 409, 429, 500, 502, 503, 504]
  )
  func transient(status: Int) async throws {
    try providers.stub.fail(StubFault(.embeddings, times: 2, status: status))

    #expect(try await failure() == nil)
    #expect(providers.statuses == [status, status, 200])
    #expect(providers.waits.all == [.milliseconds(500), .seconds(1)])
  }

  @Test("What stays is an error after three attempts")
  func lasting() async throws {
    try providers.stub.fail(StubFault(.embeddings, times: 3, status: 503))

    #expect(try await failure()?.kind == .unavailable)
    #expect(providers.statuses == [503, 503, 503])
  }

  @Test(
    "What no repetition fixes is tried once",
    arguments: zip(
      [400, 401, 403, 404, 413, 422],
      [.refused, .misconfigured, .misconfigured, .misconfigured, .refused, .refused]
        as [ServiceError.Kind]
    )
  )
  func permanent(status: Int, kind: ServiceError.Kind) async throws {
    try providers.stub.fail(StubFault(.embeddings, status: status))

    #expect(try await failure()?.kind == kind)
    #expect(providers.statuses == [status])
  }

  @Test(
    "A spent quota is never tried again, whatever the header says",
    arguments: ["type", "code"]
  )
  func quota(field: String) async throws {
    try providers.stub.fail(
      StubFault(
        .embeddings,
        status: 429,
        body: ["error": .object(["message": "spent", field: "insufficient_quota"])],
        headers: ["x-should-retry": "true", "retry-after": "1"]
      )
    )
    let error = try await failure()

    #expect(error?.kind == .quotaExhausted)
    #expect(error?.isTransient == false)
    #expect(providers.statuses == [429])
  }

  @Test(
    "A wait is as the service wishes",
    arguments: [
      (["retry-after-ms": "20"], .milliseconds(20)),
      (["retry-after-ms": "20", "retry-after": "7"], .milliseconds(20)),
      (["retry-after-ms": "soon", "retry-after": "7"], .seconds(7)),
      (["retry-after": "2.5"], .milliseconds(2500)),
      (["retry-after": "120"], .seconds(120)),
      (["retry-after": "Sun, 06 Nov 1994 08:50:07 GMT"], .seconds(30)),
      // The service's clock is an hour ahead and decides.
      (
        [
          "retry-after": "Sun, 06 Nov 1994 09:49:47 GMT", "date": "Sun, 06 Nov 1994 09:49:37 GMT",
        ], .seconds(10)
      ),
      // Invalid or past values: the client's own delay applies.
      (["retry-after": "0"], .milliseconds(500)),
      (["retry-after": "-5"], .milliseconds(500)),
      (["retry-after": "nan"], .milliseconds(500)),
      (["retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"], .milliseconds(500)),
      (["retry-after": "later"], .milliseconds(500)),
    ] as [([String: String], Duration)]
  )
  func wishes(headers: [String: String], wait: Duration) async throws {
    try providers.stub.fail(StubFault(.embeddings, status: 429, headers: headers))

    #expect(try await failure() == nil)
    #expect(providers.waits.all == [wait])
  }

  @Test(
    "A requested delay of more than two minutes ends the call with an error",
    arguments: [
      (["retry-after": "121"], .seconds(121)),
      (["retry-after-ms": "120001"], .milliseconds(120_001)),
      (["retry-after": "Sun, 06 Nov 1994 09:49:37 GMT"], .seconds(3600)),
      (["retry-after": "inf"], .seconds(86_400)), (["retry-after": "1e300"], .seconds(86_400)),
    ] as [([String: String], Duration)]
  )
  func longWishes(headers: [String: String], wait: Duration) async throws {
    try providers.stub.fail(StubFault(.embeddings, status: 429, headers: headers))
    let error = try await failure(waitMax: .seconds(1000))

    #expect(error?.kind == .rateLimited)
    #expect(error?.retryAfter == wait)
    #expect(providers.waits.all.isEmpty)
    #expect(providers.statuses == [429])
  }

  @Test("A function that cannot wait as long hands the wish on")
  func shortPatience() async throws {
    try providers.stub.fail(StubFault(.embeddings, status: 503, headers: ["retry-after": "11"]))

    #expect(try await failure(waitMax: .seconds(10))?.retryAfter == .seconds(11))
    #expect(providers.statuses == [503])
  }

  @Test("The service's word on trying again outweighs its status")
  func shouldRetry() async throws {
    try providers.stub.fail(
      StubFault(.embeddings, status: 400, headers: ["x-should-retry": "true"]),
      StubFault(.embeddings, status: 503, headers: ["x-should-retry": "false"])
    )

    #expect(try await failure()?.kind == .unavailable)
    #expect(providers.statuses == [400, 503])
  }

  @Test("Time-outs and broken connections are tried again")
  func connections() async throws {
    try providers.stub.fail(
      StubFault(.embeddings, delaySeconds: 600),
      StubFault(.embeddings, reset: true)
    )

    #expect(try await failure() == nil)
    #expect(providers.stub.journal.entries.count == 3)
  }

  @Test(
    "Answers that are none are tried again, and never taken",
    arguments: [
      StubFault(.embeddings, body: "<html>Sign in</html>"),
      StubFault(.embeddings, body: ""), StubFault(.embeddings, body: ["data": []]),
      StubFault(.embeddings, body: ["data": [["index": 0, "embedding": "====="]]]),
      StubFault(
        .embeddings,
        body: ["data": [["index": 7, "embedding": [1, 0, 0, 0, 0, 0, 0, 0]]]]
      ),
      StubFault(
        .embeddings,
        body: ["data": [["index": 0, "embedding": [0, 0, 0, 0, 0, 0, 0, 0]]]]
      ),
      StubFault(.embeddings, alter: .halfJSON), StubFault(.embeddings, truncateAfter: 1),
      StubFault(.embeddings, alter: .vectorMissing),
      StubFault(.embeddings, alter: .vectorsNotANumber),
    ]
  )
  func garbage(fault: StubFault) async throws {
    try providers.stub.fail(fault)

    #expect(try await failure() == nil)
    #expect(providers.stub.journal.entries.count == 2)
    try providers.stub.fail(fault, fault, fault)
    #expect(try await failure()?.kind == .unavailable)
  }

  @Test("Vectors of another length are a matter of settings")
  func dimension() async throws {
    try providers.stub.fail(StubFault(.embeddings, alter: .vectorsShort))

    #expect(try await failure()?.kind == .misconfigured)
    #expect(providers.stub.journal.entries.count == 1)
  }

  @Test("Vectors get unit length where the server does not see to it")
  func scale() async throws {
    var usage = TokenUsage()
    let right = try await providers.embedding().embeddings(of: ["sore knee"], usage: &usage)
    try providers.stub.fail(StubFault(.embeddings, alter: .vectorsUnscaled))
    let scaled = try await providers.embedding().embeddings(of: ["sore knee"], usage: &usage)

    for (one, other) in zip(right[0], scaled[0]) {
      #expect(abs(one - other) < 1e-6)
    }
  }

  @Test("Tokens are counted over all requests, and a count that is missing is estimated")
  func usage() async throws {
    try providers.stub.add(StubScript(embeddings: StubEmbedding(dimension: 8)))
    let texts = Array(repeating: "knee", count: 2050)
    var counted = TokenUsage()
    let vectors = try await providers.embedding().embeddings(of: texts, usage: &counted)
    try providers.stub.fail(StubFault(.embeddings, call: 2, alter: .withoutUsage))
    var estimated = TokenUsage()
    _ = try await providers.embedding().embeddings(of: texts, usage: &estimated)

    #expect(vectors.count == 2050)
    #expect(counted == TokenUsage(promptTokens: 2050))
    #expect(estimated == TokenUsage(promptTokens: 2050, isEstimated: true))
  }

  @Test(
    "No text uses more tokens than a call reserves for it",
    arguments: [
      "a", "sore knee", "I squatted 3 x 12 at 60 kg, and my knee is sore since then.", "膝が痛いです",
      "Колено болит", "👍🏽🙏", String(repeating: "!", count: 9000),
    ]
  )
  func reservation(text: String) async throws {
    var usage = TokenUsage()
    let texts = [text, text]
    _ = try await providers.embedding().embeddings(of: texts, usage: &usage)
    #expect(usage.promptTokens > 0)
    #expect(usage.promptTokens <= providers.embedding().usageMax(of: texts).promptTokens)
  }

  @Test("Requests are as large as the service takes, and no larger")
  func limits() async throws {
    try providers.stub.add(StubScript(embeddings: StubEmbedding(dimension: 8)))
    // Each punctuation mark is a token, so the text has the maximum number of tokens for its bytes.
    let dense = String(repeating: "!", count: 9000)
    // A letter with more combining marks than the service accepts: a character that must be cut.
    let tower = "e" + String(repeating: "\u{301}", count: 9000)
    let texts = Array(repeating: "knee", count: 3000) + Array(repeating: dense, count: 40) + [tower]
    var usage = TokenUsage()
    let vectors = try await providers.embedding().embeddings(of: texts, usage: &usage)

    #expect(vectors.count == texts.count)
    #expect(Set(providers.statuses) == [200])
    #expect(providers.statuses.count == 3)
  }

  @Test("No message of an error holds the key")
  func secrets() async throws {
    try providers.stub.fail(
      StubFault(
        .embeddings,
        status: 401,
        body: ["error": ["message": "Incorrect API key provided: sk-test."]]
      )
    )
    let error = try await failure()

    #expect(error?.message.contains("sk-test") == false)
    #expect(error?.message.contains("Incorrect API key provided: ….") == true)
  }
}
