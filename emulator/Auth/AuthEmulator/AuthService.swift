package import AuthAccounts
package import HTTPMessages
package import HTTPSupport
import HTTPTypes
import JSONText
package import Logging
import NIOCore
import StatusCodes

/// Firebase Authentication's REST API, as clients and administrators use it with the emulator.
///
/// Requests, responses and errors are those of Firebase's Auth emulator. ID tokens are not signed.
/// Any caller can write a token for any user, so nothing here protects real accounts.
package struct AuthService: Sendable {
  let store: AccountStore
  let codes: OneTimeCodes
  let hasher = PasswordHasher()
  /// The numbers of requests since the start, by method and outcome.
  package let figures = AuthFigures()
  let tokens: TokenIssuer
  let blockingFunctions: any BlockingFunctions
  let logger: Logger

  /// Creates the API of a store's users; `blockingFunctions` are asked before sign-up and sign-in.
  package init(
    store: AccountStore,
    blockingFunctions: any BlockingFunctions = NoBlockingFunctions(),
    logger: Logger
  ) {
    self.store = store
    self.blockingFunctions = blockingFunctions
    self.logger = logger
    codes = OneTimeCodes()
    tokens = TokenIssuer(store: store)
  }

  /// Returns the response to a request.
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
    if response.status != .notFound, let method = AuthRoute(request)?.method {
      figures.count(method, isRefused: response.status.code >= 400)
    }
    Self.cors.apply(to: &response.head, for: request.head)
    return response
  }

  /// The number of users.
  package func countUsers() async throws -> Int { try await store.read { try $0.count() } }

  private func answer(_ request: Request) async throws -> Response {
    if let response = try await control(request) { return response }
    guard let route = AuthRoute(request) else { throw Self.unknown(request) }
    let isAdmin = try Self.isAdmin(request)
    let call = try await AuthCall(request, route: route, isAdmin: isAdmin)
    guard isAdmin || Self.hasKey(request) else {
      throw AuthError(
        .permissionDenied,
        "The request is missing a valid API key.",
        reason: "forbidden"
      )
    }
    if let project = call.project, project != store.project {
      throw AuthError(
        .notFound,
        "PROJECT_NOT_FOUND : This suite serves \(store.project), not \(project.prefix(100)).",
        reason: "notFound"
      )
    }
    if let response = try await appMethod(call) { return response }
    guard let response = try await adminMethod(call) else { throw Self.unknown(request) }
    return response
  }

  /// Responds to the methods that apps use; nil for any other method.
  private func appMethod(_ call: AuthCall) async throws -> Response? {
    switch (call.request.method, call.method) {
    case (.post, "token"): try await refresh(call)
    case (.post, "signUp"): try await signUp(call)
    case (.post, "signInWithPassword"): try await signInWithPassword(call)
    case (.post, "signInWithCustomToken"): try await signInWithCustomToken(call)
    case (.post, "signInWithIdp"): try await signInWithProvider(call)
    case (.post, "signInWithEmailLink"): try await signInWithEmailLink(call)
    case (.post, "signInWithPhoneNumber"): try await signInWithPhoneNumber(call)
    case (.post, "sendVerificationCode"): try await sendVerificationCode(call)
    case (.post, "sendOobCode"): try await sendEmailCode(call)
    case (.post, "resetPassword"): try await resetPassword(call)
    case (.post, "createAuthUri"): try await createAuthURI(call)
    case (.post, "lookup"): try await lookUp(call)
    case (.post, "update"): try await update(call)
    case (.post, "delete"): try await delete(call)
    case (.get, "projects"):
      .json(#"{"projectId":"\#(Self.projectNumber)","authorizedDomains":["localhost"]}"#)
    case (.get, "recaptchaParams"): .json(Self.recaptchaParameters)
    case (_, let method)
    where method.hasPrefix("accounts/mfa") || method.hasPrefix("mfa")
      || method.hasPrefix("accounts/passkey"):
      throw AuthError.notEmulated("Second factors and passkeys are")
    default: nil
    }
  }

  /// Responds to the methods that only an administrator may use; nil for any other method.
  private func adminMethod(_ call: AuthCall) async throws -> Response? {
    switch call.method {
    case "tenants", "oauthIdpConfigs", "inboundSamlConfigs", "defaultSupportedIdpConfigs":
      throw AuthError.notEmulated("Tenants and configured identity providers are")
    default: break
    }
    let methods: [String: (AuthCall) async throws -> Response] = [
      "POST batchCreate": batchCreate, "POST batchDelete": batchDelete, "GET batchGet": batchGet,
      "POST query": query, "POST queryAccounts": query,
      "POST createSessionCookie": createSessionCookie,
      "GET getConfig": { _ in try await settings() }, "PATCH updateConfig": updateSettings,
    ]
    guard let method = methods["\(call.request.method) \(call.method)"] else { return nil }
    guard call.isAdmin else { throw Self.unauthenticated }
    return try await method(call)
  }

  // MARK: - Credentials

  /// Returns true for an administrator; throws for other credentials than those of one.
  static func isAdmin(_ request: Request) throws(AuthError) -> Bool {
    guard let header = request.headers[.authorization] else { return false }
    let parts = header.split(separator: " ")
    guard parts.count == 2, parts[0].lowercased() == "bearer",
      parts[1] == "owner" || parts[1].hasPrefix("ya29.")
    else { throw unauthenticated }
    return true
  }

  private static func hasKey(_ request: Request) -> Bool {
    request.query["key"].map { !$0.isEmpty } ?? (request.headers[keyHeader] != nil)
  }

  static let unauthenticated = AuthError(
    .unauthenticated,
    "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or "
      + "other valid authentication credential. See "
      + "https://developers.google.com/identity/sign-in/web/devconsole-project.",
    reason: "authError"
  )

  // MARK: - Responses

  private func failure(_ error: any Error) -> Response {
    let failure: AuthError
    if let error = error as? AuthError {
      failure = error
    } else {
      if !(error is any StatusConvertible), !(error is CancellationError) {
        logger.error("An Auth request failed", metadata: ["error": "\(error)"])
      }
      let error = StatusError.publicError(for: error)
      failure = AuthError(error.statusCode, error.statusMessage, reason: "backendError")
    }
    let status = failure.statusCode.httpStatus
    var item = JSONObjectText()
    item.set("message", failure.statusMessage)
    item.set("reason", failure.reason)
    item.set("domain", "global")
    var body = JSONObjectText()
    body.set("code", Int64(status))
    body.set("message", failure.statusMessage)
    body.set("errors", json: JSONObjectText.array([item.bytes]))
    if failure.statusCode != .invalidArgument { body.set("status", failure.statusCode.name) }
    var object = JSONObjectText()
    object.set("error", body)
    return .json(ByteBuffer(bytes: object.bytes), status: .numbered(status))
  }

  private static func unknown(_ request: Request) -> AuthError {
    AuthError(
      .notFound,
      "There is no \(request.method) \(request.path.prefix(200)) in the Auth emulator.",
      reason: "notFound"
    )
  }

  /// The number that Firebase's emulator gives to every project.
  static let projectNumber = "12345"
  private static let keyHeader = fieldName("x-goog-api-key")
  private static let cors = CORSPolicy(
    methods: "GET,HEAD,PUT,PATCH,POST,DELETE",
    preflightStatus: .noContent
  )
  private static let recaptchaParameters = """
    {"kind":"identitytoolkit#GetRecaptchaParamResponse","recaptchaSiteKey":"not-emulated",\
    "recaptchaStoken":"not-emulated"}
    """
}
