import AuthAccounts
import DocumentModel
import HTTPMessages
import HTTPSupport
import Identifiers
import JSONText
import NIOCore

extension AuthService {
  /// Creates a user for an app or an administrator, or adds a password to the current user.
  func signUp(_ call: AuthCall) async throws -> Response {
    let body = try call.body()
    try Self.refuseTenant(body)
    return call.isAdmin ? try await create(body) : try await register(call, body)
  }

  private func create(_ body: AuthRequestBody) async throws -> Response {
    try require(body.idToken == nil || body.localId == nil, "UNEXPECTED_PARAMETER : User ID")
    if let factors = body.mfaInfo, !factors.isEmpty {
      throw AuthError.notEmulated("Second factors are")
    }
    let localID = body.localId ?? newLocalID()
    try AccountChecks.localID(localID)
    try AccountChecks.profile(displayName: body.displayName, photoURL: body.photoUrl)
    var user = UserAccount(localId: localID)
    user.email = try body.email.map(AccountChecks.email)
    if let number = body.phoneNumber { user.phoneNumber = try AccountChecks.phoneNumber(number) }
    user.displayName = body.displayName
    user.photoUrl = body.photoUrl
    user.emailVerified = body.emailVerified ?? false
    user.disabled = body.disabled ?? false
    if let claims = body.customAttributes, !claims.isEmpty {
      try AccountChecks.customClaims(claims)
      user.customAttributes = claims
    }
    if let password = body.password { try await setPassword(password, of: &user) }
    user.createdAt = milliseconds
    user.lastLoginAt = nil
    let made = user
    let stored = try await store.change { change in
      try require(try change.user(localID) == nil, "DUPLICATE_LOCAL_ID")
      try change.put(made, event: .created)
      return made
    }
    var response = Self.response("SignupNewUser", stored)
    response.set("displayName", stored.displayName)
    return Self.json(response)
  }

  private func register(_ call: AuthCall, _ body: AuthRequestBody) async throws -> Response {
    try require(body.localId == nil, "UNEXPECTED_PARAMETER : User ID")
    let isAnonymous = body.idToken == nil && body.password == nil && body.email == nil
    let current = try await verifyIfPresent(body.idToken)
    let localID = newLocalID()
    var profile = UserAccount(localId: localID)
    if !isAnonymous {
      // An address in the wrong form is reported before a password that is missing.
      let email = try require(body.email.flatMap { $0.isEmpty ? nil : $0 }, "MISSING_EMAIL")
      profile.email = try AccountChecks.email(email)
      let password = body.password.flatMap { $0.isEmpty ? nil : $0 }
      try await setPassword(try require(password, "MISSING_PASSWORD"), of: &profile)
      profile.emailVerified = false
    }
    try AccountChecks.profile(displayName: body.displayName, photoURL: nil)
    profile.displayName = body.displayName
    let attempt = SignInAttempt(
      call,
      provider: isAnonymous ? "anonymous" : "password",
      method: isAnonymous ? nil : "password"
    )
    let made = profile
    let signedIn = try await signIn(attempt) { change in
      guard let current else {
        if let email = made.email {
          try require(try change.user(with: .email(email)) == nil, "EMAIL_EXISTS")
        }
        return (made, true)
      }
      var user = try require(try change.user(current.user.localId), "USER_NOT_FOUND")
      if let owner = try made.email.flatMap({ try change.user(with: .email($0)) }) {
        try require(owner.localId == user.localId, "EMAIL_EXISTS")
      }
      user.email = made.email
      user.emailVerified = false
      user.displayName = made.displayName ?? user.displayName
      user.passwordHash = made.passwordHash
      user.salt = made.salt
      user.passwordUpdatedAt = made.passwordUpdatedAt
      user.validSince = made.validSince
      return (user, false)
    }
    var response = Self.response("SignupNewUser", signedIn.user)
    response.set("displayName", signedIn.user.displayName)
    signedIn.tokens.add(to: &response)
    return Self.json(response)
  }

  /// Sets the password of a user, and revokes the tokens that were issued before.
  func setPassword(_ password: String, of user: inout UserAccount) async throws {
    try require(
      password.utf16.count >= Self.passwordLengthMin,
      "WEAK_PASSWORD : Password should be at least 6 characters"
    )
    try require(
      password.utf8.count <= Self.passwordBytesMax,
      "PASSWORD_DOES_NOT_MEET_REQUIREMENTS : Missing password requirements: "
        + "[Password may contain at most 4096 characters]"
    )
    let hashed = try await hasher.hash(password)
    user.passwordHash = hashed.hash
    user.salt = hashed.salt
    user.passwordUpdatedAt = Double(store.time.microseconds / 1000)
    user.validSince = "\(store.time.seconds)"
  }

  /// Returns an id for a new user, in the form of Firebase's.
  func newLocalID() -> String { RandomID.make(length: 28) }

  private static let passwordLengthMin = 6
  private static let passwordBytesMax = 4096
}

// MARK: - Checks

extension AuthService {
  static func refuseTenant(_ body: AuthRequestBody) throws(AuthError) {
    if let tenant = body.tenantId, !tenant.isEmpty { throw AuthError.notEmulated("Tenants are") }
  }

  /// Throws for a user with a second factor, which the sign-in would have to ask for.
  static func refuseSecondFactor(_ user: UserAccount) throws(AuthError) {
    if let factors = user.mfaInfo, !factors.isEmpty {
      throw AuthError.notEmulated("Sign-in with second factors is")
    }
  }
}

// MARK: - Responses

extension AuthService {
  /// Returns the first members of the response of a method.
  static func response(_ kind: String, _ user: UserAccount) -> JSONObjectText {
    var response = JSONObjectText()
    response.set("kind", "identitytoolkit#\(kind)Response")
    response.set("localId", user.localId)
    response.set("email", user.email)
    return response
  }

  static func json(_ object: JSONObjectText) -> Response {
    .json(.init(bytes: object.bytes))
  }

  /// Returns the user of an ID token; nil without a token.
  func verifyIfPresent(_ idToken: String?) async throws -> TokenIssuer.Verified? {
    guard let idToken else { return nil }
    return try await verify(idToken)
  }

  /// Returns the user of an ID token; throws `MISSING_ID_TOKEN` without a token.
  func verify(_ idToken: String?) async throws -> TokenIssuer.Verified {
    let idToken = try require(idToken.flatMap { $0.isEmpty ? nil : $0 }, "MISSING_ID_TOKEN")
    return try await store.read { view in try tokens.verify(idToken) { try view.user($0) } }
  }
}
