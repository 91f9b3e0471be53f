/// The caller's identity: what a door made of a request's credentials.
package enum AuthContext: Sendable, Hashable {
  /// The administrator: `Bearer owner` and the servers' own clients; access rules do not apply.
  case admin
  case unauthenticated
  case user(UserIdentity)
}

/// A signed-in user.
package struct UserIdentity: Sendable, Hashable {
  package var uid: String
  /// All claims of the token, as the JSON text of its payload.
  package var claimsJSON: String

  /// A user as a token describes them.
  package init(uid: String, claimsJSON: String) {
    self.uid = uid
    self.claimsJSON = claimsJSON
  }
}
