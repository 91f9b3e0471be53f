import Invocation

/// One call of a callable function.
public struct CallableRequest<Payload: Sendable>: Sendable {
  /// The client's `data`.
  public var data: Payload
  /// The caller.
  public var auth: CallableAuth
  /// The app that calls, by a valid App Check token; nil when the client sent none.
  public var app: CallableApp?
  /// The caller's messaging token, when the client sent one; not verified.
  public var instanceIDToken: String?
  /// Whether the caller reads chunks as they are sent, and not just the result.
  public var wantsStream: Bool
  /// The id that follows this invocation through the logs of client, server and worker.
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
  /// The administrator has no uid and is refused too: act for somebody, or use a token.
  public func requireUser() throws -> String {
    try CallableCallers.requireUser(auth).uid
  }
}

/// The caller of a callable.
public enum CallableAuth: Sendable, Hashable {
  /// The request had no token.
  case unauthenticated
  /// A signed-in user.
  case user(AuthenticatedUser)
  /// The administrator of the emulator (`Bearer owner`), who has no uid.
  case admin

  /// A signed-in user, as a test makes one.
  public static func user(_ uid: String, claims: MapValue = [:]) -> CallableAuth {
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
  public var claims: MapValue

  /// A user with claims.
  public init(uid: String, claims: MapValue = [:]) {
    self.uid = uid
    self.claims = claims
  }
}

/// An app that has proved itself to App Check.
public struct CallableApp: Sendable, Hashable {
  /// The Firebase app's id, such as `1:1234:ios:5678`.
  public var appID: String
  /// All claims of the token.
  public var claims: MapValue
  /// Whether the token was used before, for functions with `consumeAppCheckToken`, else nil.
  ///
  /// It never refuses a call by itself. A worker only knows the tokens that it has seen itself.
  public var alreadyConsumed: Bool?

  /// An app, as a test makes one.
  public init(appID: String, claims: MapValue = [:], alreadyConsumed: Bool? = nil) {
    self.appID = appID
    self.claims = claims
    self.alreadyConsumed = alreadyConsumed
  }
}
