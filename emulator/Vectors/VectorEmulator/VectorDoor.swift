import HTTPSupport
import HTTPTypes
package import HummingbirdCore
package import Logging
import NIOCore
import RuntimeSupport
package import VectorIndex

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Pinecone's REST API over a `VectorCatalogue`: both planes on one port.
///
/// The control plane is at `/indexes`; the data plane of an index is below `/ix/{name}`, which is
/// the `host` that the control plane names. Any API key is accepted. Consistent: what a write
/// acknowledged, the next query finds.
package struct VectorDoor: Sendable {
  private let catalogue: VectorCatalogue
  private let logger: Logger

  /// A door to a loaded catalogue.
  package init(catalogue: VectorCatalogue, logger: Logger) {
    self.catalogue = catalogue
    self.logger = logger
  }

  /// Answers one request; errors become Pinecone's error bodies.
  package func respond(to request: Request) async -> Response {
    let segments = request.pathSegments ?? []
    let isDataPlane = segments.first == Self.dataPlanePrefix
    do {
      if isDataPlane, segments.count >= 3 {
        return try await dataPlane(
          request,
          index: segments[1],
          path: segments.dropFirst(2).joined(separator: "/")
        )
      }
      if segments.first == "indexes" {
        return try await controlPlane(request, Array(segments.dropFirst()))
      }
      throw StatusError(
        .notFound,
        "Nothing is at \(request.uri.path): indexes are at /indexes, the vectors of an "
          + "index below its host, /\(Self.dataPlanePrefix)/{name}."
      )
    } catch {
      return failure(error, isDataPlane: isDataPlane)
    }
  }

  // MARK: - Control plane

  private func controlPlane(_ request: Request, _ path: [String]) async throws -> Response {
    switch (request.method, path.first) {
    case (.get, nil):
      let list = catalogue.indexes().map { VectorMessages.Index($0, host: host($0.name, request)) }
      return try .json(encoding: VectorMessages.IndexList(indexes: list))
    case (.post, nil):
      let body: VectorMessages.CreateIndex = try await decode(request)
      let description = VectorIndexDescription(
        name: body.name,
        dimension: body.dimension,
        metric: body.metric ?? .cosine,
        tags: body.tags ?? [:],
        isProtected: body.deletion_protection == .enabled
      )
      try await catalogue.create(description)
      return try .json(
        encoding: VectorMessages.Index(description, host: host(body.name, request)),
        status: .created
      )
    case (.get, let name?):
      let description = try catalogue.describe(name)
      return try .json(
        encoding: VectorMessages.Index(description, host: host(name, request))
      )
    case (.patch, let name?):
      let body: VectorMessages.ConfigureIndex = try await decode(request)
      let description = try await catalogue.configure(
        name,
        tags: body.tags,
        isProtected: body.deletion_protection.map { $0 == .enabled }
      )
      return try .json(
        encoding: VectorMessages.Index(description, host: host(name, request)),
        status: .accepted
      )
    case (.delete, let name?):
      try await catalogue.delete(name)
      return Response(status: .accepted)
    default: throw unknown(request)
    }
  }

  private func host(_ name: String, _ request: Request) -> String {
    "http://\(request.head.authority ?? "127.0.0.1")/\(Self.dataPlanePrefix)/\(name)"
  }

  // MARK: - Data plane

  private func dataPlane(
    _ request: Request,
    index: String,
    path: String
  ) async throws -> Response {
    switch (request.method, path) {
    case (.post, "vectors/upsert"): return try await upsert(request, index)
    case (.post, "query"): return try await query(request, index)
    case (.get, "vectors/fetch"): return try fetch(request, index)
    case (.post, "vectors/update"): return try await update(request, index)
    case (.post, "vectors/delete"): return try await delete(request, index)
    case (.get, "vectors/list"): return try list(request, index)
    case (.post, "describe_index_stats"), (.get, "describe_index_stats"): return try stats(index)
    default: throw unknown(request)
    }
  }

  private func upsert(_ request: Request, _ index: String) async throws -> Response {
    let body: VectorMessages.Upsert = try await decode(request)
    guard (1...Self.upsertMax).contains(body.vectors.count) else {
      throw StatusError.invalidArgument(
        "Upsert 1 to \(Self.upsertMax) vectors in a request; this one has \(body.vectors.count)."
      )
    }
    let records = try body.vectors.map { vector in
      guard let values = vector.values else {
        throw StatusError.invalidArgument("Vector \(vector.id) has no values.")
      }
      try Self.check(vector.metadata ?? [:], of: vector.id)
      return VectorRecord(id: vector.id, values: values, metadata: vector.metadata ?? [:])
    }
    try await catalogue.upsert(records, index: index, namespace: Self.name(body.namespace))
    return try .json(encoding: VectorMessages.UpsertReply(upsertedCount: records.count))
  }

  private func query(_ request: Request, _ index: String) async throws -> Response {
    let body: VectorMessages.Query = try await decode(request)
    let namespace = Self.name(body.namespace)
    guard (1...Self.topKMax).contains(body.topK) else {
      throw StatusError.invalidArgument("topK is \(body.topK); give 1 to \(Self.topKMax).")
    }
    let values: [Float]
    switch (body.vector, body.id) {
    case (let vector?, nil): values = vector
    case (nil, let id?):
      values = try catalogue.fetch([id], index: index, namespace: namespace).first?.values ?? []
    default: throw StatusError.invalidArgument("Give exactly one of \"vector\" and \"id\".")
    }
    let matches =
      values.isEmpty && body.id != nil
      ? []
      : try catalogue.query(
        values,
        filter: body.filter?.filter,
        limit: body.topK,
        index: index,
        namespace: namespace
      )
    return try .json(
      encoding: VectorMessages.QueryReply(
        matches: matches.map { match in
          .init(
            id: match.record.id,
            score: match.score,
            values: body.includeValues == true ? match.record.values : nil,
            metadata: body.includeMetadata == true ? match.record.metadata : nil
          )
        },
        namespace: body.namespace ?? ""
      )
    )
  }

  private func fetch(_ request: Request, _ index: String) throws -> Response {
    let namespace = request.query["namespace"]
    let ids = request.query.all("ids")
    guard (1...Self.idsMax).contains(ids.count) else {
      throw StatusError.invalidArgument("Fetch 1 to \(Self.idsMax) ids in a request.")
    }
    let records = try catalogue.fetch(ids, index: index, namespace: Self.name(namespace))
    let vectors = records.map { record in
      (
        record.id,
        VectorMessages.Vector(
          id: record.id,
          values: record.values,
          metadata: record.metadata.isEmpty ? nil : record.metadata
        )
      )
    }
    return try .json(
      encoding: VectorMessages.FetchReply(
        vectors: Dictionary(vectors, uniquingKeysWith: { first, _ in first }),
        namespace: namespace ?? ""
      )
    )
  }

  private func update(_ request: Request, _ index: String) async throws -> Response {
    let body: VectorMessages.Update = try await decode(request)
    let namespace = Self.name(body.namespace)
    guard var record = try catalogue.fetch([body.id], index: index, namespace: namespace).first
    else { return try .json(encoding: VectorMessages.Empty()) }
    if let values = body.values { record.values = values }
    record.metadata.merge(body.setMetadata ?? [:]) { $1 }
    try Self.check(record.metadata, of: record.id)
    try await catalogue.upsert([record], index: index, namespace: namespace)
    return try .json(encoding: VectorMessages.Empty())
  }

  private func delete(_ request: Request, _ index: String) async throws -> Response {
    let body: VectorMessages.Delete = try await decode(request)
    let namespace = Self.name(body.namespace)
    switch (body.ids, body.deleteAll == true, body.filter) {
    case (let ids?, false, nil):
      guard ids.count <= Self.idsMax else {
        throw StatusError.invalidArgument("Delete at most \(Self.idsMax) ids in a request.")
      }
      try await catalogue.remove(ids, index: index, namespace: namespace)
    case (nil, true, nil): try await catalogue.removeAll(index: index, namespace: namespace)
    case (nil, false, let filter?):
      let ids = try catalogue.ids(
        matching: filter.filter,
        index: index,
        namespace: namespace
      )
      try await catalogue.remove(ids, index: index, namespace: namespace)
    default:
      throw StatusError.invalidArgument(
        "Give exactly one of \"ids\", \"deleteAll\": true and \"filter\"."
      )
    }
    return try .json(encoding: VectorMessages.Empty())
  }

  private func list(_ request: Request, _ index: String) throws -> Response {
    let query = request.query
    let limit = Int(query["limit"] ?? "100") ?? 0
    guard (1...100).contains(limit) else {
      throw StatusError.invalidArgument("limit is 1 to 100.")
    }
    let ids = try catalogue.list(
      prefix: query["prefix"] ?? "",
      after: query["paginationToken"],
      limit: limit + 1,
      index: index,
      namespace: Self.name(query["namespace"])
    )
    let page = ids.prefix(limit)
    return try .json(
      encoding: VectorMessages.ListReply(
        vectors: page.map { .init(id: $0) },
        pagination: ids.count > limit ? page.last.map { .init(next: $0) } : nil,
        namespace: query["namespace"] ?? ""
      )
    )
  }

  private func stats(_ index: String) throws -> Response {
    let description = try catalogue.describe(index)
    let counts = try catalogue.counts(index: index)
    return try .json(
      encoding: VectorMessages.Stats(
        namespaces: counts.mapValues { .init(vectorCount: $0) },
        dimension: description.dimension,
        totalVectorCount: counts.values.reduce(0, +),
        metric: description.metric
      )
    )
  }

  // MARK: - Requests and errors

  private func decode<Body: Decodable>(_ request: Request) async throws -> Body {
    let body = try await request.wholeBody(upTo: Self.bodyBytesMax)
    do {
      return try JSONDecoder().decode(
        Body.self,
        from: Data(body.readableBytesView)
      )
    } catch let error as StatusError {
      throw error
    } catch let DecodingError.keyNotFound(key, context) {
      let path = (context.codingPath + [key]).map(\.stringValue).joined(separator: ".")
      throw StatusError.invalidArgument("Missing \"\(path)\".")
    } catch let DecodingError.typeMismatch(type, context) {
      let path = context.codingPath.map(\.stringValue).joined(separator: ".")
      throw StatusError.invalidArgument("\"\(path)\" is not of type \(type).")
    } catch {
      throw StatusError.invalidArgument("The body is not JSON of the expected form: \(error)")
    }
  }

  private func failure(_ error: any Error, isDataPlane: Bool) -> Response {
    var code = StatusCode.internal
    var message = "Internal error."
    if let error = error as? any StatusConvertible {
      code = error.statusCode
      message = error.statusMessage
    } else {
      logger.error("A vector request failed", metadata: ["error": "\(error)"])
    }
    let body =
      isDataPlane
      ? #"{"code":\#(code.rawValue),"message":\#(jsonQuoted(message)),"details":[]}"#
      : #"{"status":\#(code.httpStatus),"error":{"code":"\#(code.name)","message":\#(jsonQuoted(message))}}"#
    return .json(body, status: .numbered(code.httpStatus))
  }

  private func unknown(_ request: Request) -> StatusError {
    StatusError(.notFound, "There is no \(request.method) \(request.uri.path).")
  }

  /// The namespace `__default__` and the empty one are the same.
  private static func name(_ namespace: String?) -> String {
    namespace == "__default__" ? "" : namespace ?? ""
  }

  /// Keys must not look like operators, and a record's metadata has a bound.
  private static func check(_ metadata: [String: MetadataValue], of id: String) throws {
    var bytes = 0
    for (key, value) in metadata {
      guard !key.hasPrefix("$") else {
        throw StatusError.invalidArgument("Metadata key \"\(key)\" of \(id) must not start with $.")
      }
      bytes += key.utf8.count
      switch value {
      case .string(let text): bytes += text.utf8.count
      case .number: bytes += 8
      case .boolean: bytes += 1
      case .strings(let texts): bytes += texts.reduce(0) { $0 + $1.utf8.count }
      }
    }
    guard bytes <= metadataBytesMax else {
      throw StatusError.invalidArgument(
        "Metadata size of \(id) is \(bytes) bytes, which exceeds the limit of \(metadataBytesMax)."
      )
    }
  }

  private static let dataPlanePrefix = "ix"
  // The limits of Pinecone's serverless indexes; a body may be larger than its 2 MB, because JSON
  // text of 1000 vectors of 1536 values is.
  private static let upsertMax = 1000
  private static let topKMax = 10_000
  private static let idsMax = 1000
  private static let metadataBytesMax = 40_960
  private static let bodyBytesMax = 64 << 20
}
