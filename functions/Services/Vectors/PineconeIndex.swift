public import OutboundHTTP
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// One index of a service that speaks Pinecone's REST API: the emulator or Pinecone itself.
///
/// It is for the vectors of one embedding model. The index is created on first use and tagged with
/// the model; an index of another model is refused, never filled or searched.
public final class PineconeIndex: Sendable {
  /// The model whose vectors the index holds.
  public let model: EmbeddingModel
  private let settings: VectorSettings
  private let call: ServiceCall
  private let retries: ServiceRetries
  private let circuit: ServiceCircuit
  /// The data plane's address, once the index is known to exist and to be for the right model.
  private let dataPlane = Mutex<String?>(nil)

  private static let apiVersion = "2025-10"
  private static let providerTag = "embedding_provider"
  private static let modelTag = "embedding_model"
  /// The records of one upsert: 1536 numbers are 15 to 30 KB of JSON, and a request may have 2 MB.
  private static let upsertMax = 60
  /// The ids of one fetch, which go into the address, whose length servers bound.
  private static let fetchMax = 100
  /// The ids of one deletion; the service's own limit.
  private static let deleteMax = 1000
  /// The ids of one check; the service takes ten times as many, but the ids alone are kilobytes.
  private static let presenceMax = 1000

  /// An index that has not been looked at yet.
  public init(
    settings: VectorSettings,
    model: EmbeddingModel,
    http: any HTTPTransport,
    retries: ServiceRetries = ServiceRetries()
  ) {
    self.settings = settings
    self.model = model
    self.retries = retries
    circuit = ServiceCircuit(now: retries.now)
    call = ServiceCall(
      service: "the vector index",
      keySetting: "PINECONE_API_KEY",
      http: http,
      now: retries.now
    )
  }

  /// Throws as a call would while the service's circuit is open, before work that costs money.
  func checkCircuit() throws {
    try circuit.check()
  }

  // MARK: Control plane

  /// Creates the index if it is missing, and checks that it is for this model.
  ///
  /// Throws `misconfigured` with what to do when the index is for another model.
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
        // Another caller was faster.
        return try await describe()
      }
    }
  }

  private func describe() async throws -> IndexDescription {
    try await retries.run(through: circuit) {
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
      tags: [Self.providerTag: model.provider, Self.modelTag: model.name]
    )
    return try await retries.run(through: circuit) {
      try checked(
        try await call.send(
          try request("POST", settings.host, ["indexes"], body: body),
          as: IndexDescription.self
        )
      )
    }
  }

  /// The description, if it is of an index for this model.
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
        re-index: delete the index with `curl -X DELETE \(settings.host)/indexes/\(settings.index)`\
        , deploy again, and run `hearth call backfillEmbeddings --admin --data '{"dryRun": false}'`
        """
      )
    }
    return description
  }

  /// The address with a scheme, which a host may lack.
  ///
  /// A local control plane has a local data plane.
  private func dataAddress(_ host: String) -> String {
    if host.contains("://") { return host }
    return (settings.host.hasPrefix("http://") ? "http://" : "https://") + host
  }

  // MARK: Data plane

  /// Writes records, replacing those of the same ids.
  public func upsert(_ records: [VectorRecord]) async throws {
    for start in stride(from: 0, to: records.count, by: Self.upsertMax) {
      let body = Upsert(
        vectors: Array(records[start..<min(start + Self.upsertMax, records.count)])
      )
      let _: Ignored = try await post(["vectors", "upsert"], body)
    }
  }

  /// The records closest to a vector, best first.
  public func query(
    _ vector: [Float],
    topK: Int,
    filter: VectorFilter? = nil
  ) async throws -> [VectorMatch] {
    let body = Query(vector: vector, topK: topK, filter: filter)
    let reply: QueryReply = try await post(["query"], body)
    return reply.matches
  }

  /// Records by their ids; missing records are absent.
  public func fetch(_ ids: [String]) async throws -> [String: VectorRecord] {
    var found: [String: VectorRecord] = [:]
    for start in stride(from: 0, to: ids.count, by: Self.fetchMax) {
      let part = ids[start..<min(start + Self.fetchMax, ids.count)]
      let reply: FetchReply = try await send { address in
        self.request("GET", address, ["vectors", "fetch"], query: part.map { ("ids", $0) })
      }
      found.merge(reply.vectors) { $1 }
    }
    return found
  }

  /// The ids that have a record, provided that records also keep their ids as `field`.
  ///
  /// A fetch returns all numbers of a record. A query does not, but may miss some records: its
  /// search is not exact everywhere, and a record may lack the field. So only the ids that the
  /// query did not find are fetched, few of which have numbers to return.
  public func existing(_ ids: [String], keptAs field: String) async throws -> Set<String> {
    var found: Set<String> = []
    // The direction does not matter, because as many results are requested as records can match.
    var direction = [Float](repeating: 0, count: model.dimension)
    direction[0] = 1
    for start in stride(from: 0, to: ids.count, by: Self.presenceMax) {
      let part = ids[start..<min(start + Self.presenceMax, ids.count)]
      let body = Query(
        vector: direction,
        topK: part.count,
        filter: .isIn(field, part.map { .string($0) }),
        includeMetadata: false
      )
      let reply: QueryReply = try await post(["query"], body)
      found.formUnion(Set(part).intersection(reply.matches.map(\.id)))
    }
    let rest = ids.filter { !found.contains($0) }
    for start in stride(from: 0, to: rest.count, by: Self.fetchMax) {
      let part = rest[start..<min(start + Self.fetchMax, rest.count)]
      let reply: PresenceReply = try await send { address in
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
      let _: Ignored = try await post(["vectors", "delete"], body)
    }
  }

  private func post<Reply: Decodable>(
    _ path: [String],
    _ body: some Encodable & Sendable
  ) async throws -> Reply {
    try await send { address in try self.request("POST", address, path, body: body) }
  }

  private func send<Reply: Decodable>(
    _ makeRequest: (_ address: String) throws -> OutboundRequest
  ) async throws -> Reply {
    do {
      let request = try makeRequest(try await address())
      return try await retries.run(through: circuit) {
        try await call.send(request, as: Reply.self)
      }
    } catch let error as ServiceError where error.kind == .notFound {
      // The index has been deleted since the last look: look again, and create it again.
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

  private struct Upsert: Encodable {
    var vectors: [VectorRecord]
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

  private struct PresenceReply: Decodable {
    var vectors: [String: Ignored]
  }

  private struct Delete: Encodable {
    var ids: [String]
  }

  private struct Ignored: Decodable {}
}
