import FirestoreClient
import GoogleAccess
import InvocationContext
import JSONText
import OutboundHTTP

/// The requests of a client, with their address, rights and retries.
struct DatabaseCalls: Sendable {
  var settings: DatabaseSettings
  var http: any HTTPTransport
  /// The source of the administrator's access tokens; nil for an emulator.
  var tokens: (any AccessTokenSource)?
  var identity: CallIdentity
  var retries = CallRetries()

  /// One request, without its rights.
  struct Call: Sendable {
    var method = "GET"
    var keys: [String]
    var query: [(name: String, value: String)] = []
    var headers: OutboundHeaders = [:]
    var body: [UInt8] = []
    /// True if the server may do the work twice.
    var isIdempotent = true
  }

  /// Sends a request; a response with status 412 is a result too.
  ///
  /// Throws `DatabaseError`, and the errors of the source of tokens.
  func send(_ call: Call) async throws -> OutboundResponse {
    try await retries.run(isIdempotent: call.isIdempotent) {
      try await authorize { credential in
        var request = try await request(call, credential)
        request.timeout = settings.timeout
        request.responseBytesMax = settings.responseBytesMax
        // The writes of a function name the event that caused its run.
        request.headers[EventCause.headerName] = EventCause.current
        let response = try await Self.mappingErrors { [request] in
          try await http.send(request)
        }
        guard response.isSuccess || response.status == 412 else {
          throw Self.error(response.status, response.body)
        }
        return response
      }
    }
  }

  /// Sends a request and returns the response as it arrives.
  func stream(_ call: Call, as credential: DatabaseCredential) async throws -> OutboundBody {
    var request = try await request(call, credential)
    request.timeout = nil
    request.responseBytesMax = .max
    // Production sends listeners to the server that has the data.
    request.redirectsMax = Self.redirectsMax
    let response = try await Self.mappingErrors { [request] in try await http.stream(request) }
    guard response.isSuccess else {
      let body = try await Self.mappingErrors {
        try await response.body.collect(upTo: Self.errorBytesMax)
      }
      throw Self.error(response.status, body)
    }
    return response.body
  }

  /// Makes a call with the current credential, and once more with another if the server refuses it.
  func authorize<Output>(
    _ call: @Sendable (DatabaseCredential) async throws -> Output
  ) async throws -> Output {
    try await identity.authorize { credential in
      do {
        return try await call(credential)
      } catch let error as DatabaseError where error.code == .unauthenticated {
        guard credential == .admin, let tokens else { throw error }
        await tokens.reject(try await adminToken())
        return try await call(credential)
      }
    }
  }

  private func request(
    _ call: Call,
    _ credential: DatabaseCredential
  ) async throws -> OutboundRequest {
    var query = call.query
    if let namespace = settings.namespace { query.append(("ns", namespace)) }
    var headers = call.headers
    switch credential {
    case .admin: headers["Authorization"] = "Bearer \(try await adminToken())"
    case .idToken(let token): query.append(("auth", token))
    case .anonymous: break
    }
    if !call.body.isEmpty { headers["Content-Type"] = "application/json" }
    return OutboundRequest(
      method: call.method,
      url: OutboundURL.make(
        base: OutboundURL.make(base: settings.url, path: call.keys)
          + (call.keys.isEmpty ? "/.json" : ".json"),
        query: query
      ),
      headers: headers,
      body: call.body
    )
  }

  func adminToken() async throws -> String {
    guard let tokens else { return "owner" }
    do {
      return try await tokens.token()
    } catch let error as any StatusConvertible {
      throw DatabaseError(error.statusCode, error.statusMessage)
    }
  }

  // MARK: Failures

  static func mappingErrors<Output>(
    _ send: @Sendable () async throws -> Output
  ) async throws -> Output {
    do {
      return try await send()
    } catch let error as OutboundHTTPError {
      let wasSent = error.kind != .cannotConnect && error.kind != .invalidRequest
      throw DatabaseError(error.statusCode, error.statusMessage, mayHaveActed: wasSent)
    }
  }

  static func error(_ status: Int, _ body: [UInt8]) -> DatabaseError {
    let text = JSONObjectText(parsing: body)?.text("error")
    let isDenied = text == "Permission denied"
    let code: StatusCode =
      switch status {
      case 400:
        text?.hasPrefix("Index not defined") == true ? .failedPrecondition : .invalidArgument
      case 401: isDenied ? .permissionDenied : .unauthenticated
      case 403: .permissionDenied
      case 404: .notFound
      case 408, 504: .deadlineExceeded
      case 413: .outOfRange
      case 429: .resourceExhausted
      case 500: .internal
      case 502, 503: .unavailable
      default: .unknown
      }
    let isRefused = (400..<500).contains(status) && status != 408
    return DatabaseError(
      code,
      text ?? "the server returned \(status)",
      mayHaveActed: !isRefused
    )
  }

  private static let redirectsMax = 3
  private static let errorBytesMax = 64 << 10
}
