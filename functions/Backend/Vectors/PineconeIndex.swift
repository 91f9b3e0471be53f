public import OutboundHTTP
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A vector index of a service with Pinecone's REST API: the emulator or Pinecone itself.
///
/// The index is for the vectors of one embedding model, with ids of one format. It is created on
/// first use and tagged with both. An index of another model, or with ids of an earlier format, is
/// refused and neither filled nor searched.
public final class PineconeIndex: Sendable {
  /// The model whose vectors the index holds.
  public let model: EmbeddingModel
  private let settings: VectorSettings
  private let call: ServiceCall
  private let retries: ServiceRetries
  /// The circuit for reading, separate from writing.
  ///
  /// A service can refuse to write, for example because of its quota, and still serve queries.
  private let reading: ServiceCircuit
  private let writing: ServiceCircuit
  /// The address of the data plane, once the index is known to exist and to be valid.
  private let dataPlane = Mutex<String?>(nil)

  private static let apiVersion = "2025-10"
  private static let providerTag = "embedding_provider"
  private static let modelTag = "embedding_model"
  /// The tag for the contents of the records, and thus for the format of their ids.
  private static let recordsTag = "records"
  private static let records = "messages-by-chat"
  /// The maximum size of an upsert in bytes; the service accepts 2 MB.
  private static let upsertBytesMax = 1_900_000
  /// The maximum number of records in an upsert, a limit of the service.
  private static let upsertMax = 1000
  /// The maximum number of ids in a fetch, whose URL contains them.
  private static let fetchMax = 100
  /// The maximum size of the ids in a fetch, because servers limit the length of a URL.
  private static let fetchBytesMax = 6000
  /// The maximum number of ids in a deletion, a limit of the service.
  private static let deleteMax = 1000
  /// The maximum number of ids in a check for existence.
  ///
  /// The service accepts ten times as many, but the ids alone take kilobytes.
  private static let presenceMax = 1000

  /// Creates a client of an index, without accessing it yet.
  public init(
    settings: VectorSettings,
    model: EmbeddingModel,
    http: any HTTPTransport,
    retries: ServiceRetries = ServiceRetries()
  ) {
    self.settings = settings
    self.model = model
    self.retries = retries
    reading = ServiceCircuit(now: retries.now)
    writing = ServiceCircuit(now: retries.now)
    call = ServiceCall(
      service: "the vector index",
      keySetting: "PINECONE_API_KEY",
      http: http,
      now: retries.now
    )
  }

  /// Throws the error of a write while its circuit is open, before work that costs money.
  func checkWriting() throws {
    try writing.check()
  }

  // MARK: Control plane

  /// Creates the index if it is missing, and checks that it is for this model and id format.
  ///
  /// Throws `misconfigured`, with what to do, if it is not, and `ServiceError` of another kind if
  /// the service fails.
  public func prepare() async throws {
    _ = try await address()
  }

  private func address() async throws -> String {
    if let address = dataPlane.withLock({ $0 }) { return address }
    let address = dataAddress(try await describeOrCreate().host)
    dataPlane.withLock { $0 = address }
    return address
  }

  private func describeOrCreate() async throws -> IndexDescription {
    do {
      return try await describe()
    } catch let error as ServiceError where error.kind == .notFound {
      do {
        return try await create()
      } catch let error as ServiceError where error.kind == .alreadyExists {
        // Another caller created the index first.
        return try await describe()
      }
    }
  }

  private func describe() async throws -> IndexDescription {
    try await retries.run(through: reading) {
      try checked(
        try await call.send(
          request("GET", settings.host, ["indexes", settings.index]),
          as: IndexDescription.self
        )
      )
    }
  }

  private func create() async throws -> IndexDescription {
    let body = CreateIndex(
      name: settings.index,
      dimension: model.dimension,
      metric: "cosine",
      spec: .init(serverless: .init(cloud: settings.cloud, region: settings.region)),
      tags: [
        Self.providerTag: model.provider, Self.modelTag: model.name,
        Self.recordsTag: Self.records,
      ]
    )
    return try await retries.run(through: reading) {
      try checked(
        try await call.send(
          try request("POST", settings.host, ["indexes"], body: body),
          as: IndexDescription.self
        )
      )
    }
  }

