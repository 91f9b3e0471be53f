import OutboundHTTP

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A provider of embeddings from any server with OpenAI's protocol.
///
/// Services use it through `MeteredEmbedding`, which records each call in the ledger.
struct OpenAIEmbedding: Sendable {
  /// The embedding model.
  let model: EmbeddingModel
  private let server: OpenAIServer

  // The limits of the service. Each token is at least one byte, so limits in bytes are safe.
  private static let inputsMax = 2048
  private static let inputBytesMax = 8192
  private static let requestBytesMax = 300_000
  private static let timeout: Duration = .seconds(30)
  /// The maximum number of tokens that a model adds at the beginning and end of a text.
  private static let marksMax = 2
  /// The maximum size of a number in bytes, written with all its digits.
  private static let numberBytesMax = 24

  /// Creates a provider below `baseURL`, such as `https://api.openai.com/v1`.
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

  /// Throws the error of a call while the circuit is open.
  func check() throws { try server.check() }

  /// Returns the maximum number of tokens that embedding the texts can use.
  func usageMax(of texts: [String]) -> TokenUsage {
    TokenUsage(
      promptTokens: texts.reduce(0) { $0 + min($1.utf8.count, Self.inputBytesMax) + Self.marksMax }
    )
  }

  /// Returns one vector of unit length for each text, in order, in as few requests as possible.
  ///
  /// Only the beginning of a long text is used. Adds the usage of each response to `usage`, also if
  /// a later request fails. Throws `ServiceError`.
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

  /// Returns the vectors in the order of the texts, whatever the order in the response.
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

  /// Returns the vector scaled to unit length, which not every server ensures.
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
    // Rounding errors alone change the length by no more than this.
    if abs(square - 1) < 1e-4 { return vector }
    let length = square.squareRoot()
    return vector.map { Float(Double($0) / length) }
  }

  /// Returns the longest prefix that the service is certain to accept.
  static func clipped(_ text: String) -> String {
    guard text.utf8.count > inputBytesMax else { return text }
    // The cut is between scalars, because one character may be longer than the limit.
    var end = text.utf8.index(text.startIndex, offsetBy: inputBytesMax)
    while end.samePosition(in: text.unicodeScalars) == nil { end = text.utf8.index(before: end) }
    return String(text[..<end])
  }

  /// Splits texts so that no request exceeds the service's limits.
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
      /// The index of the vector's text; some servers omit it and keep the order.
      var index: Int?
      var embedding: Numbers
    }
    var data: [Item]
    var usage: TokenUsage.Stated?
  }

  /// A vector, decoded from base64 of little-endian floats, or from an array of numbers.
  ///
  /// Base64 is requested, but some servers send an array.
  private struct Numbers: Decodable {
    var numbers: [Float]

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      // `try?` only tests for the first format. Errors of the second are thrown.
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
