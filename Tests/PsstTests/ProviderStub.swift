import Foundation
import OutboundHTTP
import PsstBackend
import Synchronization

/// An in-memory vector index and embedding model with REST interfaces.
///
/// The model's vectors are lexical: texts that share words are close.
final class ProviderStub: HTTPTransport {
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

  /// The number of requests whose path ended with `suffix`.
  func count(_ suffix: String) -> Int { requests.filter { $0.url.hasSuffix(suffix) }.count }

  /// Stores copies of a record under other ids.
  func copy(_ id: String, times count: Int) {
    state.withLock { state in
      guard let record = state.records[id] else { return }
      for number in 0..<count {
        var copy = record
        copy.id = "\(id)-\(number)"
        state.records[copy.id] = copy
      }
    }
  }

  /// Responds to the next requests with these responses, before anything else.
  func fail(_ faults: OutboundResponse...) { state.withLock { $0.faults += faults } }

  /// Responds with `answer` to all requests whose path ends with `suffix`, until `recover`.
  func breakDown(_ suffix: String, _ answer: Result<OutboundResponse, OutboundHTTPError>) {
    state.withLock { $0.outage = (suffix, answer) }
  }

  /// Ends an outage.
  func recover() { state.withLock { $0.outage = nil } }

  /// Runs `act` during the next request whose path ends with `suffix`.
  ///
  /// It runs before the request has an effect. If another action is already set for that request,
  /// `act` runs during the following one.
  func during(_ suffix: String, _ act: @escaping @Sendable () async throws -> Void) {
    state.withLock { $0.hooks.append((suffix, act)) }
  }

  /// All records written to the index in order, including repeated IDs.
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

  /// The documented limits of the service.
  private static let metadataBytesMax = 40_960
  private static let requestBytesMax = 2 * 1024 * 1024
  private static let addressBytesMax = 8192

  private static func refusal(_ record: VectorRecord, _ state: State) throws -> String? {
    if record.values.count != state.dimension { return "dimension" }
    let metadata = try JSONEncoder().encode(record.metadata)
    if metadata.count > metadataBytesMax { return "metadata size" }
    let isID = (1...512).contains(record.id.utf8.count) && record.id.utf8.allSatisfy { $0 < 128 }
    return isID ? nil : "id"
  }

  private struct Match: Encodable {
    var id: String
    var score: Double
    var metadata: [String: MetadataValue]
  }

  /// The part of the filter language that Psst uses.
  private struct Filter: Decodable {
    private enum Condition {
      case all([Filter])
      case any([Filter])
      /// The field has one of the values.
      case oneOf(field: String, values: [MetadataValue])
      /// The field is a number below `number`.
      case less(field: String, number: Double)
    }

    private var condition: Condition

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let parts = try? container.decode([String: [Filter]].self) {
        condition = parts["$or"].map(Condition.any) ?? .all(parts["$and"] ?? [])
        return
      }
      let (field, test) =
        try container.decode([String: [String: MetadataValue]].self).first ?? ("", [:])
      if case .number(let number)? = test["$lt"] {
        condition = .less(field: field, number: number)
        return
      }
      let values = test["$eq"].map { [$0] } ?? test["$in"]?.strings?.map { .string($0) }
      condition = .oneOf(field: field, values: values ?? [])
    }

    func accepts(_ metadata: [String: MetadataValue]) -> Bool {
      switch condition {
      case .all(let filters): filters.allSatisfy { $0.accepts(metadata) }
      case .any(let filters): filters.contains { $0.accepts(metadata) }
      case .oneOf(let field, let values):
        if case .strings(let list) = metadata[field] {
          values.contains { list.contains($0.string ?? "") }
        } else {
          metadata[field].map(values.contains) ?? false
        }
      case .less(let field, let number):
        if case .number(let value) = metadata[field] { value < number } else { false }
      }
    }
  }

  private static func dataPlane(
    _ request: OutboundRequest,
    _ path: String,
    _ state: inout State
  ) throws -> OutboundResponse {
    if request.body.count > requestBytesMax { return reply(413, #"{"code":3,"message":"size"}"#) }
    if request.url.utf8.count > addressBytesMax { return reply(414, "{}") }
    switch path {
    case "/ix/chat-messages/vectors/list": return try list(request, state)
    case "/ix/chat-messages/vectors/upsert":
      let records = try JSONDecoder().decode(Upsert.self, from: Data(request.body)).vectors
      for record in records {
        if let reason = try refusal(record, state) {
          return reply(400, #"{"code":3,"message":"\#(reason)"}"#)
        }
      }
      for record in records { state.records[record.id] = record }
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

  /// Lists IDs in order, a hundred on each page; a page's token is the ID before it.
  private static func list(
    _ request: OutboundRequest,
    _ state: State
  ) throws -> OutboundResponse {
    let query = URLComponents(string: request.url)?.queryItems ?? []
    func value(_ name: String) -> String { query.first { $0.name == name }?.value ?? "" }
    let ids = state.records.keys.sorted()
      .filter { $0.hasPrefix(value("prefix")) && $0 > value("paginationToken") }
    var json: [String: Any] = ["vectors": ids.prefix(100).map { ["id": $0] }]
    if ids.count > 100 { json["pagination"] = ["next": ids[99]] }
    return reply(200, json)
  }

  private static func embed(_ body: [String: Any], _ state: State) throws -> OutboundResponse {
    let texts = body["input"] as? [String] ?? []
    guard body["model"] as? String == "tiny", !texts.contains("") else {
      return reply(400, #"{"error":{"message":"bad input","code":null}}"#)
    }
    let data: [[String: Any]] = LexicalEmbedding().embeddings(of: texts, for: .app).vectors
      .enumerated().map { index, vector in
        let bytes = vector.flatMap { number in
          (0..<4).map { UInt8(truncatingIfNeeded: number.bitPattern >> (8 * $0)) }
        }
        let isBase64 = state.embedsAsBase64 && body["encoding_format"] as? String == "base64"
        return [
          "index": index,
          "embedding": isBase64 ? Data(bytes).base64EncodedString() as Any : vector as Any,
        ]
      }
    // The service does not guarantee the order.
    return reply(200, ["data": Array(data.reversed())])
  }

  private static func reply(_ status: Int, _ json: String) -> OutboundResponse {
    OutboundResponse(status: status, body: Array(json.utf8))
  }

  private static func reply(_ status: Int, _ json: Data) -> OutboundResponse {
    OutboundResponse(status: status, body: Array(json))
  }

  private static func reply(_ status: Int, _ json: [String: Any]) -> OutboundResponse {
    // The values are always valid JSON; an empty body would fail the test.
    reply(status, (try? JSONSerialization.data(withJSONObject: json)) ?? Data())
  }
}
