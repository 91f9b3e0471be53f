import AuthAccounts
import Cryptography
import DocumentModel
import Identifiers
import Identity
import JSONText

/// The ID tokens and refresh tokens of a store's users.
///
/// ID tokens are unsigned, as Firebase's emulator makes them. Refresh tokens are signed with a
/// secret of the store, so that those of another project or data folder are refused.
struct TokenIssuer: Sendable {
  let store: AccountStore

  /// What an ID token says about a sign-in.
  struct Session: Sendable {
    /// The sign-in provider, such as `password` or `anonymous`.
    var provider: String
    /// Claims of this session only, which replace custom claims.
    var claims = JSONObjectText()
    /// What the identity provider says about the user.
    var attributes: JSONObjectText?
    /// The time of the sign-in, in seconds since 1970.
    var authTime: Int64
  }

  /// The tokens of a response.
  struct Tokens: Sendable {
    var idToken: String
    var refreshToken: String

    /// Adds the tokens to the response of a sign-in.
    func add(to response: inout JSONObjectText) {
      response.set("idToken", idToken)
      response.set("refreshToken", refreshToken)
      response.set("expiresIn", "\(TokenIssuer.lifetimeSeconds)")
    }
  }

  /// A valid ID token with its user.
  struct Verified: Sendable {
    var user: UserAccount
    var provider: String
    var payload: JSONObjectText
  }

  /// Returns new tokens of a user.
  ///
  /// They are issued at `time`, in seconds since 1970: that of the check of the user's credentials.
  func issue(_ user: UserAccount, _ session: Session, at time: Int64) async throws -> Tokens {
    Tokens(
      idToken: UnsignedTokenIssuer.token(payload: payload(user, session, time).bytes),
      refreshToken: try await refreshToken(user, session, time)
    )
  }

  private func payload(
    _ user: UserAccount,
    _ session: Session,
    _ now: Int64
  ) -> JSONObjectText {
    var identities = JSONObjectText()
    if let email = user.email {
      identities.set("email", json: JSONObjectText.array([Array(jsonQuoted(email).utf8)]))
    }
    var rawIDs: [String: [String]] = [:]
    for provider in user.providerUserInfo ?? [] where provider.providerId != "password" {
      if let rawID = provider.rawId { rawIDs[provider.providerId, default: []].append(rawID) }
    }
    for (provider, ids) in rawIDs.sorted(by: { $0.key < $1.key }) {
      identities.set(provider, json: JSONObjectText.array(ids.map { Array(jsonQuoted($0).utf8) }))
    }
    var firebase = JSONObjectText()
    firebase.set("identities", identities)
    firebase.set("sign_in_provider", session.provider)
    firebase.set("sign_in_attributes", session.attributes)
    firebase.set("tenant", user.tenantId)
    var payload = JSONObjectText()
    payload.set("name", user.displayName)
    payload.set("picture", user.photoUrl)
    if let claims = JSONObjectText(parsing: user.customClaims) { payload.merge(claims) }
    payload.merge(session.claims)
    payload.set("email", user.email)
    payload.set("email_verified", user.email == nil ? nil : user.emailVerified ?? false)
    payload.set("phone_number", user.phoneNumber)
    if session.provider == "anonymous" { payload.set("provider_id", session.provider) }
    payload.set("auth_time", session.authTime)
    payload.set("user_id", user.localId)
    payload.set("firebase", firebase)
    payload.set("iat", now)
    payload.set("exp", now + Self.lifetimeSeconds)
    payload.set("aud", store.project)
    payload.set("iss", issuer)
    payload.set("sub", user.localId)
    return payload
  }

  /// Returns the user of an ID token.
  ///
  /// Throws `INVALID_ID_TOKEN`, `USER_NOT_FOUND`, `TOKEN_EXPIRED` after a revocation, or
  /// `USER_DISABLED`. The expiry is not checked, as in Firebase's emulator.
  func verify(_ idToken: String, _ find: (String) throws -> UserAccount?) throws -> Verified {
    let (payload, issued) = try parse(idToken)
    guard let uid = payload.text("user_id") ?? payload.text("sub") else {
      throw AuthError("INVALID_ID_TOKEN")
    }
    let user = try require(try find(uid), "USER_NOT_FOUND")
    try Self.requireValid(user, issued: issued)
    let provider = payload["firebase"].flatMap { bytes in
      JSONObjectText(parsing: bytes)?.text("sign_in_provider")
    }
    return Verified(user: user, provider: provider ?? "custom", payload: payload)
  }

