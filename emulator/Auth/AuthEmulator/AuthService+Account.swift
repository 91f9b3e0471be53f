import AuthAccounts
import DocumentModel
import HTTPMessages
import HTTPSupport
import JSONText

/// Reading, changing and deleting a user, by the user or an administrator.
extension AuthService {
  func lookUp(_ call: AuthCall) async throws -> Response {
    let users: [UserAccount]
    if call.isAdmin {
      users = try await find(try call.decoded())
    } else {
      let body = try call.body()
      users = [try await verify(body.idToken).user.redacted]
    }
    return try Self.json("GetAccountInfo", users: users)
  }

  private func find(_ criteria: LookupCriteria) async throws -> [UserAccount] {
    var identities = (criteria.email ?? []).compactMap { text in
      // Nobody has a malformed address.
      (try? AccountChecks.email(text)).map { AccountIdentity.email($0) }
    }
    identities += (criteria.phoneNumber ?? []).compactMap { text in
      // Nobody has a malformed number.
      (try? AccountChecks.phoneNumber(text)).map { .phoneNumber($0) }
    }
    identities += (criteria.federatedUserId ?? []).map { federated in
      switch federated.providerId {
      case ProviderAccount.password: .email(AccountChecks.composed(federated.rawId.lowercased()))
      case ProviderAccount.phone: .phoneNumber(federated.rawId)
      default:
        .provider(
          federated.providerId.lowercased(),
          rawID: AccountChecks.composed(federated.rawId)
        )
      }
    }
    return try await store.read { view in
      var found: [UserAccount] = []
      var known: Set<String> = []
      let users =
        try (criteria.localId ?? []).map { try view.user($0) }
        + identities.map { try view.user(with: $0) }
      for case let user? in users where known.insert(user.localId).inserted { found.append(user) }
      return found
    }
  }

  func delete(_ call: AuthCall) async throws -> Response {
    let body = try call.body()
    let localID: String
    if call.isAdmin, body.idToken == nil {
      localID = try require(body.localId, "MISSING_LOCAL_ID")
    } else {
      localID = try await verify(body.idToken).user.localId
    }
    try await store.change { change in
      let user = try require(try change.user(localID), "USER_NOT_FOUND")
      try change.delete(user, event: .deleted)
    }
    return .json(#"{"kind":"identitytoolkit#DeleteAccountResponse"}"#)
  }

  func update(_ call: AuthCall) async throws -> Response {
    let body = try call.body()
    try Self.refuseTenant(body)
    if let code = body.oobCode, !call.isAdmin || body.localId == nil {
      return try await apply(emailCode: code)
    }
    var session: TokenIssuer.Verified?
    let localID: String
    if !call.isAdmin || body.localId == nil, body.idToken != nil {
      let verified = try await verify(body.idToken)
      try require(body.customAttributes == nil, "INSUFFICIENT_PERMISSION")
      try require(body.disableUser == nil, "OPERATION_NOT_ALLOWED")
      (session, localID) = (verified, verified.user.localId)
    } else {
      try require(call.isAdmin, "INVALID_REQ_TYPE : Unsupported request parameters.")
      localID = try require(body.localId, "MISSING_LOCAL_ID")
    }
    let update = try await AccountUpdate(body, isAdmin: session == nil, service: self)
    let isAnonymous = session?.provider == "anonymous"
    // An administrator's changes, and those of a profile, are not asked about.
    let mayLink = session != nil && (update.hasPassword || update.email != nil)
    let attempt = SignInAttempt(call, provider: "password", method: mayLink ? "password" : nil)
    let stored = try await created(attempt, signsIn: false) { change in
      var user = try require(try change.user(localID), "USER_NOT_FOUND")
      try update.apply(to: &user, keepsInitialEmail: isAnonymous, &change)
      return (user, false)
    }
    var user = stored.user
    let before = stored.before ?? user
    let revokes = user.validSince != before.validSince || update.hasPassword
    var claims = JSONObjectText()
    if mayLink, before.isAnonymous || user.hasPassword && !before.hasPassword {
      (user, claims) = try await admitted(user, attempt)
    }
    if session != nil, !isAnonymous, user.email != before.email, let first = user.initialEmail,
      first != user.email
    {
      let code = makeEmailCode(
        "RECOVER_EMAIL",
        for: user.localId,
        email: first,
        newEmail: nil,
        call,
        nil
      )
      log(code)
    }
    var response = Self.response("SetAccountInfo", user)
    response.set("emailVerified", user.emailVerified ?? false)
    response.set("displayName", user.displayName)
    response.set("photoUrl", user.photoUrl)
    response.set("providerUserInfo", json: try (user.providerUserInfo ?? []).jsonBytes())
    if update.email != nil, user.email != before.email { response.set("newEmail", user.email) }
    if let session, revokes || body.returnSecureToken ?? false {
      let issued = try await tokens.issue(
        user,
        TokenIssuer.Session(
          provider: update.hasPassword ? "password" : session.provider,
          claims: claims,
          authTime: session.payload.number("auth_time") ?? store.time.seconds
        ),
        at: store.time.seconds
      )
      issued.add(to: &response)
    }
    return Self.json(response)
  }

  // MARK: - JSON

  static func json(_ kind: String, users: [UserAccount]) throws -> Response {
    var response = JSONObjectText()
    response.set("kind", "identitytoolkit#\(kind)Response")
    if !users.isEmpty { response.set("users", json: try users.jsonBytes()) }
    return json(response)
  }
}

/// The changes that a request makes to a user.
struct AccountUpdate: Sendable {
  /// The new address, in lower case.
  let email: String?
  private let body: AuthRequestBody
  private let isAdmin: Bool
  /// An account whose only members are those of the new password.
  private let password: UserAccount?
  private let linked: ProviderAccount?
  private let now: Int64