  /// Returns the description if the index is valid for this model; otherwise throws.
  private func checked(_ description: IndexDescription) throws -> IndexDescription {
    let tags = description.tags ?? [:]
    let found = "\(tags[Self.providerTag] ?? "unknown")/\(tags[Self.modelTag] ?? "unknown")"
    let wanted = "\(model.provider)/\(model.name)"
    guard found == wanted, description.dimension == model.dimension else {
      throw ServiceError(
        .misconfigured,
        """
        index \(settings.index) holds vectors of \(found) with \(description.dimension ?? 0) \
        dimensions, but \(wanted) with \(model.dimension) is configured. Go back to that model, or \
        re-index: \(reindexing)
        """
      )
    }
    guard tags[Self.recordsTag] == Self.records else {
      throw ServiceError(
        .misconfigured,
        """
        index \(settings.index) has ids of an earlier version, by which chats could reach each \
        other's vectors. Re-index: \(reindexing)
        """
      )
    }
    return description
  }

  private var reindexing: String {
    """
    delete the index with `curl -X DELETE \(settings.host)/indexes/\(settings.index)`, deploy \
    again, and run `hearth call backfillEmbeddings --admin --data \
    '{"dryRun": false, "confirm": "backfill"}'`
    """
  }

  /// Returns an address with a scheme, which the given host may lack.
  ///
  /// A local control plane has a local data plane.
  private func dataAddress(_ host: String) -> String {
    if host.contains("://") { return host }
    return (settings.host.hasPrefix("http://") ? "http://" : "https://") + host
  }

  // MARK: Data plane

  /// Writes records, replacing those with the same ids.
  ///
  /// Each request writes as many records as it can hold. After a failure the earlier requests
  /// remain effective.
  public func upsert(_ records: [VectorRecord]) async throws {
    let encoder = JSONEncoder()
    var part: [Data] = []
    var bytes = 0
    for record in records {
      let json = try encoder.encode(record)
      if part.count == Self.upsertMax || bytes + json.count > Self.upsertBytesMax, !part.isEmpty {
        try await upsert(part)
        part = []
        bytes = 0
      }
      part.append(json)
      bytes += json.count + 1
    }
    if !part.isEmpty { try await upsert(part) }
  }

