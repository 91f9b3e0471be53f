import AuthAccounts
import DocumentModel
import Identity
import Invocation
import JSONText
import Logging
import Manifests
import StatusCodes

/// The functions that are asked before a user is created or signs in.
package protocol BlockingFunctions: Sendable {
  /// True if a function is deployed for an event, even if it does not run now.
  func isDeployed(_ event: BlockingEvent) -> Bool

  /// Sends a request to the function of an event and returns its response.
  ///
  /// `body` is `{"data":{"jwt":"…"}}`. Returns nil if no function is deployed. Throws if there is
  /// no response within the seven seconds that Firebase allows.
  func call(_ event: BlockingEvent, body: [UInt8]) async throws -> BlockingReply?
}

/// The moment at which a function is asked.
package enum BlockingEvent: String, Sendable, Hashable, CaseIterable {
  case beforeCreate, beforeSignIn

  /// The event type in a manifest of functions.
  package var eventType: String {
    switch self {
    case .beforeCreate: FunctionEndpoint.BlockingTrigger.beforeCreate
    case .beforeSignIn: FunctionEndpoint.BlockingTrigger.beforeSignIn
    }
  }
}

/// The response of a function: the HTTP status and the body.
package struct BlockingReply: Sendable {
  package var status: Int
  package var body: [UInt8]

  package init(status: Int, body: [UInt8]) {
    self.status = status
    self.body = body
  }
}

/// No functions at all.
package struct NoBlockingFunctions: BlockingFunctions {
  package init() {}

  package func isDeployed(_ event: BlockingEvent) -> Bool { false }

  package func call(_ event: BlockingEvent, body: [UInt8]) async throws -> BlockingReply? { nil }
}

/// The changes that a function asks for.
struct BlockingDecision: Sendable {
  var displayName: String?
  var photoUrl: String?
  var emailVerified: Bool?
  var isDisabled: Bool?
  /// The custom claims as JSON text.
  var customClaims: String?
  /// Claims of this session only.
  var sessionClaims = JSONObjectText()

  /// Reads the response of a function; only the members that `updateMask` names count.
  init(_ body: [UInt8], for event: BlockingEvent) throws(AuthError) {
    guard !body.isEmpty else { return }
    guard let reply = JSONObjectText(parsing: body) else {
      throw AuthError(
        "BLOCKING_FUNCTION_ERROR_RESPONSE : The response of the function is not a JSON object."
      )
    }
    guard let record = reply.object("userRecord") else { return }
    for name in (record.text("updateMask") ?? "").split(separator: ",") {
      switch name {
      case "displayName": displayName = record.text("displayName")
      case "photoUrl": photoUrl = record.text("photoUrl")
      case "emailVerified": emailVerified = record.flag("emailVerified")
      case "disabled": isDisabled = record.flag("disabled")
      case "customClaims": customClaims = try Self.claims(record["customClaims"])
      case "sessionClaims" where event == .beforeSignIn:
        let text = try Self.claims(record["sessionClaims"])
        sessionClaims = text.flatMap(JSONObjectText.init(parsing:)) ?? JSONObjectText()
      default: break
      }
    }
  }

  private static func claims(_ json: [UInt8]?) throws(AuthError) -> String? {
    guard let json else { return nil }
    let text = String(decoding: json, as: UTF8.self)
    do {
      try AccountChecks.customClaims(text)
    } catch {
      throw AuthError("BLOCKING_FUNCTION_ERROR_RESPONSE : \(error.statusMessage)")
    }
    return text
  }

  /// Applies the changes to a user.
  func apply(to user: inout UserAccount) {
    if let displayName { user.displayName = displayName }
    if let photoUrl { user.photoUrl = photoUrl }
    if let emailVerified { user.emailVerified = emailVerified }
    if let isDisabled { user.disabled = isDisabled }
    if let customClaims { user.customAttributes = customClaims }
  }
}

