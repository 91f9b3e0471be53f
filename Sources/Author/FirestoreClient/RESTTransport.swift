import DocumentModel
import FirestoreProtos
import GoogleAccess
import InvocationContext
import JSONText
import OutboundHTTP
import StatusCodes
import SwiftProtobuf

/// A transport over Firestore's REST API, with WebChannel for listening.
///
/// REST does not support listening.
struct RESTTransport: FirestoreTransport {
  let endpoint: String
  let timeout: Duration
  let responseBytesMax: Int
  let http: any HTTPTransport
  /// The source of the administrator's access tokens; nil for an emulator.
  let tokens: (any AccessTokenSource)?
  private let listener: WebChannelListener

  /// Creates a transport to the base URL without `/v1`.
  ///
  /// Responses and WebChannel messages may have at most `responseBytesMax` bytes.
  init(
    endpoint: String,
    timeout: Duration,
    responseBytesMax: Int,
    http: any HTTPTransport,
    tokens: (any AccessTokenSource)?
  ) {
    self.endpoint = endpoint
    self.timeout = timeout
    self.responseBytesMax = responseBytesMax
    self.http = http
    self.tokens = tokens
    listener = WebChannelListener(
      endpoint: endpoint,
      http: http,
      chunkBytesMax: responseBytesMax
    )
  }

  func batchGetDocuments(
    _ request: Google_Firestore_V1_BatchGetDocumentsRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_BatchGetDocumentsResponse] {
    var body = request
    body.database = ""
    return try await callStreaming("\(request.database)/documents", ":batchGet", body, credential)
  }

