package import RuntimeSupport

/// Turns the `Authorization` header of a request into an `AuthContext`.
///
/// Every door that speaks for a user (Firestore, callables, storage) uses this one reader, so that
/// a credential means the same everywhere.
package struct CredentialReader: Sendable {
  /// The kind of place where the process runs, which decides what a credential is worth.
  package enum Mode: Sendable, Hashable {
    /// `owner` is the administrator; tokens are decoded and believed.
    case emulator
    /// Nothing is believed without a verified signature.
    case production
  }

  /// Decides which credentials are accepted.
  package let mode: Mode
  private let idTokens: TokenVerifier?
  private let appTokens: TokenVerifier?
  private let consumed = ConsumedTokens()
  private let knownUsers = KnownUsers()

  /// A reader for one mode; the caller learns the mode from its configuration.
  ///
  /// In `production` mode, all tokens of a kind without a verifier are refused.
  package init(mode: Mode, idTokens: TokenVerifier? = nil, appTokens: TokenVerifier? = nil) {
    self.mode = mode
    self.idTokens = idTokens
    self.appTokens = appTokens
  }

  /// The caller's identity by the `Authorization` header's value; nil when the request has none.
  ///
  /// In `emulator` mode `Bearer owner` is the administrator. A JWT of three parts (the third may be
  /// empty) is believed when header and payload are JSON objects and the payload has a non-empty
  /// `sub` or `user_id`; its `exp` and its signature are not checked. In `production` mode this
  /// refuses every credential: use `verify` there.
  ///
  /// Throws `UNAUTHENTICATED` for everything else; the message never repeats the token.
  package func authenticate(authorization header: String?) throws(StatusError) -> AuthContext {
    guard let header else { return .unauthenticated }
    return try authenticate(token: Self.bearerToken(in: header))
  }

  /// The caller's identity by a token without the word `Bearer` before it.
  ///
  /// For the few places where a token does not travel in a header; the rules are the same.
  package func authenticate(token: String) throws(StatusError) -> AuthContext {
    guard mode == .emulator else {
      throw DecodedToken.refused("Unsigned credentials are accepted by the emulator only.")
    }
    if token == "owner" { return .admin }
    return .user(
      try knownUsers.user(of: token) { () throws(StatusError) in try Self.user(of: token) }
    )
  }

  private static func user(of token: String) throws(StatusError) -> UserIdentity {
    let decoded = try DecodedToken(token)
    let names = [decoded.claims.sub, decoded.claims.userID].compactMap(\.self)
    guard let uid = names.first(where: { !$0.isEmpty }) else {
      throw DecodedToken.refused("The token's payload needs a non-empty 'sub' or 'user_id'.")
    }
    return UserIdentity(uid: uid, claimsJSON: decoded.claimsJSON)
  }

  /// The caller's identity in either mode; `production` verifies the token's signature and claims.
  ///
  /// Waits only when keys must be fetched first. Throws as `authenticate` does.
  package func verify(authorization header: String?) async throws(StatusError) -> AuthContext {
    guard mode == .production, let header else { return try authenticate(authorization: header) }
    let token = try Self.bearerToken(in: header)
    if token == "owner" { return try authenticate(token: token) }
    guard let idTokens else { throw Self.noProject }
    let decoded = try await idTokens.verify(token)
    return .user(UserIdentity(uid: decoded.claims.sub ?? "", claimsJSON: decoded.claimsJSON))
  }

  /// The calling app by its App Check token; believed on the emulator, verified in production.
  package func verifyApp(token: String) async throws(StatusError) -> AppIdentity {
    let decoded: DecodedToken
    if mode == .emulator {
      decoded = try DecodedToken(token)
    } else {
      guard let appTokens else { throw Self.noProject }
      decoded = try await appTokens.verify(token)
    }
    let names = [decoded.claims.sub, decoded.claims.appID].compactMap(\.self)
    guard let appID = names.first(where: { !$0.isEmpty }) else {
      throw DecodedToken.refused("The token's payload needs a non-empty 'sub'.")
    }
    return AppIdentity(appID: appID, claimsJSON: decoded.claimsJSON)
  }

  /// Notes that a call used this App Check token; true when this process has seen it before.
  package func consume(appToken: String) -> Bool {
    consumed.consume(appToken)
  }

  private static func bearerToken(in header: String) throws(StatusError) -> String {
    let parts = header.utf8.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: true)
      .map(Substring.init)
    guard parts.count == 2, parts[0].lowercased() == "bearer" else {
      throw DecodedToken.refused("The Authorization header must be 'Bearer' followed by one token.")
    }
    return String(parts[1])
  }

  private static let noProject = DecodedToken.refused(
    "This server does not know its project, so it refuses all tokens; set GCLOUD_PROJECT."
  )
}