extension AuthService {
  /// Asks the function of an event about a user; nil if there is no such function.
  ///
  /// Throws `BLOCKING_FUNCTION_ERROR_RESPONSE` with the function's error if it refuses or fails.
  func ask(
    _ event: BlockingEvent,
    about user: UserAccount,
    _ attempt: SignInAttempt
  ) async throws -> BlockingDecision? {
    guard blockingFunctions.isDeployed(event) else { return nil }
    let payload = blockingPayload(event, user, attempt)
    var data = JSONObjectText()
    data.set("jwt", UnsignedTokenIssuer.token(payload: payload.bytes))
    var body = JSONObjectText()
    body.set("data", data)
    let reply: BlockingReply?
    do {
      reply = try await blockingFunctions.call(event, body: body.bytes)
    } catch let error as CancellationError {
      throw error
    } catch let error as InvocationError where [.unserved, .drained].contains(error.kind) {
      throw AuthError(.unavailable, "UNAVAILABLE : \(error.message)", reason: "backendError")
    } catch {
      logger.error("A blocking function failed", metadata: ["error": "\(error)"])
      throw AuthError(
        "BLOCKING_FUNCTION_ERROR_RESPONSE : HTTP Cloud Function deadline exceeded or not reachable."
      )
    }
    guard let reply else { return nil }
    guard (200..<300).contains(reply.status) else {
      let text = String(decoding: reply.body.prefix(2000), as: UTF8.self)
      throw AuthError(
        "BLOCKING_FUNCTION_ERROR_RESPONSE : HTTP Cloud Function returned an error: \(text)"
      )
    }
    return try BlockingDecision(reply.body, for: event)
  }

  private func blockingPayload(
    _ event: BlockingEvent,
    _ user: UserAccount,
    _ attempt: SignInAttempt
  ) -> JSONObjectText {
    let now = store.time.seconds
    var payload = JSONObjectText()
    payload.set("iss", "https://securetoken.google.com/\(store.project)")
    payload.set("aud", "https://functions.invalid/\(event.rawValue)")
    payload.set("iat", now)
    payload.set("exp", now + TokenIssuer.lifetimeSeconds)
    payload.set("event_id", attempt.id)
    payload.set("event_type", event.rawValue)
    payload.set("user_agent", attempt.userAgent)
    payload.set("ip_address", "127.0.0.1")
    payload.set("locale", attempt.locale)
    payload.set("user_record", Self.record(of: user))
    payload.set("sign_in_method", attempt.method)
    payload.set("sign_in_attributes", attempt.attributes)
    payload.set("raw_user_info", attempt.rawUserInfo)
    payload.set("tenant_id", user.tenantId)
    payload.set("sub", user.localId)
    return payload
  }

  private static func record(of user: UserAccount) -> JSONObjectText {
    var record = JSONObjectText()
    record.set("uid", user.localId)
    record.set("email", user.email)
    record.set("email_verified", user.emailVerified ?? false)
    record.set("display_name", user.displayName)
    record.set("photo_url", user.photoUrl)
    record.set("disabled", user.isDisabled)
    record.set("phone_number", user.phoneNumber)
    var metadata = JSONObjectText()
    metadata.set("creation_time", user.createdAt.flatMap { Int64($0) })
    metadata.set("last_sign_in_time", user.lastLoginAt.flatMap { Int64($0) })
    record.set("metadata", metadata)
    record.set("custom_claims", JSONObjectText(parsing: user.customClaims))
    let providers = (user.providerUserInfo ?? []).map { provider in
      var member = JSONObjectText()
      member.set("provider_id", provider.providerId)
      member.set("uid", provider.rawId)
      member.set("email", provider.email)
      member.set("display_name", provider.displayName)
      member.set("photo_url", provider.photoUrl)
      member.set("phone_number", provider.phoneNumber)
      return member.bytes
    }
    record.set("provider_data", json: JSONObjectText.array(providers))
    record.set("tenant_id", user.tenantId)
    return record
  }
}
