import DatabaseTree
import Identity
import JSONText

/// The identity that a client's credential stands for.
struct DatabaseCredentials: Sendable {
  private let reader = CredentialReader(mode: .emulator)

  /// A credential that stands for nobody, with the words of production.
  struct InvalidTokenError: Error {
    let message = "Could not parse auth token."
  }

  /// An accepted credential.
  struct Grant: Sendable {
    var caller: DatabaseCaller
    /// The claims of a user's token.
    var claims: JSONObjectText?

    /// The time at which the token expires, in seconds; nil for one that does not.
    var expirySeconds: Int64? { claims?.number("exp") }
  }

  /// Returns the grant of a token; an administrator may act as somebody else.
  ///
  /// `override` is the JSON object that stands for `auth` in the rules, or `null` for nobody. It
  /// has no effect for others.
  func grant(_ token: String, override: String? = nil) throws(InvalidTokenError) -> Grant {
    // Access tokens of Google are opaque.
    if token.hasPrefix("ya29.") { return Grant(caller: DatabaseCaller(.admin, override: override)) }
    let auth: AuthContext
    do {
      auth = try reader.authenticate(token: token)
    } catch {
      throw InvalidTokenError()
    }
    guard case .user(let user) = auth else {
      return Grant(caller: DatabaseCaller(auth, override: override))
    }
    return Grant(caller: DatabaseCaller(auth), claims: JSONObjectText(parsing: user.claimsJSON))
  }

  /// Returns true for a token in the form of those that users have.
  static func isUserToken(_ token: String) -> Bool {
    token.split(separator: ".", omittingEmptySubsequences: false).count == 3
  }
}
