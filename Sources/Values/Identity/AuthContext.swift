/// The caller's identity, derived from a request's credentials.
package enum AuthContext: Sendable, Hashable {
  /// The administrator, who is not subject to access rules.
  ///
  /// This is `Bearer owner` and the servers' own clients.
  case admin
  case unauthenticated
  case user(UserIdentity)
}

/// A signed-in user.
package struct UserIdentity: Sendable, Hashable {
  package var uid: String
  /// All claims of the token, as the JSON text of its payload.
  package var claimsJSON: String

  package init(uid: String, claimsJSON: String) {
    self.uid = uid
    self.claimsJSON = claimsJSON
  }
}
