import Foundation
import OutboundHTTP
import PsstServices
import Synchronization

/// A vector index and an embedding model in memory, behind their REST forms.
///
/// The model's vectors are the lexical ones, so overlap in words is closeness.
final class ProviderStandIn: HTTPTransport {
  private struct State {
    var tags: [String: String]?
    var dimension = 0
    var records: [String: VectorRecord] = [:]
    var requests: [OutboundRequest] = []
    var faults: [OutboundResponse] = []
    var outage: (suffix: String, answer: Result<OutboundResponse, OutboundHTTPError>)?
    var embedsAsBase64 = true
    var hooks: [(suffix: String, act: @Sendable () async throws -> Void)] = []
  }

  private let state = Mutex(State())
  static let host = "http://vectors.test"

  var records: [String: VectorRecord] { state.withLock { $0.records } }
  var tags: [String: String]? { state.withLock { $0.tags } }
  var requests: [OutboundRequest] { state.withLock { $0.requests } }

  /// How often the path of a request ended so.
  func count(_ suffix: String) -> Int { requests.filter { $0.url.hasSuffix(suffix) }.count }

  /// The next requests are answered so, before all else.
  func fail(_ faults: OutboundResponse...) { state.withLock { $0.faults += faults } }

  /// From now on requests whose path ends so are answered so.
  func breakDown(_ suffix: String, _ answer: Result<OutboundResponse, OutboundHTTPError>) {
    state.withLock { $0.outage = (suffix, answer) }
  }

  /// Ends an outage.
  func recover() { state.withLock { $0.outage = nil } }

  /// Acts while a request whose path ends so is under way, before it has an effect: the next of its
  /// kind for which nothing is planned yet.
  func during(_ suffix: String, _ act: @escaping @Sendable () async throws -> Void) {
    state.withLock { $0.hooks.append((suffix, act)) }
  }

  /// The records that were written to the index, in order, later ones of the same id too.
  var upserted: [VectorRecord] {
    requests.filter { $0.url.hasSuffix("/vectors/upsert") }.flatMap { request in
      (try? JSONDecoder().decode(Upsert.self, from: Data(request.body)))?.vectors ?? []
    }
  }

  func deleteIndex() {
    state.withLock {
      $0.tags = nil
      $0.records = [:]
    }
  }

  func retag(_ tags: [String: String]) { state.withLock { $0.tags = tags } }
  func answersWithArrays() { state.withLock { $0.embedsAsBase64 = false } }

