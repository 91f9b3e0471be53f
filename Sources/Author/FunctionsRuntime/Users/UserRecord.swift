/// A user of Firebase Authentication, as events and blocking functions describe it.
public struct UserRecord: Sendable, Hashable {
  /// The user's id.
  public var uid: String
  /// The address in lower case; nil if the user has none.
  public var email: String?
  /// True if the user has proved to own the address.
  public var isEmailVerified: Bool
  /// The name to show; nil if the user has none.
  public var displayName: String?
  /// The address of the user's picture; nil if the user has none.
  public var photoURL: String?
  /// The number in E.164 form; nil if the user has none.
  public var phoneNumber: String?
  /// True if an administrator has disabled the account.
  public var isDisabled: Bool
  /// The claims that an administrator or a function has given to the user.
  public var customClaims: MapValue
  /// The accounts at identity providers, and `password` and `phone`.
  public var providers: [Provider]
  /// The time of the account's creation; nil if unknown.
  public var creationTime: Timestamp?
  /// The time of the last sign-in; nil if there was none.
  public var lastSignInTime: Timestamp?
  /// The tenant that the user belongs to; nil outside of tenants.
  public var tenantID: String?

  /// The user's account at one provider.
  public struct Provider: Sendable, Hashable {
    /// The provider's id, such as `google.com` or `password`.
    public var id: String
    /// The user's id at the provider.
    public var uid: String?
    /// The user's address at the provider.
    public var email: String?

    /// Creates an account for a test.
    public init(id: String, uid: String? = nil, email: String? = nil) {
      self.id = id
      self.uid = uid
      self.email = email
    }
  }

  /// Creates a user for a test.
  public init(
    uid: String,
    email: String? = nil,
    isEmailVerified: Bool = false,
    displayName: String? = nil,
    photoURL: String? = nil,
    phoneNumber: String? = nil,
    isDisabled: Bool = false,
    customClaims: MapValue = [:],
    providers: [Provider] = [],
    creationTime: (any PointInTime)? = nil,
    lastSignInTime: (any PointInTime)? = nil,
    tenantID: String? = nil
  ) {
    self.uid = uid
    self.email = email
    self.isEmailVerified = isEmailVerified
    self.displayName = displayName
    self.photoURL = photoURL
    self.phoneNumber = phoneNumber
    self.isDisabled = isDisabled
    self.customClaims = customClaims
    self.providers = providers
    self.creationTime = creationTime?.timestamp
    self.lastSignInTime = lastSignInTime?.timestamp
    self.tenantID = tenantID
  }
}

extension UserRecord {
  /// Reads a user from the data of an event, or from the claims of a blocking function's token.
  ///
  /// Events have names such as `displayName`, tokens such as `display_name`. Times are RFC 3339
  /// or milliseconds since 1970. Throws `EventRefusedError` for a value without a `uid`.
  init(_ value: FirestoreValue?) throws(EventRefusedError) {
    guard case .map(let fields)? = value, let uid = Self.text(fields, "uid"), !uid.isEmpty else {
      throw EventRefusedError("The user has no uid.")
    }
    self.init(uid: uid)
    email = Self.text(fields, "email")
    isEmailVerified = Self.flag(fields, "emailVerified", "email_verified")
    displayName = Self.text(fields, "displayName", "display_name")
    photoURL = Self.text(fields, "photoURL", "photo_url")
    phoneNumber = Self.text(fields, "phoneNumber", "phone_number")
    isDisabled = Self.flag(fields, "disabled")
    tenantID = Self.text(fields, "tenantId", "tenant_id")
    if case .map(let claims)? = fields["customClaims"] ?? fields["custom_claims"] {
      customClaims = claims
    }
    if case .map(let metadata)? = fields["metadata"] {
      creationTime = Self.time(metadata, "createTime", "creationTime", "creation_time")
      lastSignInTime = Self.time(metadata, "lastSignInTime", "last_sign_in_time")
    }
    guard case .array(let entries)? = fields["providerData"] ?? fields["provider_data"] else {
      return
    }
    providers = entries.compactMap { entry in
      guard case .map(let fields) = entry,
        let id = Self.text(fields, "providerId", "provider_id")
      else { return nil }
      return Provider(id: id, uid: Self.text(fields, "uid"), email: Self.text(fields, "email"))
    }
  }

  private static func text(_ fields: MapValue, _ names: String...) -> String? {
    for name in names {
      if case .string(let text)? = fields[name] { return text }
    }
    return nil
  }

  private static func flag(_ fields: MapValue, _ names: String...) -> Bool {
    names.contains { fields[$0] == .boolean(true) }
  }

  private static func time(_ fields: MapValue, _ names: String...) -> Timestamp? {
    for name in names {
      switch fields[name] {
      case .string(let text)?: return Timestamp(text)
      case .integer(let milliseconds)?:
        let (microseconds, isTooLarge) = milliseconds.multipliedReportingOverflow(by: 1000)
        return isTooLarge ? nil : Timestamp(microseconds: microseconds)
      default: continue
      }
    }
    return nil
  }
}
