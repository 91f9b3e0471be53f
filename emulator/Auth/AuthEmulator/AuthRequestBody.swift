import AuthAccounts

/// The members of a request's JSON, of all methods together.
///
/// The methods share their names and types. Unknown members are ignored, as in production.
struct AuthRequestBody: Decodable, Sendable {
  var idToken: String?
  var localId: String?
  var tenantId: String?

  // Profiles
  var email: String?
  var password: String?
  var displayName: String?
  var photoUrl: String?
  var phoneNumber: String?
  var emailVerified: Bool?
  var disabled: Bool?
  var disableUser: Bool?
  var customAttributes: String?
  var validSince: LenientText?
  var createdAt: LenientText?
  var lastLoginAt: LenientText?
  var deleteAttribute: [String]?
  var deleteProvider: [String]?
  var linkProviderUserInfo: ProviderAccount?
  var mfaInfo: [SecondFactor]?
  var mfa: Factors?

  // Sign-in
  var token: String?
  var oobCode: String?
  var postBody: String?
  var requestUri: String?
  var returnIdpCredential: Bool?
  var sessionInfo: String?
  var code: String?
  var temporaryProof: String?
  var returnSecureToken: Bool?

  // Codes
  var requestType: String?
  var newEmail: String?
  var newPassword: String?
  var continueUrl: String?
  var returnOobLink: Bool?
  var identifier: String?
  var continueUri: String?
  var providerId: String?
  var sessionId: String?

  // Administration
  var localIds: [String]?
  var force: Bool?
  var users: [UploadedAccount]?
  var allowOverwrite: Bool?
  var sanityCheck: Bool?
  var validDuration: LenientText?
  var returnUserInfo: Bool?
  var limit: LenientText?
  var offset: LenientText?
  var order: String?
  var sortBy: String?
  var expression: [QueryExpression]?

  /// The second factors in an administrator's update.
  struct Factors: Decodable, Sendable {
    var enrollments: [SecondFactor]?
  }

  /// The condition of a query for users, of which the emulator has none.
  struct QueryExpression: Decodable, Sendable {}
}

/// The criteria of an administrator's look-up, whose members are lists.
struct LookupCriteria: Decodable, Sendable {
  var localId: [String]?
  var email: [String]?
  var phoneNumber: [String]?
  var federatedUserId: [FederatedID]?

  struct FederatedID: Decodable, Sendable {
    var providerId: String
    var rawId: String
  }
}

/// A user in a batch, whose password may be in clear.
struct UploadedAccount: Decodable, Sendable {
  var account: UserAccount
  var rawPassword: String?

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Key.self)
    let localID = try container.decodeIfPresent(String.self, forKey: .localId) ?? ""
    account = UserAccount(localId: localID)
    account.email = try container.decodeIfPresent(String.self, forKey: .email)
    account.emailVerified = try container.decodeIfPresent(Bool.self, forKey: .emailVerified)
    account.displayName = try container.decodeIfPresent(String.self, forKey: .displayName)
    account.photoUrl = try container.decodeIfPresent(String.self, forKey: .photoUrl)
    account.phoneNumber = try container.decodeIfPresent(String.self, forKey: .phoneNumber)
    account.disabled = try container.decodeIfPresent(Bool.self, forKey: .disabled)
    account.customAttributes = try container.decodeIfPresent(
      String.self,
      forKey: .customAttributes
    )
    account.passwordHash = try container.decodeIfPresent(String.self, forKey: .passwordHash)
    account.salt = try container.decodeIfPresent(String.self, forKey: .salt)
    account.lastLoginAt = try container.decodeIfPresent(LenientText.self, forKey: .lastLoginAt)?
      .text
    account.createdAt = try container.decodeIfPresent(LenientText.self, forKey: .createdAt)?.text
    account.validSince = try container.decodeIfPresent(LenientText.self, forKey: .validSince)?.text
    account.providerUserInfo = try container.decodeIfPresent(
      [ProviderAccount].self,
      forKey: .providerUserInfo
    )
    account.mfaInfo = try container.decodeIfPresent([SecondFactor].self, forKey: .mfaInfo)
    account.tenantId = try container.decodeIfPresent(String.self, forKey: .tenantId)
    rawPassword = try container.decodeIfPresent(String.self, forKey: .rawPassword)
  }

  private enum Key: CodingKey {
    case localId, email, emailVerified, displayName, photoUrl, phoneNumber, disabled
    case customAttributes, passwordHash, salt, lastLoginAt, createdAt, validSince
    case providerUserInfo, mfaInfo, tenantId, rawPassword
  }
}

/// A number or a text, because Google's APIs accept 64-bit numbers in both forms.
struct LenientText: Decodable, Sendable {
  var text: String

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    // Each `try?` only tests for a type. The last attempt throws.
    if let number = try? container.decode(Int64.self) {
      text = "\(number)"
    } else if let number = try? container.decode(Double.self), number.isFinite,
      abs(number) < 0x1p62
    {
      text = "\(Int64(number))"
    } else {
      text = try container.decode(String.self)
    }
  }

  /// The number; nil for other text.
  var number: Int? { Int(text) }
}
