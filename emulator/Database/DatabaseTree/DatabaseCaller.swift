package import Identity

/// The identity of a client, and whether the rules decide about it.
package struct DatabaseCaller: Sendable, Hashable {
  package var auth: AuthContext
  /// The JSON object that stands for `auth` in the rules, of an administrator who asked for it.
  ///
  /// `null` stands for nobody. Nil for the caller's own identity.
  package var override: String?

  package init(_ auth: AuthContext, override: String? = nil) {
    self.auth = auth
    self.override = override
  }

  /// True if no rules apply.
  package var isAdmin: Bool { auth == .admin && override == nil }
}
