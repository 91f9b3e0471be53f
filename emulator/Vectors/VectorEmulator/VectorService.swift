package import HTTPMessages
package import HTTPSupport
import HTTPTypes
import Identifiers
import JSONText
package import Logging
import NIOCore
import StatusCodes
package import VectorIndex

/// Pinecone's REST API for a `VectorCatalog`, with both planes on one port.
///
/// The control plane is at `/indexes`. The data plane of an index is below `/ix/{name}`, which is
/// the `host` in the control plane's responses. Any API key is accepted. A query sees every write
/// that was acknowledged before it.
package struct VectorService: Sendable {
  let catalog: VectorCatalog
  private let logger: Logger

  /// Creates an endpoint for a catalog.
  package init(catalog: VectorCatalog, logger: Logger) {
    self.catalog = catalog
    self.logger = logger
  }

  /// Returns the response to a request; errors have Pinecone's error bodies.
  package func respond(to request: Request) async -> Response {
    let path = request.pathSegments ?? []
    let call = VectorCall(request: request, version: request.headers[Self.versionHeader])
    let isDataPlane = path.first == Self.dataPlanePrefix && path.count >= 3
    let form: VectorErrorForm =
      !isDataPlane
      ? .control : path.contains("documents") || path[2] == "records" ? .documents : .vectors
    var response: Response
    do {
      response =
        isDataPlane
        ? try await dataPlane(call, index: path[1], Array(path.dropFirst(2)))
        : try await controlPlane(call, path)
    } catch {
      response = failure(error, form)
    }
    response.headers[Self.requestIDHeader] = RandomID.make(length: 16)
    if isDataPlane {
      for header in Self.sequenceHeaders { response.headers[header] = "\(catalog.sequence)" }
    }
    return response
  }

  private func dataPlane(
    _ call: VectorCall,
    index: String,
    _ path: [String]
  ) async throws -> Response {
    let index = try catalog.describe(index)
    switch path.first {
    case "namespaces" where path.count == 4 && path[2] == "documents":
      return try await documents(call, index, namespace: path[1], path[3])
    case "namespaces" where path.count <= 2:
      return try await namespaces(call, index, path.count == 2 ? path[1] : nil)
    case "records" where path.count == 4 && path[1] == "namespaces":
      return try await records(call, index, namespace: path[2], path[3])
    case "bulk":
      throw StatusError.notEmulated("Import from object storage is", "upsert the records.")
    default: return try await vectors(call, index, path.joined(separator: "/"))
    }
  }

  private func failure(_ error: any Error, _ form: VectorErrorForm) -> Response {
    if let response = form.response(error) { return response }
    logger.error("A vector request failed", metadata: ["error": "\(error)"])
    return form.response(StatusError(.internal, "Internal server error"))
      ?? Response(status: .internalServerError)
  }

  static let dataPlanePrefix = "ix"
  private static let versionHeader = named("x-pinecone-api-version")
  private static let requestIDHeader = named("x-pinecone-request-id")
  /// The headers for a write's commit and a read's snapshot.
  ///
  /// Both have the same value, because every read is fresh.
  private static let sequenceHeaders = [
    named("x-pinecone-lsn-committed"), named("x-pinecone-lsn-reconciled"),
  ]

  private static func named(_ name: String) -> HTTPField.Name {
    guard let name = HTTPField.Name(name) else { preconditionFailure("\(name) is a field's name") }
    return name
  }
}

/// A request and the API version of its client.
struct VectorCall: Sendable {
  let request: Request
  private let version: String

  /// Creates a call; without a version, the client gets the last API version before schemas.
  init(request: Request, version: String?) {
    self.request = request
    self.version = version ?? "2025-10"
  }

  /// True if indexes are described by `schema` and `deployment`.
  var hasSchemas: Bool { version >= "2026-07" }
  /// True if the description of a serverless index includes its read capacity.
  var hasReadCapacity: Bool { version >= "2025-10" }

  /// Reads the members of the request body; there are none if the body is empty.
  func fields() async throws -> RequestFields {
    let body = try await request.wholeBody(upTo: Self.bodyBytesMax)
    guard body.readableBytes > 0 else { return try RequestFields([:]) }
    let json: JSONValue
    do throws(JSONSyntaxError) {
      json = try JSONValue.parse(body.readableBytesView, valuesMax: Self.valuesMax)
    } catch {
      throw StatusError.invalidArgument(
        "Failed to parse the request body as JSON: syntax error at byte \(error.offset): "
          + error.reason
      )
    }
    return try RequestFields(json)
  }

  var unknown: StatusError {
    StatusError(
      .notFound,
      "There is no \(request.method) \(request.path): indexes are at /indexes, the data plane of "
        + "one below its host, /\(VectorService.dataPlanePrefix)/{name}."
    )
  }

