import OutboundHTTP

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Embeddings of any server that speaks OpenAI's protocol.
///
/// Services get it as `MeteredEmbedding`, whose calls go through the ledger.
struct OpenAIEmbedding: Sendable {
  /// The model that makes the vectors.
  let model: EmbeddingModel
  private let server: OpenAIServer

  // The service's own limits; each token is at least one byte, so bytes are on the safe side.
  private static let inputsMax = 2048
  private static let inputBytesMax = 8192
  private static let requestBytesMax = 300_000
  private static let timeout: Duration = .seconds(30)
  /// Tokens that a model may add to a text, at its beginning and end.
  private static let marksMax = 2
  /// The most bytes of a number, written out with all its digits.
  private static let numberBytesMax = 24

  /// A provider below `baseURL`, such as `https://api.openai.com/v1`.
  init(
    model: EmbeddingModel,
    baseURL: String,
    key: String?,
    http: any HTTPTransport,
    retries: ServiceRetries = ServiceRetries()
  ) {
    self.model = model
    server = OpenAIServer(
      baseURL: baseURL,
      key: key,
      call: ServiceCall(
        service: "the embedding provider",
        keySetting: "OPENAI_API_KEY",
        modelSetting: "PSST_EMBEDDING_MODEL",
        http: http,
        now: retries.now
      ),
      retries: retries,
      circuit: ServiceCircuit(now: retries.now)
    )
  }

  /// Throws as a call would while the circuit is open.
  func check() throws { try server.check() }

  /// The most tokens that embedding the texts can use.
  func usageMax(of texts: [String]) -> TokenUsage {
    TokenUsage(
      promptTokens: texts.reduce(0) { $0 + min($1.utf8.count, Self.inputBytesMax) + Self.marksMax }
    )
  }

  /// One vector of unit length for each text, in order, in as few requests as the service allows.
  ///
  /// Only the beginning of a long text counts. Adds to `usage` what each answer cost, also when a
  /// later one fails. Throws `ServiceError`.
  func embeddings(of texts: [String], usage: inout TokenUsage) async throws -> [[Float]] {
    var vectors: [[Float]] = []
    for batch in Self.batches(texts.map(Self.clipped)) {
      vectors += try await request(batch, usage: &usage)
    }
    return vectors
  }

  private func request(_ texts: [String], usage: inout TokenUsage) async throws -> [[Float]] {
    let isShortened =
      model.name.hasPrefix("text-embedding-3")
      && EmbeddingModel.known[model.name]?.dimension != model.dimension
    let body = Request(
      model: model.name,
      input: texts,
      encoding_format: "base64",
      dimensions: isShortened ? model.dimension : nil
    )
    let numbersMax = texts.count * model.dimension
    return try await server.post(
      ["embeddings"],
      body,
      timeout: Self.timeout,
      responseBytesMax: OutboundRequest.defaultResponseBytesMax + numbersMax * Self.numberBytesMax
    ) { (reply: Reply) in
      let counted = TokenUsage(
        reply.usage,
        promptBytes: texts.reduce(0) { $0 + $1.utf8.count },
        atMost: usageMax(of: texts)
      )
      return try usage.add(counted) { try vectors(of: reply, for: texts) }
    }
  }

  /// The vectors in the order of the texts, whatever the order of the answer.
  private func vectors(of reply: Reply, for texts: [String]) throws -> [[Float]] {
    guard reply.data.count == texts.count else {
      throw ServiceError(
        .unavailable,
        "the embedding provider sent \(reply.data.count) vectors for \(texts.count) texts"
      )
    }
    var vectors = [[Float]?](repeating: nil, count: texts.count)
    for (position, item) in reply.data.enumerated() {
      let index = item.index ?? position
      guard vectors.indices.contains(index), vectors[index] == nil else {
        throw ServiceError(.unavailable, "the embedding provider numbered its vectors wrongly")
      }
      vectors[index] = try checked(item.embedding.numbers)
    }
    return vectors.compactMap(\.self)
  }

  /// The vector with unit length, which not every server ensures.
  private func checked(_ vector: [Float]) throws -> [Float] {
    guard vector.count == model.dimension else {
      throw ServiceError(
        .misconfigured,
        "\(model.name) gave \(vector.count) numbers where \(model.dimension) were expected; "
          + "set PSST_EMBEDDING_DIMENSION"
      )
    }
    var square = 0.0
    for number in vector { square += Double(number) * Double(number) }
    guard square.isFinite, square > 0 else {
      throw ServiceError(.unavailable, "the embedding provider sent a vector without a direction")
    }
    // Rounding alone changes the length by no more than this.
    if abs(square - 1) < 1e-4 { return vector }
    let length = square.squareRoot()
    return vector.map { Float(Double($0) / length) }
  }

  /// The longest beginning that the service is sure to accept.
  static func clipped(_ text: String) -> String {
    guard text.utf8.count > inputBytesMax else { return text }
    // Cut between scalars, not characters: one character may be longer than the whole limit.
    var end = text.utf8.index(text.startIndex, offsetBy: inputBytesMax)
    while end.samePosition(in: text.unicodeScalars) == nil { end = text.utf8.index(before: end) }
    return String(text[..<end])
  }

  /// Splits texts so that no request breaks the service's limits.
  static func batches(_ texts: [String]) -> [[String]] {
    var batches: [[String]] = []
    var batch: [String] = []
    var bytes = 0
    for text in texts {
      if batch.count == inputsMax || bytes + text.utf8.count > requestBytesMax, !batch.isEmpty {
        batches.append(batch)
        batch = []
        bytes = 0
      }
      batch.append(text)
      bytes += text.utf8.count
    }
    if !batch.isEmpty { batches.append(batch) }
    return batches
  }

  private struct Request: Encodable {
    var model: String
    var input: [String]
    var encoding_format: String
    var dimensions: Int?
  }

  private struct Reply: Decodable {
    struct Item: Decodable {
      /// The vector's place; some servers leave it out and keep the order.
      var index: Int?
      var embedding: Numbers
    }
    var data: [Item]
    var usage: TokenUsage.Stated?
  }

  /// A vector as base64 of little-endian floats, as asked, or as an array from other servers.
  private struct Numbers: Decodable {
    var numbers: [Float]

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      // `try?` only asks which of the two forms it is; the second one reports.
      guard let text = try? container.decode(String.self) else {
        numbers = try container.decode([Float].self)
        return
      }
      guard let data = Data(base64Encoded: text), data.count.isMultiple(of: 4) else {
        throw DecodingError.dataCorruptedError(
          in: container,
          debugDescription: "is not base64 of floats"
        )
      }
      let bytes = Array(data)
      numbers = stride(from: 0, to: bytes.count, by: 4).map { start in
        Float(
          bitPattern: (0..<4).reduce(UInt32(0)) { $0 | UInt32(bytes[start + $1]) << (8 * $1) }
        )
      }
    }
  }
}