  private func parse(_ idToken: String) throws(AuthError) -> (JSONObjectText, issued: Int64) {
    // Firebase has one code for every malformed token.
    guard let token = try? DecodedToken(idToken),
      let payload = JSONObjectText(parsing: token.claimsJSON), payload.text("iss") == issuer
    else { throw AuthError("INVALID_ID_TOKEN") }
    return (payload, payload.number("iat") ?? 0)
  }

  /// Throws if a user is disabled, or if a token was issued before the last revocation.
  private static func requireValid(_ user: UserAccount, issued: Int64) throws(AuthError) {
    let isRevoked = user.validSince.flatMap { Int64($0) }.map { issued < $0 } ?? false
    try require(!isRevoked, "TOKEN_EXPIRED")
    try require(!user.isDisabled, "USER_DISABLED")
  }

  // MARK: - Refresh tokens

  private func refreshToken(
    _ user: UserAccount,
    _ session: Session,
    _ time: Int64
  ) async throws -> String {
    var content = JSONObjectText()
    content.set("uid", user.localId)
    content.set("provider", session.provider)
    content.set("authTime", session.authTime)
    content.set("iat", time)
    // A later user with the same id is another one.
    content.set("created", user.createdAt)
    content.set("project", store.project)
    // Two tokens of one second must differ, because clients compare them.
    content.set("nonce", RandomID.make(length: 12))
    if !session.claims.isEmpty { content.set("claims", session.claims) }
    content.set("attributes", session.attributes)
    let text = Base64URL.encode(content.bytes)
    return "\(text).\(Base64URL.encode(try await signature(of: text)))"
  }

  /// Returns the user and the session of a refresh token.
  ///
  /// Throws `INVALID_REFRESH_TOKEN`, `USER_NOT_FOUND`, `TOKEN_EXPIRED` or `USER_DISABLED`.
  func redeem(_ refreshToken: String) async throws -> (UserAccount, Session) {
    let parts = refreshToken.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, let signature = Base64URL.decode(parts[1]),
      HMACSHA256.isValid(
        signature,
        for: Array(parts[0].utf8),
        key: try await store.tokenSecret()
      ),
      let bytes = Base64URL.decode(parts[0]),
      let content = JSONObjectText(parsing: bytes),
      let uid = content.text("uid"), let provider = content.text("provider"),
      content.text("project") == store.project
    else { throw AuthError("INVALID_REFRESH_TOKEN") }
    let user = try require(try await store.read { try $0.user(uid) }, "USER_NOT_FOUND")
    try require(user.createdAt == content.text("created"), "USER_NOT_FOUND")
    try Self.requireValid(user, issued: content.number("iat") ?? 0)
    let session = Session(
      provider: provider,
      claims: content.object("claims") ?? JSONObjectText(),
      attributes: content.object("attributes"),
      authTime: content.number("authTime") ?? 0
    )
    return (user, session)
  }

  private func signature(of text: String) async throws -> [UInt8] {
    HMACSHA256.code(for: Array(text.utf8), key: try await store.tokenSecret())
  }

  // MARK: - Session cookies

  /// Returns a session cookie with the claims of an ID token.
  func sessionCookie(_ payload: JSONObjectText, validSeconds: Int64) -> String {
    var payload = payload
    let now = store.time.seconds
    payload.set("iat", now)
    payload.set("exp", now + validSeconds)
    payload.set("iss", "https://session.firebase.google.com/\(store.project)")
    return UnsignedTokenIssuer.token(payload: payload.bytes)
  }

  private var issuer: String { "https://securetoken.google.com/\(store.project)" }

  static let lifetimeSeconds: Int64 = 3600
}

extension UserAccount {
  /// The provider with which the user would sign in.
  var signInProvider: String {
    providerUserInfo?.first?.providerId ?? (customAuth == true ? "custom" : "anonymous")
  }
}