  /// Checks a request's members; the password is hashed here, which takes some milliseconds.
  init(_ body: AuthRequestBody, isAdmin: Bool, service: AuthService) async throws {
    self.body = body
    self.isAdmin = isAdmin
    now = service.store.time.seconds
    email = try body.email.map(AccountChecks.email)
    if let claims = body.customAttributes {
      try AccountChecks.customClaims(claims.isEmpty ? "{}" : claims)
    }
    if isAdmin, let number = body.phoneNumber, !number.isEmpty {
      _ = try AccountChecks.phoneNumber(number)
    }
    if let factors = body.mfa?.enrollments, !factors.isEmpty {
      throw AuthError.notEmulated("Second factors are")
    }
    try AccountChecks.time(body.validSince?.text, unitsPerSecond: 1)
    try AccountChecks.time(body.createdAt?.text, unitsPerSecond: 1000)
    try AccountChecks.time(body.lastLoginAt?.text, unitsPerSecond: 1000)
    try AccountChecks.profile(displayName: body.displayName, photoURL: body.photoUrl)
    for attribute in body.deleteAttribute ?? [] {
      try require(
        Self.attributes.contains(attribute),
        "INVALID_REQ_TYPE : Unsupported deleteAttribute \(attribute.prefix(100))."
      )
    }
    if let provider = body.linkProviderUserInfo {
      // A user must not take the account of another one at a provider.
      try require(isAdmin, "INSUFFICIENT_PERMISSION")
      try require(!provider.providerId.isEmpty, "MISSING_PROVIDER_ID")
      try require(!(provider.rawId ?? "").isEmpty, "MISSING_RAW_ID")
      linked = try AccountChecks.checked(provider)
    } else {
      linked = nil
    }
    if let text = body.password {
      var account = UserAccount(localId: "")
      try await service.setPassword(text, of: &account)
      password = account
    } else {
      password = nil
    }
  }

  /// True if the request sets a password.
  var hasPassword: Bool { password != nil }

  /// Applies the changes to a user.
  ///
  /// A new address is not verified, revokes earlier tokens, and makes the first address the one to
  /// recover, unless `keepsInitialEmail`. Throws `EMAIL_EXISTS` and the like.
  func apply(
    to user: inout UserAccount,
    keepsInitialEmail: Bool,
    _ change: inout AccountChange
  ) throws {
    if let email, email != user.email {
      try require(try change.user(with: .email(email)) == nil, "EMAIL_EXISTS")
      if !keepsInitialEmail, user.initialEmail == nil { user.initialEmail = user.email }
      user.email = email
      user.emailVerified = false
      user.validSince = "\(now)"
    }
    if let password {
      user.passwordHash = password.passwordHash
      user.salt = password.salt
      user.passwordUpdatedAt = password.passwordUpdatedAt
      user.validSince = "\(now)"
    }
    if let name = body.displayName { user.displayName = name }
    if let url = body.photoUrl { user.photoUrl = url }
    if isAdmin { try applyAdministration(to: &user) }
    for attribute in body.deleteAttribute ?? [] { Self.remove(attribute, from: &user) }
    for provider in body.deleteProvider ?? [] { Self.unlink(provider, from: &user) }
    if let provider = linked {
      var providers = (user.providerUserInfo ?? []).filter {
        $0.providerId != provider.providerId
      }
      providers.append(provider)
      user.providerUserInfo = providers
    }
  }

  private func applyAdministration(to user: inout UserAccount) throws {
    if let flag = body.disableUser { user.disabled = flag }
    if let flag = body.emailVerified { user.emailVerified = flag }
    if let number = body.phoneNumber {
      user.phoneNumber = number.isEmpty ? nil : try AccountChecks.phoneNumber(number)
    }
    if let claims = body.customAttributes {
      user.customAttributes = claims.isEmpty ? nil : claims
    }
    if let time = body.createdAt { user.createdAt = time.text }
    if let time = body.lastLoginAt { user.lastLoginAt = time.text }
    if let time = body.validSince { user.validSince = time.text }
  }

  private static let attributes: Set = ["DISPLAY_NAME", "PHOTO_URL", "PASSWORD", "EMAIL"]

  private static func remove(_ attribute: String, from user: inout UserAccount) {
    switch attribute {
    case "DISPLAY_NAME": user.displayName = nil
    case "PHOTO_URL": user.photoUrl = nil
    case "PASSWORD": (user.passwordHash, user.salt) = (nil, nil)
    default: removeEmail(from: &user)
    }
  }

  private static func unlink(_ provider: String, from user: inout UserAccount) {
    switch provider {
    case ProviderAccount.password:
      // The address stays, as in production; it may be that of another provider.
      (user.passwordHash, user.salt, user.emailLinkSignin) = (nil, nil, nil)
    case ProviderAccount.phone: user.phoneNumber = nil
    default: user.providerUserInfo?.removeAll { $0.providerId == provider }
    }
  }

  private static func removeEmail(from user: inout UserAccount) {
    user.email = nil
    user.emailVerified = nil
    user.emailLinkSignin = nil
  }
}