  func send(_ request: OutboundRequest) async throws -> OutboundResponse {
    let hook = state.withLock { state in
      state.hooks.firstIndex { request.url.hasSuffix($0.suffix) }.map { state.hooks.remove(at: $0) }
    }
    try await hook?.act()
    return try state.withLock { state in
      state.requests.append(request)
      if !state.faults.isEmpty { return state.faults.removeFirst() }
      if let outage = state.outage, request.url.hasSuffix(outage.suffix) {
        return try outage.answer.get()
      }
      let path = request.url.dropFirst(Self.host.count).split(separator: "?").first ?? ""
      let body = try? JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any]
      switch (request.method, path) {
      case ("POST", "/v1/embeddings"): return try Self.embed(body ?? [:], state)
      case ("POST", "/indexes"):
        guard state.tags == nil else { return Self.reply(409, #"{"status":409}"#) }
        state.tags = body?["tags"] as? [String: String] ?? [:]
        state.dimension = body?["dimension"] as? Int ?? 0
        return Self.description(state)
      case ("GET", "/indexes/chat-messages"): return Self.description(state)
      default:
        guard state.tags != nil else { return Self.reply(404, #"{"code":5,"message":"none"}"#) }
        return try Self.dataPlane(request, String(path), &state)
      }
    }
  }

  private static func description(_ state: State) -> OutboundResponse {
    guard let tags = state.tags else {
      return reply(404, #"{"status":404,"error":{"code":"NOT_FOUND","message":"none"}}"#)
    }
    let json: [String: Any] = [
      "name": "chat-messages", "host": "vectors.test/ix/chat-messages", "tags": tags,
      "dimension": state.dimension,
    ]
    return reply(200, json)
  }

  private struct Upsert: Decodable {
    var vectors: [VectorRecord]
  }

  private struct Query: Decodable {
    var vector: [Float]
    var topK: Int
    var filter: Filter?
  }

  private struct Match: Encodable {
    var id: String
    var score: Double
    var metadata: [String: MetadataValue]
  }

  /// The part of the filter language that Psst uses.
  private struct Filter: Decodable {
    /// Of each field one of the values.
    var conditions: [(field: String, values: [MetadataValue])] = []

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let all = try? container.decode([String: [Filter]].self), let parts = all["$and"] {
        conditions = parts.flatMap(\.conditions)
      } else {
        conditions = try container.decode([String: [String: MetadataValue]].self).compactMap {
          field,
          test in
          test["$eq"].map { (field, [$0]) }
            ?? test["$in"]?.strings.map { (field, $0.map { .string($0) }) }
        }
      }
    }

    func accepts(_ metadata: [String: MetadataValue]) -> Bool {
      conditions.allSatisfy { field, values in
        if case .strings(let list) = metadata[field] {
          return values.contains { list.contains($0.string ?? "") }
        }
        return metadata[field].map(values.contains) ?? false
      }
    }
  }

  private static func dataPlane(
    _ request: OutboundRequest,
    _ path: String,
    _ state: inout State
  ) throws -> OutboundResponse {
    switch path {
    case "/ix/chat-messages/vectors/upsert":
      for record in try JSONDecoder().decode(Upsert.self, from: Data(request.body)).vectors {
        guard record.values.count == state.dimension else {
          return reply(400, #"{"code":3,"message":"dimension"}"#)
        }
        state.records[record.id] = record
      }
      return reply(200, "{}")
    case "/ix/chat-messages/query":
      let query = try JSONDecoder().decode(Query.self, from: Data(request.body))
      let matches = state.records.values.filter { query.filter?.accepts($0.metadata) ?? true }
        .map { record in
          let score = zip(record.values, query.vector).reduce(0) { $0 + Double($1.0 * $1.1) }
          return Match(id: record.id, score: score, metadata: record.metadata)
        }
        .sorted { ($1.score, $0.id) < ($0.score, $1.id) }.prefix(query.topK)
      return reply(200, try JSONEncoder().encode(["matches": Array(matches)]))
    case "/ix/chat-messages/vectors/fetch":
      let ids = URLComponents(string: request.url)?.queryItems?.compactMap(\.value) ?? []
      let found = state.records.filter { ids.contains($0.key) }
      return reply(200, try JSONEncoder().encode(["vectors": found]))
    case "/ix/chat-messages/vectors/delete":
      let body = try JSONDecoder().decode([String: [String]].self, from: Data(request.body))
      for id in body["ids"] ?? [] { state.records[id] = nil }
      return reply(200, "{}")
    default: return reply(404, #"{"code":5,"message":"no such call"}"#)
    }
  }

  private static func embed(_ body: [String: Any], _ state: State) throws -> OutboundResponse {
    let texts = body["input"] as? [String] ?? []
    guard body["model"] as? String == "tiny", !texts.contains("") else {
      return reply(400, #"{"error":{"message":"bad input","code":null}}"#)
    }
    let data: [[String: Any]] = LexicalEmbedding().embeddings(of: texts).vectors.enumerated().map {
      index,
      vector in
      let bytes = vector.flatMap { number in
        (0..<4).map { UInt8(truncatingIfNeeded: number.bitPattern >> (8 * $0)) }
      }
      let isBase64 = state.embedsAsBase64 && body["encoding_format"] as? String == "base64"
      return [
        "index": index,
        "embedding": isBase64 ? Data(bytes).base64EncodedString() as Any : vector as Any,
      ]
    }
    // The order of the answers is not promised.
    return reply(200, ["data": Array(data.reversed())])
  }

  private static func reply(_ status: Int, _ json: String) -> OutboundResponse {
    OutboundResponse(status: status, body: Array(json.utf8))
  }

  private static func reply(_ status: Int, _ json: Data) -> OutboundResponse {
    OutboundResponse(status: status, body: Array(json))
  }

  private static func reply(_ status: Int, _ json: [String: Any]) -> OutboundResponse {
    // What stands here is always JSON; an empty body would fail the test.
    reply(status, (try? JSONSerialization.data(withJSONObject: json)) ?? Data())
  }
}
