import DatabaseModel
package import DatabaseTree
import DocumentModel
package import HTTPMessages
package import HTTPSupport
import HTTPTypes
import Identity
import InvocationContext
import JSONText
package import Logging
import NIOCore
import StatusCodes
import Synchronization

/// The Realtime Database's port: REST, event streams, WebSockets and long polling.
///
/// Give `respond` and `upgrader` to an `HTTPService`, and call `endAll` when it stops. `run` looks
/// for silent clients and expired tokens until the graceful shutdown.
package struct RealtimeDatabaseService: Sendable {
  let database: RealtimeDatabase
  let credentials = DatabaseCredentials()
  let clients: ClientRoster
  let polls: LongPollSessions
  let triggers = FunctionTriggers()
  let keys = PushKeys()
  let clock: any Clock<Duration>
  let budget: TransferBudget?
  let logger: Logger

  /// Creates the API of all instances; `budget` counts what waits for clients.
  package init(
    database: RealtimeDatabase,
    budget: TransferBudget? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    logger: Logger
  ) {
    self.database = database
    self.budget = budget
    self.clock = clock
    self.logger = logger
    clients = ClientRoster()
    polls = LongPollSessions()
  }

  /// The suite's time in milliseconds since 1970.
  var now: Int64 { database.time.microseconds / 1000 }

  /// Returns the response to a request; errors have the words of production.
  package func respond(to request: Request) async -> Response {
    if let head = Self.cors.preflight(request.head) {
      return Response(head: head, body: .whole(ByteBuffer()))
    }
    var response: Response
    do {
      response = try await answer(request)
    } catch {
      response = failure(error)
    }
    Self.cors.apply(to: &response.head, for: request.head)
    return response
  }

  private func answer(_ request: Request) async throws -> Response {
    let instance = try database.instance(
      InstanceName.of(request.query, authority: request.head.authority)
    )
    switch request.path {
    case "/.ws": return Self.error("Expected a WebSocket handshake", status: .badRequest)
    case "/.lp": return await poll(request, instance)
    case "/.inspect/databases.json": return try await databases(request)
    case "/.settings/rules.json": return try await rules(request, instance)
    case "/.settings/functionTriggers.json": return try await functionTriggers(request)
    default: break
    }
    guard let location = try request.location() else {
      return Self.error(
        "append .json to your request URI to use the REST API",
        status: .notFound
      )
    }
    let call = try RESTCall(request, location)
    let grant = try grant(of: request)
    if ServerSentEvents.areWanted(by: request.head), call.method == .get {
      return try await events(call, instance, grant)
    }
    return try await EventCause.with(
      header: CauseSignature.verified(
        HTTPField.Name(EventCause.headerName).flatMap { request.headers[$0] }
      ),
      traceParent: request.headers[.traceParent]
    ) { try await respond(to: call, request, instance, as: grant.caller) }
  }

  // MARK: - Credentials

  /// Returns what the credential of a request grants; nobody has none.
  func grant(of request: Request) throws -> DatabaseCredentials.Grant {
    let parameters = request.query
    let override = parameters["auth_variable_override"]
    if let override {
      let isObject = override == "null" || JSONObjectText(parsing: override) != nil
      guard isObject else {
        throw DatabaseError.invalid("auth_variable_override must be a JSON object or null")
      }
    }
    let token =
      try parameters["access_token"] ?? parameters["auth"] ?? Self.bearerToken(of: request)
    guard let token else {
      guard override == nil else { throw DatabaseError.permissionDenied }
      return DatabaseCredentials.Grant(caller: DatabaseCaller(.unauthenticated))
    }
    let grant = try credentials.grant(token, override: override)
    guard override == nil || grant.caller.auth == .admin else {
      throw DatabaseError.permissionDenied
    }
    return grant
  }

  private static func bearerToken(of request: Request) throws -> String? {
    guard let header = request.headers[.authorization] else { return nil }
    let parts = header.split(separator: " ")
    guard parts.count == 2, parts[0].lowercased() == "bearer" else {
      throw DatabaseCredentials.InvalidTokenError()
    }
    return String(parts[1])
  }

  func checkAdmin(_ request: Request) throws {
    guard try grant(of: request).caller.isAdmin else { throw DatabaseError.permissionDenied }
  }

  // MARK: - Errors

  private func failure(_ error: any Error) -> Response {
    switch error {
    case let error as DatabaseError: return Self.error(error.message, status: error.kind.status)
    case let error as DatabaseDataError: return Self.error(error.message, status: .badRequest)
    case let error as DatabaseCredentials.InvalidTokenError:
      return Self.error(error.message, status: .unauthorized)
    case is BodyTooLargeError:
      return Self.error(
        "Data to write exceeds the maximum size that can be modified with a single request.",
        status: .badRequest
      )
    default: break
    }
    if !(error is any StatusConvertible), !(error is CancellationError) {
      logger.error("A database request failed", metadata: ["error": "\(error)"])
    }
    let error = StatusError.publicError(for: error)
    return Self.error(error.statusMessage, status: .numbered(error.statusCode.httpStatus))
  }

  /// Returns an error in the exact form of production.
  static func error(_ message: String, status: HTTPResponse.Status) -> Response {
    .json("{\n  \"error\" : \(jsonQuoted(message))\n}\n", status: status)
  }

  private static let cors = CORSPolicy(
    methods: "GET,PUT,POST,PATCH,DELETE",
    exposedHeaders: "ETag",
    allowsCredentials: true,
    preflightStatus: .ok
  )
}

extension DatabaseError.Kind {
  fileprivate var status: HTTPResponse.Status {
    switch self {
    case .permissionDenied: .unauthorized
    case .stale: .preconditionFailed
    case .missingIndex, .invalid, .tooBig: .badRequest
    case .unavailable: .serviceUnavailable
    }
  }
}

/// The source of the keys that POST creates.
final class PushKeys: Sendable {
  private let state = Mutex((PushIDGenerator(), SystemRandomNumberGenerator()))

  func next(atMilliseconds now: Int64) -> String {
    state.withLock { $0.0.next(atMilliseconds: now, using: &$0.1) }
  }
}
