import StatusCodes

/// The acceptance of credentials without a check of their signature, as emulators do.
///
/// `CredentialReader` uses it in `emulator` mode only.
struct UnsignedTokenAcceptance: Sendable {
  private let knownUsers = KnownUsers()

  /// Returns the identity that a token claims; `owner` is the administrator.
  ///
  /// Neither the signature nor the expiry is checked. Throws `UNAUTHENTICATED` for a token that
  /// cannot be decoded or names no user.
  func identity(of token: String) throws(StatusError) -> AuthContext {
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
}