  func commit(
    _ request: Google_Firestore_V1_CommitRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_CommitResponse {
    var body = request
    body.database = ""
    return try await call("\(request.database)/documents", ":commit", body, credential)
  }

  func beginTransaction(
    _ request: Google_Firestore_V1_BeginTransactionRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_BeginTransactionResponse {
    var body = request
    body.database = ""
    return try await call("\(request.database)/documents", ":beginTransaction", body, credential)
  }

  func rollback(
    _ request: Google_Firestore_V1_RollbackRequest,
    as credential: FirestoreCredential
  ) async throws {
    var body = request
    body.database = ""
    let _: Google_Protobuf_Empty = try await call(
      "\(request.database)/documents",
      ":rollback",
      body,
      credential
    )
  }

  func runQuery(
    _ request: Google_Firestore_V1_RunQueryRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_RunQueryResponse] {
    var body = request
    body.parent = ""
    return try await callStreaming(request.parent, ":runQuery", body, credential)
  }

  func runAggregationQuery(
    _ request: Google_Firestore_V1_RunAggregationQueryRequest,
    as credential: FirestoreCredential
  ) async throws -> [Google_Firestore_V1_RunAggregationQueryResponse] {
    var body = request
    body.parent = ""
    return try await callStreaming(request.parent, ":runAggregationQuery", body, credential)
  }

  func listDocuments(
    _ request: Google_Firestore_V1_ListDocumentsRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_ListDocumentsResponse {
    var query = request.mask.fieldPaths.map { (name: "mask.fieldPaths", value: $0) }
    if request.pageSize > 0 { query.append(("pageSize", "\(request.pageSize)")) }
    if !request.pageToken.isEmpty { query.append(("pageToken", request.pageToken)) }
    if !request.orderBy.isEmpty { query.append(("orderBy", request.orderBy)) }
    if request.showMissing { query.append(("showMissing", "true")) }
    let url = OutboundURL.make(
      base: address(request.parent),
      path: [request.collectionID],
      query: query
    )
    return try decode(try await send(OutboundRequest(url: url), credential))
  }

  func listen(
    _ request: Google_Firestore_V1_ListenRequest,
    as credential: FirestoreCredential,
    _ body: @escaping @Sendable (Google_Firestore_V1_ListenResponse) async throws -> Void
  ) async throws {
    let token: String? =
      switch credential {
      case .admin: try await adminToken()
      case .idToken(let token): token
      case .anonymous: nil
      }
    do {
      try await listener.listen(request, token: token, body)
    } catch let error as FirestoreError where error.code == .unauthenticated {
      // The next attempt gets a new token.
      if credential == .admin, let tokens, let token { await tokens.reject(token) }
      throw error
    }
  }

  func listCollectionIDs(
    _ request: Google_Firestore_V1_ListCollectionIdsRequest,
    as credential: FirestoreCredential
  ) async throws -> Google_Firestore_V1_ListCollectionIdsResponse {
    var body = request
    body.parent = ""
    return try await call(request.parent, ":listCollectionIds", body, credential)
  }

  // MARK: Calls

  private func call<Output: Message>(
    _ resource: String,
    _ verb: String,
    _ body: some Message,
    _ credential: FirestoreCredential
  ) async throws -> Output {
    try decode(try await post(resource, verb, body, credential))
  }

  private func callStreaming<Output: Message & Equatable>(
    _ resource: String,
    _ verb: String,
    _ body: some Message,
    _ credential: FirestoreCredential
  ) async throws -> [Output] {
    let bytes = try await post(resource, verb, body, credential)
    do {
      let answers = try Output.array(fromJSONUTF8Bytes: bytes, options: Self.lenient)
      // A failure after the first response arrives as an element that contains only the error.
      if let last = answers.last, last == Output(), let error = Self.error(in: bytes) {
        throw FirestoreError(error)
      }
      return answers
    } catch let error as FirestoreError {
      throw error
    } catch {
      throw Self.undecodable(error)
    }
  }

  private func post(
    _ resource: String,
    _ verb: String,
    _ body: some Message,
    _ credential: FirestoreCredential
  ) async throws -> [UInt8] {
    let bytes: [UInt8]
    do {
      bytes = try body.jsonUTF8Bytes()
    } catch {
      throw FirestoreError(.invalidArgument, "the request cannot be written as JSON: \(error)")
    }
    let request = OutboundRequest(
      method: "POST",
      url: address(resource) + verb,
      headers: ["Content-Type": "application/json"],
      body: bytes
    )
    return try await send(request, credential)
  }

  private func send(
    _ request: OutboundRequest,
    _ credential: FirestoreCredential
  ) async throws -> [UInt8] {
    var request = request
    request.timeout = timeout
    request.responseBytesMax = responseBytesMax
    // The writes of a function name the event that caused its run.
    request.headers[EventCause.headerName] = EventCause.current
    var response: OutboundResponse
    switch credential {
    case .admin:
      let token = try await adminToken()
      response = try await send(request, token: token)
      if response.status == 401, let tokens {
        // The token was revoked or has expired by the server's clock. The server has not acted.
        await tokens.reject(token)
        response = try await send(request, token: try await adminToken())
      }
    case .idToken(let token): response = try await send(request, token: token)
    case .anonymous: response = try await send(request, token: nil)
    }
    guard response.isSuccess else { throw Self.error(of: response) }
    return response.body
  }

  private func send(_ request: OutboundRequest, token: String?) async throws -> OutboundResponse {
    var request = request
    if let token { request.headers["Authorization"] = "Bearer \(token)" }
    do {
      return try await http.send(request)
    } catch let error as OutboundHTTPError {
      let wasSent = error.kind != .cannotConnect && error.kind != .invalidRequest
      throw FirestoreError(error.statusCode, error.statusMessage, mayHaveActed: wasSent)
    }
  }

  private func adminToken() async throws -> String {
    guard let tokens else { return "owner" }
    do {
      return try await tokens.token()
    } catch let error as any StatusConvertible {
      throw FirestoreError(error)
    }
  }

  private func decode<Output: Message>(_ bytes: [UInt8]) throws -> Output {
    do {
      return try Output(jsonUTF8Bytes: bytes, options: Self.lenient)
    } catch {
      throw Self.undecodable(error)
    }
  }

  /// Returns the URL of a resource name with each segment encoded.
  private func address(_ resource: String) -> String {
    OutboundURL.make(
      base: endpoint,
      path: ["v1"] + resource.split(separator: "/").map(String.init)
    )
  }

  // MARK: Failures

  /// Options that accept fields unknown to these messages, which a newer server may send.
  static let lenient: JSONDecodingOptions = {
    var options = JSONDecodingOptions()
    options.ignoreUnknownFields = true
    return options
  }()

  static func undecodable(_ error: any Error) -> FirestoreError {
    FirestoreError(
      .internal,
      "the server's response is not in Firestore's form: \(error)",
      mayHaveActed: true
    )
  }

  static func error(of response: OutboundResponse) -> FirestoreError {
    if let error = error(in: response.body) {
      // These codes do not say how far the server got before it failed.
      let isUncertain = [.internal, .unknown, .deadlineExceeded, .cancelled, .dataLoss]
        .contains(error.statusCode)
      return FirestoreError(error.statusCode, error.statusMessage, mayHaveActed: isUncertain)
    }
    let code: StatusCode =
      switch response.status {
      case 400: .invalidArgument
      case 401: .unauthenticated
      case 403: .permissionDenied
      case 404: .notFound
      case 408, 504: .deadlineExceeded
      case 409: .aborted
      case 429: .resourceExhausted
      case 502, 503: .unavailable
      default: .unknown
      }
    // The response came from a proxy. The server itself may have acted.
    return FirestoreError(code, "the server returned \(response.status)", mayHaveActed: true)
  }

  struct ErrorBody: Decodable, StatusConvertible {
    struct Content: Decodable {
      var message: String?
      var status: String?
    }
    var error: Content?

    var statusCode: StatusCode { error?.status.flatMap(StatusCode.init(name:)) ?? .unknown }
    var statusMessage: String { error?.message ?? "the server gave no reason" }
  }

  /// Returns the error in a body, which is the whole body or the last element of an array.
  static func error(in body: [UInt8]) -> ErrorBody? {
    // A body in neither form is not an error body. The caller still has the status.
    let found =
      (try? ErrorBody(decodingJSON: body))
      ?? (try? [ErrorBody](decodingJSON: body))?.last
    return found?.error == nil ? nil : found
  }
}
