package import StatusCodes

/// A reader that turns a request's `Authorization` header into an `AuthContext`.
///
/// Every service that acts for a user (Firestore, callables, storage) uses this reader, so that a
/// credential means the same everywhere.
package struct CredentialReader: Sendable {
  /// The environment in which the process runs, which decides how credentials are checked.
  package enum Mode: Sendable, Hashable {
    /// `owner` is the administrator; tokens are decoded and trusted.
    case emulator
    /// Only tokens with a verified signature are trusted.
    case production
  }

  /// The mode that decides which credentials are accepted.
  package let mode: Mode
  private let idTokens: TokenVerifier?
  private let appTokens: TokenVerifier?
  private let blockingTokens: TokenVerifier?
  private let unsignedTokens = UnsignedTokenAcceptance()
  private let consumed = ConsumedTokens()

  /// Creates a reader for one mode, which the caller takes from its configuration.
  ///
  /// In `production` mode, a kind of token that has no verifier is always refused.
  package init(
    mode: Mode,
    idTokens: TokenVerifier? = nil,
    appTokens: TokenVerifier? = nil,
    blockingTokens: TokenVerifier? = nil
  ) {
    self.mode = mode
    self.idTokens = idTokens
    self.appTokens = appTokens
    self.blockingTokens = blockingTokens
  }

  /// Returns the caller's identity for an `Authorization` header; without one, unauthenticated.
  ///
  /// In `emulator` mode `Bearer owner` is the administrator. A JWT of three parts (the third may be
  /// empty) is trusted if its header and payload are JSON objects and the payload has a non-empty
  /// `sub` or `user_id`. Its `exp` and its signature are not checked. In `production` mode this
  /// method refuses every credential: use `verify` there.
  ///
  /// Throws `UNAUTHENTICATED` for everything else; the message never repeats the token.
  package func authenticate(authorization header: String?) throws(StatusError) -> AuthContext {
    guard let header else { return .unauthenticated }
    return try authenticate(token: Self.bearerToken(in: header))
  }

  /// Returns the caller's identity for a token without the `Bearer` prefix.
  ///
  /// For the few places where a token does not arrive in a header. The rules are those of
  /// `authenticate(authorization:)`.
  package func authenticate(token: String) throws(StatusError) -> AuthContext {
    guard mode == .emulator else {
      throw DecodedToken.refused("Unsigned credentials are accepted by the emulator only.")
    }
    return try unsignedTokens.identity(of: token)
  }

  /// Returns the caller's identity in either mode; `production` verifies the signature and claims.
  ///
  /// Suspends only if keys must be fetched first. Throws as `authenticate(authorization:)` does.
  package func verify(authorization header: String?) async throws(StatusError) -> AuthContext {
    guard mode == .production, let header else { return try authenticate(authorization: header) }
    let token = try Self.bearerToken(in: header)
    if token == "owner" { return try authenticate(token: token) }
    guard let idTokens else { throw Self.noProject }
    let decoded = try await idTokens.verify(token)
    return .user(UserIdentity(uid: decoded.claims.sub ?? "", claimsJSON: decoded.claimsJSON))
  }

  /// Returns the calling app for its App Check token.
  ///
  /// The token is trusted on the emulator and verified in production.
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

  /// Returns the claims of the token that Auth sends to a blocking function, as JSON text.
  ///
  /// The token is trusted on the emulator and verified in production.
  package func verifyBlocking(token: String) async throws(StatusError) -> String {
    if mode == .emulator { return try DecodedToken(token).claimsJSON }
    guard let blockingTokens else { throw Self.noProject }
    return try await blockingTokens.verify(token).claimsJSON
  }

  /// Records the use of an App Check token; returns true if this process has seen it before.
  package func consume(appToken: String) -> Bool {
    consumed.consume(appToken)
  }

  private static func bearerToken(in header: String) throws(StatusError) -> String {
    // Splits bytes because finding the characters of a token takes longer than looking up its user.
    let parts = header.utf8.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: true)
    guard parts.count == 2, Substring(parts[0]).lowercased() == "bearer" else {
      throw DecodedToken.refused("The Authorization header must be 'Bearer' followed by one token.")
    }
    return String(Substring(parts[1]))
  }

  private static let noProject = DecodedToken.refused(
    "This server does not know its project, so it refuses all tokens; set GCLOUD_PROJECT."
  )
}
