import Invocation

/// One call of a callable function.
public struct CallableRequest<Payload: Sendable>: Sendable {
  /// What the client sent as `data`.
  public var data: Payload
  /// Who calls.
  public var auth: CallableAuth
  /// The app that calls, by a valid App Check token; nil when the client sent none.
  public var app: CallableApp?
  /// The caller's messaging token, when the client sent one; not verified.
  public var instanceIDToken: String?
  /// Whether the caller reads chunks as they are sent, and not only the result.
  public var wantsStream: Bool
  /// Follows this invocation through the logs of client, server and worker.
  public var invocationID: String
  /// A logger whose lines carry the invocation's id.
  public var logger: Logger

  /// A request as a test makes one.
  public init(
    data: Payload,
    auth: CallableAuth = .unauthenticated,
    app: CallableApp? = nil,
    instanceIDToken: String? = nil,
    wantsStream: Bool = false,
    invocationID: String = "test",
    logger: Logger = Logger(label: "callable")
  ) {
    self.data = data
    self.auth = auth
    self.app = app
    self.instanceIDToken = instanceIDToken
    self.wantsStream = wantsStream
    self.invocationID = invocationID
    self.logger = logger
  }

  /// The uid of the signed-in caller; throws `unauthenticated` when there is none.
  ///
  /// The administrator has no uid, so they are refused too: act for somebody, or use a token.
  public func requireUser() throws -> String {
    guard case .user(let user) = auth else { throw CallableCallers.notSignedIn }
    return user.uid
  }
}

/// Who may call a callable; the others are refused before their data is looked at.
public enum CallableCallers: Sendable, Hashable {
  /// Anyone, signed in or not.
  case anyone
  /// Signed-in users; the others get `unauthenticated`, and so does the administrator, who has no
  /// uid.
  case users
  /// `Bearer owner` on the emulator, or a user whose token has the claim `admin: true`.
  ///
  /// Other users get `permission-denied`, and who is not signed in `unauthenticated`.
  case administrators

  func check(_ auth: CallableAuth) throws(CallableError) {
    switch (self, auth) {
    case (.anyone, _), (.users, .user), (.administrators, .admin): return
    case (.administrators, .user(let user)) where user.isAdmin: return
    case (.administrators, .user):
      throw CallableError(.permissionDenied, "Only administrators may do this.")
    case (.administrators, .unauthenticated):
      throw CallableError(.unauthenticated, "Sign in first: only administrators may do this.")
    case (.users, _): throw Self.notSignedIn
    }
  }

  static let notSignedIn = CallableError(
    .unauthenticated,
    "Sign in first: this function needs a user."
  )
}

/// Who calls a callable.
public enum CallableAuth: Sendable, Hashable {
  /// The request had no token.
  case unauthenticated
  /// A signed-in user.
  case user(AuthenticatedUser)
  /// The administrator of the emulator (`Bearer owner`), who has no uid.
  case admin

  /// A signed-in user, as a test makes one.
  public static func user(_ uid: String, claims: [String: Value] = [:]) -> CallableAuth {
    .user(AuthenticatedUser(uid: uid, claims: claims))
  }

  /// The signed-in user's id, or nil.
  public var uid: String? {
    if case .user(let user) = self { user.uid } else { nil }
  }
}

/// A signed-in user, as their token describes them.
public struct AuthenticatedUser: Sendable, Hashable {
  /// The user's id; never empty.
  public var uid: String
  /// All claims of the token: `email`, `firebase`, and the custom ones.
  public var claims: [String: Value]

  /// A user with claims.
  public init(uid: String, claims: [String: Value] = [:]) {
    self.uid = uid
    self.claims = claims
  }

  /// Whether the token has the custom claim `admin: true`.
  public var isAdmin: Bool { claims["admin"] == .boolean(true) }
}

/// An app that has proved itself to App Check.
public struct CallableApp: Sendable, Hashable {
  /// The Firebase app's id, such as `1:1234:ios:5678`.
  public var appID: String
  /// All claims of the token.
  public var claims: [String: Value]
  /// Whether the token had been used before, for functions with `consumeAppCheckToken`, else nil.
  ///
  /// Never refuses a call by itself. A worker knows the tokens that it has seen itself.
  public var alreadyConsumed: Bool?

  /// An app, as a test makes one.
  public init(appID: String, claims: [String: Value] = [:], alreadyConsumed: Bool? = nil) {
    self.appID = appID
    self.claims = claims
    self.alreadyConsumed = alreadyConsumed
  }
}
