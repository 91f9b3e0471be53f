public import OutboundHTTP

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Embeddings of any server that speaks OpenAI's protocol.
public struct OpenAIEmbedding: EmbeddingProvider {
  /// What makes the vectors.
  public let model: EmbeddingModel
  private let baseURL: String
  private let key: String?
  private let call: ServiceCall
  private let retries: ServiceRetries

  // The service's own limits; each token is at least one byte, so bytes are on the safe side.
  private static let inputsMax = 2048
  private static let inputBytesMax = 8192
  private static let requestBytesMax = 300_000

  /// A provider below `baseURL`, such as `https://api.openai.com/v1`.
  public init(
    model: EmbeddingModel,
    baseURL: String,
    key: String?,
    http: any HTTPTransport,
    retries: ServiceRetries = ServiceRetries()
  ) {
    self.model = model
    self.baseURL = baseURL
    self.key = key
    self.retries = retries
    call = ServiceCall(service: "the embedding provider", http: http)
  }

  /// One vector for each text, in as few requests as the service allows.
  ///
  /// Of a long text the beginning counts.
  public func embed(_ texts: [String]) async throws -> [[Float]] {
    var vectors: [[Float]] = []
    for batch in Self.batches(texts.map(Self.clipped)) {
      vectors += try await retries.run { try await request(batch) }
    }
    return vectors
  }

  private func request(_ texts: [String]) async throws -> [[Float]] {
    var headers: OutboundHeaders = ["Content-Type": "application/json"]
    if let key { headers["Authorization"] = "Bearer \(key)" }
    let isShortened =
      model.name.hasPrefix("text-embedding-3")
      && EmbeddingModel.known[model.name]?.dimension != model.dimension
    let body = Request(
      model: model.name,
      input: texts,
      encoding_format: "base64",
      dimensions: isShortened ? model.dimension : nil
    )
    let reply: Reply
    do {
      reply = try await call.send(
        OutboundRequest(
          method: "POST",
          url: OutboundURL.make(base: baseURL, path: ["embeddings"]),
          headers: headers,
          body: Array(try JSONEncoder().encode(body)),
          timeout: .seconds(30)
        ),
        as: Reply.self
      )
    } catch let error as ServiceError where error.kind == .notFound {
      // The server is there: what it does not know is the model or the path.
      throw ServiceError(.misconfigured, error.message)
    }
    let vectors = reply.data.sorted { $0.index < $1.index }.map(\.embedding.numbers)
    guard vectors.count == texts.count else {
      throw ServiceError(
        .unavailable,
        "the embedding provider sent \(vectors.count) vectors for \(texts.count) texts"
      )
    }
    if let wrong = vectors.first(where: { $0.count != model.dimension }) {
      throw ServiceError(
        .misconfigured,
        "\(model.name) gave \(wrong.count) numbers where \(model.dimension) were expected; "
          + "set PSST_EMBEDDING_DIMENSION"
      )
    }
    return vectors
  }

  /// The longest beginning that the service surely takes.
  static func clipped(_ text: String) -> String {
    guard text.utf8.count > inputBytesMax else { return text }
    var bytes = 0
    return String(
      text.prefix { character in
        bytes += character.utf8.count
        return bytes <= inputBytesMax
      }
    )
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
      var index: Int
      var embedding: Numbers
    }
    var data: [Item]
  }

  /// Base64 of little-endian floats as asked, or an array from servers that know no other form.
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
