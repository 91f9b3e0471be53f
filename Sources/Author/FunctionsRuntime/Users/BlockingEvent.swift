/// A sign-up or a sign-in that waits for the function's decision.
public struct BlockingEvent: Sendable {
  /// The user as it would be created, or as it is stored.
  public var user: UserRecord
  /// The method of the sign-in, such as `password`, `emailLink`, `phone` or `google.com`.
  public var method: String?
  /// The address from which the user signs in; nil if unknown.
  public var ipAddress: String?
  /// The app or browser that the user signs in with; nil if unknown.
  public var userAgent: String?
  /// The language of the app, such as `de`; nil if unknown.
  public var locale: String?
  /// The user as the identity provider describes it, as JSON text.
  public var rawUserInfo: String?
  /// The id of the sign-up or sign-in, which two blocking functions share.
  public var id: String
  /// The id that identifies this invocation in the logs of the server and the worker.
  public var invocationID: String
  /// A logger that adds the id of the invocation to each line.
  public var logger: Logger

  /// Creates an event for a test.
  public init(
    user: UserRecord,
    method: String? = nil,
    ipAddress: String? = nil,
    userAgent: String? = nil,
    locale: String? = nil,
    rawUserInfo: String? = nil,
    id: String = "test",
    invocationID: String = "test",
    logger: Logger = Logger(label: "event")
  ) {
    self.user = user
    self.method = method
    self.ipAddress = ipAddress
    self.userAgent = userAgent
    self.locale = locale
    self.rawUserInfo = rawUserInfo
    self.id = id
    self.invocationID = invocationID
    self.logger = logger
  }
}

/// The changes that a blocking function makes to a user; nil members leave the user as it is.
public struct UserChanges: Sendable, Hashable {
  /// The new name.
  public var displayName: String?
  /// The new address of the picture.
  public var photoURL: String?
  /// True to accept the address as the user's without a code.
  public var isEmailVerified: Bool?
  /// True to disable the account, which also refuses the sign-in.
  public var isDisabled: Bool?
  /// The claims that replace the user's custom claims.
  public var customClaims: MapValue?
  /// Claims for the tokens of this session only; ignored before a user is created.
  public var sessionClaims: MapValue?

  /// Creates changes; without arguments, there are none.
  public init(
    displayName: String? = nil,
    photoURL: String? = nil,
    isEmailVerified: Bool? = nil,
    isDisabled: Bool? = nil,
    customClaims: MapValue? = nil,
    sessionClaims: MapValue? = nil
  ) {
    self.displayName = displayName
    self.photoURL = photoURL
    self.isEmailVerified = isEmailVerified
    self.isDisabled = isDisabled
    self.customClaims = customClaims
    self.sessionClaims = sessionClaims
  }

  /// The body of the response to Auth, with the names of the changed members in `updateMask`.
  var reply: FirestoreValue {
    var record = MapValue()
    record["displayName"] = displayName.map { .string($0) }
    record["photoUrl"] = photoURL.map { .string($0) }
    record["emailVerified"] = isEmailVerified.map { .boolean($0) }
    record["disabled"] = isDisabled.map { .boolean($0) }
    record["customClaims"] = customClaims.map { .map($0) }
    record["sessionClaims"] = sessionClaims.map { .map($0) }
    guard !record.isEmpty else { return .map([:]) }
    record["updateMask"] = .string(record.keys.joined(separator: ","))
    return .map(["userRecord": .map(record)])
  }
}