  /// The maximum size of a body.
  ///
  /// JSON takes several times the bytes that count toward the limit of an upsert.
  private static let bodyBytesMax = 64 << 20
  /// The maximum number of values in a body, four times the numbers in the largest upsert.
  ///
  /// A thousand vectors of 1536 numbers fit, and are refused for their size as in production.
  /// Without a bound, a body of millions of empty objects keeps a shared thread for seconds.
  private static let valuesMax = 1 << 21
}

/// The helpers that the calls of the data plane share.
extension VectorService {
  /// Validates a namespace's name; `__default__` and the empty name mean the default namespace.
  static func name(_ namespace: String?) throws -> String {
    guard let namespace, namespace != defaultNamespace else { return "" }
    guard namespace.utf8.count <= 512, namespace.utf8.allSatisfy({ $0 != 0 && $0 < 128 }) else {
      throw StatusError.invalidArgument(
        "Invalid namespace: a name is at most 512 ASCII characters without NUL."
      )
    }
    return namespace
  }

  static let defaultNamespace = "__default__"

  /// Returns the ids of a request after checking them.
  static func ids(_ ids: [String]) throws -> [String] {
    guard (1...idsMax).contains(ids.count) else {
      throw StatusError.invalidArgument(
        "Number of ids (\(ids.count)) is not between 1 and \(idsMax), the limit of a request."
      )
    }
    for id in ids { try VectorCatalog.check(id: id) }
    return ids
  }

  static func limit(_ limit: Int?, upTo largest: Int) throws -> Int {
    let limit = limit ?? 100
    guard (1...largest).contains(limit) else {
      throw StatusError.invalidArgument("limit is \(limit); give 1 to \(largest).")
    }
    return limit
  }

  static func topK(_ topK: Int) throws -> Int {
    guard (1...topKMax).contains(topK) else {
      throw StatusError.invalidArgument("top_k is \(topK); give 1 to \(topKMax).")
    }
    return topK
  }

  static func prefix(_ prefix: String?) throws -> String {
    let prefix = prefix ?? ""
    guard prefix.utf8.count <= 512, prefix.utf8.allSatisfy({ $0 != 0 && $0 < 128 }) else {
      throw StatusError.invalidArgument(
        "Invalid prefix: it is at most 512 ASCII characters without NUL."
      )
    }
    return prefix
  }

  /// Parses the filter that selects the records of a request; it must not be empty.
  static func selection(_ json: JSONValue, _ index: VectorIndexDescription, orSay message: String)
    throws
    -> MetadataFilter
  {
    if case .object(let members) = json, members.isEmpty {
      throw StatusError.invalidArgument(message)
    }
    return try filter(json, index)
  }

  static func filter(_ json: JSONValue, _ index: VectorIndexDescription) throws -> MetadataFilter {
    var parser = FilterParser(vectorField: index.holdsDocuments ? index.field : nil)
    return try parser.parse(json)
  }

  /// Throws if there are too many records or if they are too large in total.
  static func checkSize(_ records: [VectorRecord]) throws {
    guard (1...upsertMax).contains(records.count) else {
      throw StatusError.invalidArgument(
        "A request upserts 1 to \(upsertMax) records; this one has \(records.count)."
      )
    }
    let bytes = records.reduce(0) { total, record in
      total + record.id.utf8.count + record.values.count * 4 + record.metadata.contentBytes
    }
    guard bytes <= upsertBytesMax else {
      throw RequestTooLargeError(bytes: bytes, bytesMax: upsertBytesMax)
    }
  }

  static let readUnits: JSONValue = ["readUnits": 1]

  // The limits of Pinecone's serverless indexes. Sizes count the vectors, not their JSON.
  private static let upsertMax = 1000
  private static let upsertBytesMax = 2 << 20
  private static let topKMax = 10_000
  private static let idsMax = 1000
}

/// The pagination token, an encoded id that clients return unchanged.
enum PageToken {
  /// Returns the token for the page after an id.
  static func make(after id: String) -> String {
    id.utf8.map { byte in
      let digits = String(byte, radix: 16)
      return digits.count == 1 ? "0" + digits : digits
    }.joined()
  }

  /// Decodes the id in a token.
  static func id(_ token: String?) throws -> String? {
    guard let token else { return nil }
    let digits = token.utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
    guard digits.count == token.utf8.count, digits.count % 2 == 0, !digits.isEmpty else {
      throw StatusError.invalidArgument("Invalid pagination token; give the one of the last page.")
    }
    let bytes = stride(from: 0, to: digits.count, by: 2).map {
      UInt8(digits[$0] << 4 | digits[$0 + 1])
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Returns `{"next":"…"}`; nil if there is no further page.
  static func json(after id: String?) -> JSONValue? {
    id.map { ["next": .string(make(after: $0))] }
  }
}