  private func upsert(_ records: [Data]) async throws {
    let body = Array(#"{"vectors":["#.utf8) + records.joined(separator: [UInt8(ascii: ",")])
    let _: Ignored = try await send(through: writing) { address in
      var request = self.request("POST", address, ["vectors", "upsert"])
      request.body = body + Array("]}".utf8)
      return request
    }
  }

  /// Returns the records closest to a vector, best first.
  public func query(
    _ vector: [Float],
    topK: Int,
    filter: VectorFilter? = nil
  ) async throws -> [VectorMatch] {
    let body = Query(vector: vector, topK: topK, filter: filter)
    let reply: QueryReply = try await post(["query"], body, through: reading)
    return reply.matches
  }

  /// Returns records by their ids, without those that do not exist.
  public func fetch(_ ids: [String]) async throws -> [String: VectorRecord] {
    var found: [String: VectorRecord] = [:]
    for part in Self.fetches(ids) {
      let reply: FetchReply = try await send(through: reading) { address in
        self.request("GET", address, ["vectors", "fetch"], query: part.map { ("ids", $0) })
      }
      found.merge(reply.vectors) { $1 }
    }
    return found
  }

  /// Splits ids so that each part fits into the URL of a fetch.
  static func fetches(_ ids: [String]) -> [[String]] {
    var parts: [[String]] = []
    var bytes = 0
    for id in ids {
      let size = OutboundURL.encode(id).utf8.count + "&ids=".utf8.count
      if let last = parts.last, last.count < fetchMax, bytes + size <= fetchBytesMax {
        parts[parts.count - 1].append(id)
        bytes += size
      } else {
        parts.append([id])
        bytes = size
      }
    }
    return parts
  }

  /// Calls `body` with the ids that begin with a prefix, one page at a time.
  ///
  /// `body` must not add or delete records with that prefix.
  public func list(
    prefix: String,
    _ body: (_ ids: [String]) async throws -> Void
  ) async throws {
    var token: String?
    repeat {
      var query = [(name: "prefix", value: prefix)]
      if let token { query.append(("paginationToken", token)) }
      let reply: ListReply = try await send(through: reading) { [query] address in
        self.request("GET", address, ["vectors", "list"], query: query)
      }
      let ids = reply.vectors?.map(\.id) ?? []
      if !ids.isEmpty { try await body(ids) }
      token = reply.pagination?.next
    } while token != nil
  }

  /// A record that may exist, and the strings that its metadata then contains.
  struct Expected: Sendable {
    var id: String
    var metadata: [String: String]
  }

  /// Returns the ids of the records that exist.
  ///
  /// A fetch returns all numbers of a record. A query by metadata does not, but may miss records:
  /// the search is not exact everywhere, and other records may have the same metadata. Therefore
  /// only the ids that the query did not find are fetched, and few of them have numbers to return.
  func existing(_ expected: [Expected]) async throws -> Set<String> {
    var found: Set<String> = []
    // The direction does not matter, because as many results are requested as records can match.
    var direction = [Float](repeating: 0, count: model.dimension)
    direction[0] = 1
    for start in stride(from: 0, to: expected.count, by: Self.presenceMax) {
      let part = expected[start..<min(start + Self.presenceMax, expected.count)]
      var values: [String: Set<String>] = [:]
      for (field, value) in part.flatMap(\.metadata) { values[field, default: []].insert(value) }
      let body = Query(
        vector: direction,
        topK: part.count,
        filter: .and(
          values.sorted { $0.key < $1.key }
            .map { .isIn($0.key, $0.value.sorted().map { .string($0) }) }
        ),
        includeMetadata: false
      )
      let reply: QueryReply = try await post(["query"], body, through: reading)
      found.formUnion(Set(part.map(\.id)).intersection(reply.matches.map(\.id)))
    }
    let rest = expected.map(\.id).filter { !found.contains($0) }
    for part in Self.fetches(rest) {
      let reply: PresenceReply = try await send(through: reading) { address in
        self.request("GET", address, ["vectors", "fetch"], query: part.map { ("ids", $0) })
      }
      found.formUnion(reply.vectors.keys)
    }
    return found
  }

  /// Deletes records; a missing record is no error.
  public func delete(_ ids: [String]) async throws {
    for start in stride(from: 0, to: ids.count, by: Self.deleteMax) {
      let body = Delete(ids: Array(ids[start..<min(start + Self.deleteMax, ids.count)]))
      let _: Ignored = try await post(["vectors", "delete"], body, through: writing)
    }
  }

  private func post<Reply: Decodable>(
    _ path: [String],
    _ body: some Encodable & Sendable,
    through circuit: ServiceCircuit
  ) async throws -> Reply {
    try await send(through: circuit) { address in
      try self.request("POST", address, path, body: body)
    }
  }

  private func send<Reply: Decodable>(
    through circuit: ServiceCircuit,
    _ makeRequest: (_ address: String) throws -> OutboundRequest
  ) async throws -> Reply {
    do {
      let request = try makeRequest(try await address())
      return try await retries.run(through: circuit) {
        try await call.send(request, as: Reply.self)
      }
    } catch let error as ServiceError where error.kind == .notFound {
      // The index has been deleted since the last check. It is checked again, and created if
      // missing.
      dataPlane.withLock { $0 = nil }
      let request = try makeRequest(try await address())
      return try await retries.run(through: circuit) {
        try await call.send(request, as: Reply.self)
      }
    }
  }

  // MARK: Requests

  private func request(
    _ method: String,
    _ base: String,
    _ path: [String],
    query: [(name: String, value: String)] = []
  ) -> OutboundRequest {
    OutboundRequest(
      method: method,
      url: OutboundURL.make(base: base, path: path, query: query),
      headers: [
        "Api-Key": settings.key ?? "emulator", "X-Pinecone-Api-Version": Self.apiVersion,
        "Content-Type": "application/json",
      ],
      timeout: .seconds(20)
    )
  }

  private func request(
    _ method: String,
    _ base: String,
    _ path: [String],
    body: some Encodable
  ) throws -> OutboundRequest {
    var request = request(method, base, path)
    request.body = Array(try JSONEncoder().encode(body))
    return request
  }

  private struct IndexDescription: Decodable {
    var host: String
    var dimension: Int?
    var tags: [String: String]?
  }

  private struct CreateIndex: Encodable {
    struct Spec: Encodable {
      struct Serverless: Encodable {
        var cloud: String
        var region: String
      }
      var serverless: Serverless
    }
    var name: String
    var dimension: Int
    var metric: String
    var spec: Spec
    var tags: [String: String]
  }

  private struct Query: Encodable {
    var vector: [Float]
    var topK: Int
    var filter: VectorFilter?
    var includeMetadata = true
  }

  private struct QueryReply: Decodable {
    var matches: [VectorMatch]
  }

  private struct FetchReply: Decodable {
    var vectors: [String: VectorRecord]
  }

  private struct ListReply: Decodable {
    struct Item: Decodable {
      var id: String
    }
    struct Pagination: Decodable {
      var next: String?
    }
    var vectors: [Item]?
    var pagination: Pagination?
  }

  private struct PresenceReply: Decodable {
    var vectors: [String: Ignored]
  }

  private struct Delete: Encodable {
    var ids: [String]
  }

  private struct Ignored: Decodable {}
}
