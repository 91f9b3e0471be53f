package import Identity
package import JSONText

/// The identity of a client, and whether the rules decide about it.
package struct DatabaseCaller: Sendable, Hashable {
  package var auth: AuthContext
  /// The JSON that stands for `auth` in the rules, of an administrator who asked for it.
  ///
  /// `null` stands for nobody. Nil for the caller's own identity.
  package var override: String?

  package init(_ auth: AuthContext, override: String? = nil) {
    self.auth = auth
    self.override = override
  }

  /// True if no rules apply.
  package var isAdmin: Bool { auth == .admin && override == nil }

  /// The value of `auth` in the rules; null for nobody.
  package var rulesAuth: JSONValue {
    // Texts that are not JSON grant nothing.
    func value(_ text: String) -> JSONValue { (try? JSONValue.parse(text.utf8)) ?? .null }
    if let override { return value(override) }
    guard case .user(let user) = auth else { return .null }
    let token = value(user.claimsJSON)
    var provider = JSONValue.string("custom")
    if case .object(let claims) = token, case .object(let firebase)? = claims["firebase"],
      let named = firebase["sign_in_provider"]
    {
      provider = named
    }
    return ["uid": .string(user.uid), "provider": provider, "token": token]
  }
}
