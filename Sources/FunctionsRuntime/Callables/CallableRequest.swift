import Invocation

/// One call of a callable function.
public struct CallableRequest<Payload: Sendable>: Sendable {
  /// What the client sent as `data`.
  public var data: Payload
  /// Who calls.
  public var auth: CallableAuth
  /// The caller's messaging token, when the client sent one; not verified.
  public var instanceIDToken: String?
  /// Follows this invocation through the logs of client, server and worker.
  public var invocationID: String
  /// A logger whose lines carry the invocation's id.
  public var logger: Logger

  /// A request as a test makes one.
  public init(
    data: Payload,
    auth: CallableAuth = .unauthenticated,
    instanceIDToken: String? = nil,
    invocationID: String = "test",
    logger: Logger = Logger(label: "callable")
  ) {
    self.data = data
    self.auth = auth
    self.instanceIDToken = instanceIDToken
    self.invocationID = invocationID
    self.logger = logger
  }

  /// The uid of the signed-in caller; throws `unauthenticated` when there is none.
  ///
  /// The administrator has no uid, so they are refused too: act for somebody, or use a token.
  public func requireUser() throws -> String {
    guard case .user(let user) = auth else {
      throw CallableError(.unauthenticated, "Sign in first: this function needs a user.")
    }
    return user.uid
  }

  /// Lets only administrators pass: `Bearer owner` on the emulator, or a user whose token has the
  /// claim `admin: true`.
  ///
  /// Throws `unauthenticated` without a caller and `permission-denied` for any other user.
  public func requireAdmin() throws {
    switch auth {
    case .admin: return
    case .user(let user) where user.isAdmin: return
    case .user: throw CallableError(.permissionDenied, "Only administrators may do this.")
    case .unauthenticated:
      throw CallableError(.unauthenticated, "Sign in first: only administrators may do this.")
    }
  }
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
