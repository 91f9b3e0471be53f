import AuthAccounts
import DocumentModel
import HTTPMessages
import JSONText

/// Sign-in with an identity provider.
extension AuthService {
  func signInWithProvider(_ call: AuthCall) async throws -> Response {
    let body = try call.body()
    try Self.refuseTenant(body)
    let provider = try IdentityProviderResponse(body)
    let current = try await verifyIfPresent(body.idToken)
    do {
      return try await signIn(call, provider, current?.user)
    } catch let error as AuthError
      where (body.returnIdpCredential ?? false) && Self.conflicts.contains(error.statusMessage)
    {
      var response = provider.json
      response.set("errorMessage", error.statusMessage)
      return Self.json(response)
    }
  }

  /// The errors with which `returnIdpCredential` returns the credential, so that it can sign in.
  private static let conflicts: Set = ["FEDERATED_USER_ID_ALREADY_LINKED", "EMAIL_EXISTS"]

  private func signIn(
    _ call: AuthCall,
    _ provider: IdentityProviderResponse,
    _ current: UserAccount?
  ) async throws -> Response {
    var attempt = SignInAttempt(
      call,
      provider: provider.providerID,
      method: provider.providerID
    )
    attempt.rawUserInfo = provider.rawUserInfo
    let localID = newLocalID()
    let validSince = "\(store.time.seconds)"
    let signedIn: SignedIn
    do {
      signedIn = try await signIn(attempt) { change in
        var (user, isNew) = try Self.owner(
          of: provider,
          current: current,
          newID: localID,
          validSince: validSince,
          &change
        )
        try require(!user.isDisabled, "USER_DISABLED")
        try Self.refuseSecondFactor(user)
        var providers = (user.providerUserInfo ?? []).filter {
          $0.providerId != provider.providerID
        }
        providers.append(provider.providerAccount)
        user.providerUserInfo = providers
        return (user, isNew)
      }
    } catch let confirmation as NeedsConfirmationError {
      var response = provider.json
      response.set("localId", confirmation.localID)
      response.set("needConfirmation", true)
      response.set(
        "verifiedProvider",
        json: JSONObjectText.array(confirmation.providers.map { Array(jsonQuoted($0).utf8) })
      )
      return Self.json(response)
    }
    var response = provider.json
    response.set("localId", signedIn.user.localId)
    if signedIn.isNew { response.set("isNewUser", true) }
    if signedIn.user.email == provider.email {
      response.set("emailVerified", signedIn.user.emailVerified ?? false)
    }
    signedIn.tokens.add(to: &response)
    return Self.json(response)
  }

  /// The error for an address whose owner must sign in first, with a provider of before.
  private struct NeedsConfirmationError: Error {
    var localID: String
    var providers: [String]
  }

  /// Returns the user whom a provider's response signs in, with the changes that it brings.
  private static func owner(
    of provider: IdentityProviderResponse,
    current: UserAccount?,
    newID: String,
    validSince: String,
    _ change: inout AccountChange
  ) throws -> (user: UserAccount, isNew: Bool) {
    let identity = AccountIdentity.provider(provider.providerID, rawID: provider.rawID)
    let linked = try change.user(with: identity)
    let isUnique = try change.settings.hasOneAccountPerEmail
    let namesake = try isUnique ? provider.email.flatMap { try change.user(with: .email($0)) } : nil
    if let current {
      var user = try require(try change.user(current.localId), "USER_NOT_FOUND")
      // An account of the credential's own comes first: its owner can sign in with the credential.
      if let linked {
        try require(linked.localId == user.localId, "FEDERATED_USER_ID_ALREADY_LINKED")
      }
      if let namesake { try require(namesake.localId == user.localId, "EMAIL_EXISTS") }
      if isUnique, user.email == nil, let email = provider.email {
        user.email = email
        user.emailVerified = provider.isEmailVerified
      } else if provider.isEmailVerified, user.email != nil, user.email == provider.email {
        user.emailVerified = true
      }
      return (user, false)
    }
    if let linked { return (linked, false) }
    if let namesake {
      return (try joined(namesake, provider, validSince: validSince), false)
    }
    var user = UserAccount(localId: newID)
    if isUnique {
      user.email = provider.email
      user.emailVerified = provider.isEmailVerified
    }
    user.displayName = provider.displayName
    user.photoUrl = provider.photoURL
    return (user, true)
  }

  /// Returns the user with a provider's address, to whom the provider is added if it is trusted.
  ///
  /// An account whose address was never verified may have been made by somebody else. Its password,
  /// its telephone number and its providers are removed when the owner of the address appears.
  private static func joined(
    _ user: UserAccount,
    _ provider: IdentityProviderResponse,
    validSince: String
  ) throws -> UserAccount {
    try require(!user.isDisabled, "USER_DISABLED")
    guard provider.isEmailVerified else {
      let providers = (user.providerUserInfo ?? []).map(\.providerId)
      throw NeedsConfirmationError(localID: user.localId, providers: providers)
    }
    var user = user
    if user.emailVerified != true { user.removeSignInMethods(validSince: validSince) }
    user.emailVerified = true
    // The profile becomes the provider's, as in production.
    user.displayName = provider.displayName
    user.photoUrl = provider.photoURL
    return user
  }
}
