/// One call of a callable function.
public struct CallableRequest<Payload: Sendable>: Sendable {
  /// The decoded `data` of the client's call.
  public var data: Payload
  /// The caller, as identified by the token of the request.
  public var auth: CallableAuth
  /// The calling app, identified by a valid App Check token; nil if the client sent no valid token.
  public var app: CallableApp?
  /// The caller's messaging token; nil if the client sent none.
  ///
  /// The token is not verified.
  public var instanceIDToken: String?
  /// True if the caller reads chunks as they are sent, and not just the result.
  public var wantsStream: Bool
  /// The id that identifies this invocation in the logs of the client, the server and the worker.
  public var invocationID: String
  /// A logger that adds the id of the invocation to each line.
  public var logger: Logger

  /// Creates a request for a test.
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

  /// Returns the uid of the signed-in caller; throws `unauthenticated` if there is none.
  ///
  /// The administrator of the emulator has no uid and is refused too. Such a caller must use a
  /// user's token instead. A caller whose token is not valid never gets here: in production the
  /// error of an expired token has the details `{"reason": "TOKEN_EXPIRED"}`, and that of a forged
  /// token says what is wrong with it. The emulator trusts unsigned tokens of any age.
  public func requireUser() throws -> String {
    try CallableCallers.requireUser(auth).uid
  }
}

/// The caller of a callable.
public enum CallableAuth: Sendable, Hashable {
  /// A caller without a token.
  case unauthenticated
  /// A signed-in user, as identified by a verified ID token.
  case user(AuthenticatedUser)
  /// The administrator of the emulator (`Bearer owner`), who has no uid.
  case admin

  /// Creates a signed-in user for a test.
  public static func user(_ uid: String, claims: MapValue = [:]) -> CallableAuth {
    .user(AuthenticatedUser(uid: uid, claims: claims))
  }

  /// The signed-in user's id; nil for other callers.
  public var uid: String? {
    if case .user(let user) = self { user.uid } else { nil }
  }
}

/// A signed-in user, as described by the claims of the ID token.
public struct AuthenticatedUser: Sendable, Hashable {
  /// The user's id; never empty.
  public var uid: String
  /// All claims of the token: `email`, `firebase`, and custom claims.
  public var claims: MapValue

  /// Creates a user with an id and claims.
  public init(uid: String, claims: MapValue = [:]) {
    self.uid = uid
    self.claims = claims
  }
}

/// An app that App Check has attested.
public struct CallableApp: Sendable, Hashable {
  /// The Firebase app's id, such as `1:1234:ios:5678`.
  public var appID: String
  /// All claims of the App Check token.
  public var claims: MapValue
  /// True if the token was used before; nil unless the function sets `consumeAppCheckToken`.
  ///
  /// A used token does not refuse a call by itself; the handler decides. Each worker knows only the
  /// tokens that it has seen itself, so a token that another worker has seen counts as new.
  public var alreadyConsumed: Bool?

  /// Creates an app for a test.
  public init(appID: String, claims: MapValue = [:], alreadyConsumed: Bool? = nil) {
    self.appID = appID
    self.claims = claims
    self.alreadyConsumed = alreadyConsumed
  }
}
