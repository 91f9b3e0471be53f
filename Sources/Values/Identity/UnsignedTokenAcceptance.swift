import FlowControl
import StatusCodes

/// The acceptance of credentials without a check of their signature, as emulators do.
///
/// `CredentialReader` uses it in `emulator` mode only.
struct UnsignedTokenAcceptance: Sendable {
  /// The maximum number of tokens whose users are kept, enough for one test run.
  private static let knownUsersMax = 1000
  /// The length up to which tokens are kept, so that the cache stays below a few megabytes.
  private static let knownTokenBytesMax = 4096

  /// The users by the bytes of their tokens; as strings, texts that only look alike would be equal.
  ///
  /// Decoding a token costs more than most requests.
  private let knownUsers = BoundedCache<[UInt8], UserIdentity>(countMax: Self.knownUsersMax)

  /// Returns the identity that a token claims; `owner` is the administrator.
  ///
  /// Neither the signature nor the expiry is checked. Throws `UNAUTHENTICATED` for a token that
  /// cannot be decoded or names no user.
  func identity(of token: String) throws(StatusError) -> AuthContext {
    if token == "owner" { return .admin }
    let key = Array(token.utf8)
    guard key.count <= Self.knownTokenBytesMax else { return .user(try Self.user(of: token)) }
    return .user(
      try knownUsers.value(of: key) { () throws(StatusError) in try Self.user(of: token) }
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
}
