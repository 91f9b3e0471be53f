/// A user in the form of Firebase's API and of its `accounts.json`.
///
/// Times are in milliseconds since 1970 as decimal text, except where said otherwise.
package struct UserAccount: Codable, Sendable, Hashable {
  /// The user's id, `uid` in tokens.
  package var localId: String
  /// The address in lower case; unique in a project.
  package var email: String?
  package var emailVerified: Bool?
  /// The first address of the account, to which a change of address can be reverted.
  package var initialEmail: String?
  /// True if the user may sign in with a link sent by e-mail.
  package var emailLinkSignin: Bool?
  package var displayName: String?
  package var photoUrl: String?
  /// The number in E.164 form; unique in a project.
  package var phoneNumber: String?
  package var disabled: Bool?
  /// The custom claims as the JSON text that the administrator sent.
  package var customAttributes: String?
  /// True if the account was created by a custom token.
  package var customAuth: Bool?
  package var providerUserInfo: [ProviderAccount]?
  package var passwordHash: String?
  package var salt: String?
  /// The time of the last change of the password, as a number.
  package var passwordUpdatedAt: Double?
  /// The time in seconds since 1970 before which no issued token is valid.
  package var validSince: String?
  package var createdAt: String?
  package var lastLoginAt: String?
  /// The time of the last issued ID token, in RFC 3339.
  package var lastRefreshAt: String?
  /// The second factors, which are kept but not used.
  package var mfaInfo: [SecondFactor]?
  package var tenantId: String?

  /// Creates an account with an id only.
  package init(localId: String) {
    self.localId = localId
  }

  /// True if the account has been disabled by an administrator.
  package var isDisabled: Bool { disabled ?? false }

  /// True if the user can sign in with a password.
  package var hasPassword: Bool { passwordHash != nil }

  /// True if nothing but the id identifies the user, as after an anonymous sign-in.
  package var isAnonymous: Bool {
    email == nil && phoneNumber == nil && (providerUserInfo ?? []).isEmpty && customAuth != true
  }

  /// The custom claims of the account; an empty object if there are none.
  package var customClaims: String { customAttributes.flatMap { $0.isEmpty ? nil : $0 } ?? "{}" }

  /// A copy without the hash of the password, for the user.
  package var redacted: UserAccount {
    var account = self
    account.passwordHash = nil
    account.salt = nil
    return account
  }

  /// Removes the password, the telephone number and the providers, and revokes all tokens.
  ///
  /// For an account whose address nobody has verified when the owner of the address appears:
  /// somebody else may have made it.
  package mutating func removeSignInMethods(validSince: String) {
    passwordHash = nil
    salt = nil
    emailLinkSignin = nil
    phoneNumber = nil
    providerUserInfo = nil
    self.validSince = validSince
  }

  /// Derives the entries of `providerUserInfo` for password and phone from the other members.
  ///
  /// Entries of identity providers are left as they are.
  mutating func updateOwnProviders() {
    var providers = (providerUserInfo ?? []).filter {
      $0.providerId != ProviderAccount.password && $0.providerId != ProviderAccount.phone
    }
    if let email, passwordHash != nil || emailLinkSignin == true {
      var provider = ProviderAccount(providerId: ProviderAccount.password, rawId: email)
      provider.email = email
      provider.federatedId = email
      provider.displayName = displayName
      provider.photoUrl = photoUrl
      providers.append(provider)
    }
    if let phoneNumber {
      var provider = ProviderAccount(providerId: ProviderAccount.phone, rawId: phoneNumber)
      provider.phoneNumber = phoneNumber
      providers.append(provider)
    }
    providerUserInfo = providers.isEmpty ? nil : providers
  }
}

/// The user's account at one identity provider.
package struct ProviderAccount: Codable, Sendable, Hashable {
  package var providerId: String
  package var rawId: String?
  package var federatedId: String?
  package var email: String?
  package var displayName: String?
  package var photoUrl: String?
  package var phoneNumber: String?
  package var screenName: String?

  package init(providerId: String, rawId: String) {
    self.providerId = providerId
    self.rawId = rawId
  }

  /// The provider's id for e-mail with a password or a link.
  package static let password = "password"
  /// The provider's id for telephone numbers.
  package static let phone = "phone"
}

/// A second factor of a user, as clients and exports show it.
package struct SecondFactor: Codable, Sendable, Hashable {
  package var mfaEnrollmentId: String?
  package var displayName: String?
  package var phoneInfo: String?
  package var enrolledAt: String?
  package var unobfuscatedPhoneInfo: String?
}
