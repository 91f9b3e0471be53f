import AuthAccounts
import DocumentModel
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Identifiers
import JSONText
import Logging
import NIOCore
import StorageEngine

/// What is known of a sign-in before it succeeds.
struct SignInAttempt: Sendable {
  let id = RandomID.make(length: 20)
  /// The provider in the token, such as `password`.
  var provider: String
  /// The sign-in method that blocking functions receive, such as `emailLink`; nil calls none.
  var method: String?
  var claims = JSONObjectText()
  /// What the identity provider says about the user.
  var attributes: JSONObjectText?
  var rawUserInfo: String?
  /// True if functions get the event of a new user.
  var sendsEvent = true
  var userAgent = ""
  var locale = "und"

  init(_ call: AuthCall, provider: String, method: String?) {
    self.provider = provider
    self.method = method
    userAgent = call.request.headers[.userAgent] ?? ""
    locale = call.request.headers[Self.localeHeader] ?? "und"
  }

  private static let localeHeader = fieldName("x-firebase-locale")
}

/// A user who has signed in.
struct SignedIn: Sendable {
  var user: UserAccount
  var isNew: Bool
  var tokens: TokenIssuer.Tokens
}

extension AuthService {
  /// Finds or makes the user who signs in; true if the user is new.
  typealias Preparation =
    @Sendable (inout AccountChange) throws -> (user: UserAccount, isNew: Bool)

  /// Signs in the user that `prepare` finds or makes, and returns the tokens.
  ///
  /// `prepare` may run several times, and returns a user whose changes are not stored yet.
  ///
  /// If functions are deployed for the events, they are asked before the user is created and before
  /// the user signs in. An anonymous user who gets an identity counts as created, and each link of
  /// a sign-in method as a sign-in, as in production. A function that refuses the creation leaves
  /// everything as it was. The event of the creation and the user are in one commit.
  func signIn(
    _ attempt: SignInAttempt,
    _ prepare: @escaping Preparation
  ) async throws -> SignedIn {
    // Tokens are as old as the check of the credentials, so that a revocation after it ends them.
    let issued = store.time.seconds
    let found = try await created(attempt, signsIn: !asksBeforeSignIn(attempt), prepare)
    let (user, claims) = try await admitted(found.user, attempt)
    let session = TokenIssuer.Session(
      provider: attempt.provider,
      claims: claims,
      attributes: attempt.attributes,
      authTime: issued
    )
    return SignedIn(
      user: user,
      isNew: found.isNew,
      tokens: try await tokens.issue(user, session, at: issued)
    )
  }

  /// The user whom a change has stored.
  struct Stored: Sendable {
    /// The user before the change; nil for a new one.
    var before: UserAccount?
    var user: UserAccount
    var isNew: Bool
  }

  /// Stores the user that `prepare` returns, after asking the function that decides on new users.
  ///
  /// If `signsIn` is true, this is the user's sign-in.
  func created(
    _ attempt: SignInAttempt,
    signsIn: Bool,
    _ prepare: @escaping Preparation
  ) async throws -> Stored {
    let asks = attempt.method != nil && blockingFunctions.isDeployed(.beforeCreate)
    while true {
      var creation: BlockingDecision?
      var isAsked = false
      if asks {
        let candidate = try await store.preview { change in
          let (user, isNew) = try prepare(&change)
          return (user: user, isCreation: try isNew || Self.getsIdentity(user, &change))
        }
        if candidate.isCreation {
          isAsked = true
          creation = try await ask(.beforeCreate, about: candidate.user, attempt)
        }
      }
      let (now, refreshed) = (milliseconds, "\(store.time)")
      let (decision, mayCreate) = (creation, isAsked || !asks)
      do {
        return try await store.change { change in
          var (user, isNew) = try prepare(&change)
          let before = try change.user(user.localId)
          if try isNew || Self.getsIdentity(user, &change) {
            guard mayCreate else { throw CreationNotAskedError() }
            decision?.apply(to: &user)
          }
          if isNew { user.createdAt = now }
          if signsIn, !user.isDisabled {
            user.lastLoginAt = now
            user.lastRefreshAt = refreshed
          }
          try change.put(user, event: isNew && attempt.sendsEvent ? .created : nil)
          let stored = try change.user(user.localId) ?? user
          return Stored(before: before, user: stored, isNew: isNew)
        }
      } catch is CreationNotAskedError {
        // The user who would have signed in was deleted in between, or lost all identities.
        try Task.checkCancellation()
      }
    }
  }

  private struct CreationNotAskedError: Error {}

  /// True if the change gives an anonymous user what identifies a permanent one.
  private static func getsIdentity(
    _ user: UserAccount,
    _ change: inout AccountChange
  ) throws -> Bool {
    try change.user(user.localId)?.isAnonymous == true && !user.isAnonymous
  }

  private func asksBeforeSignIn(_ attempt: SignInAttempt) -> Bool {
    attempt.method != nil && blockingFunctions.isDeployed(.beforeSignIn)
  }

  /// Asks the function that decides on sign-ins, if there is one; returns the session's claims.
  ///
  /// Throws `USER_DISABLED` for a user whom a function has disabled: the account exists all the
  /// same, as in production.
  func admitted(
    _ user: UserAccount,
    _ attempt: SignInAttempt
  ) async throws -> (user: UserAccount, claims: JSONObjectText) {
    try require(!user.isDisabled, "USER_DISABLED")
    var claims = attempt.claims
    guard asksBeforeSignIn(attempt) else { return (user, claims) }
    let decision = try await ask(.beforeSignIn, about: user, attempt)
    if let decision { claims.merge(decision.sessionClaims) }
    return (try await admitted(user, decision), claims)
  }

  /// Applies the decision on a sign-in to the user, as long as the credentials are still valid.
  private func admitted(
    _ checked: UserAccount,
    _ decision: BlockingDecision?
  ) async throws -> UserAccount {
    let (now, refreshed) = (milliseconds, "\(store.time)")
    let user = try await store.change { change in
      var user = try require(try change.user(checked.localId), "USER_NOT_FOUND")
      // The function may have taken seconds.
      try require(
        user.passwordHash == checked.passwordHash && user.email == checked.email
          && user.validSince == checked.validSince,
        "TOKEN_EXPIRED"
      )
      decision?.apply(to: &user)
      if !user.isDisabled {
        user.lastLoginAt = now
        user.lastRefreshAt = refreshed
      }
      try change.put(user)
      return user
    }
    try require(!user.isDisabled, "USER_DISABLED")
    return user
  }

  /// The suite's time in milliseconds, as text.
  var milliseconds: String { "\(store.time.microseconds / 1000)" }

  // MARK: - Methods

  func signInWithPassword(_ call: AuthCall) async throws -> Response {
    let body = try call.body()
    try Self.refuseTenant(body)
    let email = try AccountChecks.email(try require(body.email, "MISSING_EMAIL"))
    let password = try require(body.password.flatMap { $0.isEmpty ? nil : $0 }, "MISSING_PASSWORD")
    let (hides, stored) = try await store.read { view in
      (try view.settings().hidesAccounts, try view.user(with: .email(email)))
    }
    guard let stored else {
      // An unknown address must take as long as a wrong password if it is not to be recognized.
      if hides { _ = try await hasher.hash(password) }
      throw AuthError(hides ? "INVALID_LOGIN_CREDENTIALS" : "EMAIL_NOT_FOUND")
    }
    let refusal = hides ? "INVALID_LOGIN_CREDENTIALS" : "INVALID_PASSWORD"
    if !hides { try require(!stored.isDisabled, "USER_DISABLED") }
    try require(try await hasher.matches(password, stored), refusal)
    try require(!stored.isDisabled, "USER_DISABLED")
    try Self.refuseSecondFactor(stored)
    let attempt = SignInAttempt(call, provider: "password", method: "password")
    let signedIn = try await signIn(attempt) { change in
      // The password may have been changed since it was compared.
      guard let user = try change.user(stored.localId), user.passwordHash == stored.passwordHash,
        user.email == email
      else { throw AuthError(refusal) }
      try require(!user.isDisabled, "USER_DISABLED")
      return (user, false)
    }
    var response = Self.response("VerifyPassword", signedIn.user)
    response.set("registered", true)
    response.set("displayName", signedIn.user.displayName ?? "")
    signedIn.tokens.add(to: &response)
    return Self.json(response)
  }

  func signInWithCustomToken(_ call: AuthCall) async throws -> Response {
    let body = try call.body()
    try Self.refuseTenant(body)
    let text = try require(body.token.flatMap { $0.isEmpty ? nil : $0 }, "MISSING_CUSTOM_TOKEN")
    let token = try CustomToken(text)
    var attempt = SignInAttempt(call, provider: "custom", method: nil)
    attempt.claims = token.claims
    // As in production: functions get no event of users that custom tokens create.
    attempt.sendsEvent = false
    let signedIn = try await signIn(attempt) { change in
      let stored = try change.user(token.uid)
      var user = stored ?? UserAccount(localId: token.uid)
      try require(!user.isDisabled, "USER_DISABLED")
      user.customAuth = true
      return (user, stored == nil)
    }
    var response = JSONObjectText()
    response.set("kind", "identitytoolkit#VerifyCustomTokenResponse")
    response.set("isNewUser", signedIn.isNew)
    signedIn.tokens.add(to: &response)
    return Self.json(response)
  }

  func signInWithEmailLink(_ call: AuthCall) async throws -> Response {
    let body = try call.body()
    try Self.refuseTenant(body)
    let current = try await verifyIfPresent(body.idToken)
    let email = try AccountChecks.email(try require(body.email, "MISSING_EMAIL"))
    let code = try require(body.oobCode, "MISSING_OOB_CODE")
    guard let stored = codes.emailCode(code), stored.requestType == "EMAIL_SIGNIN" else {
      throw AuthError("INVALID_OOB_CODE")
    }
    try require(
      stored.email == email,
      "INVALID_EMAIL : The email provided does not match the sign-in email address."
    )
    let localID = newLocalID()
    let validSince = "\(store.time.seconds)"
    let attempt = SignInAttempt(call, provider: "password", method: "emailLink")
    let signedIn = try await codes.using(emailCode: stored) {
      try await signIn(attempt) { change in
        let owner = try change.user(with: .email(email))
        let found = try current.map { try change.user($0.user.localId) } ?? owner
        if current != nil, let owner {
          try require(owner.localId == found?.localId, "EMAIL_EXISTS")
        }
        var user = found ?? UserAccount(localId: localID)
        try require(!user.isDisabled, "USER_DISABLED")
        try Self.refuseSecondFactor(user)
        if current == nil, user.emailVerified != true {
          user.removeSignInMethods(validSince: validSince)
        }
        user.email = email
        user.emailVerified = true
        user.emailLinkSignin = true
        return (user, found == nil)
      }
    }
    var response = Self.response("EmailLinkSignin", signedIn.user)
    response.set("isNewUser", signedIn.isNew)
    signedIn.tokens.add(to: &response)
    return Self.json(response)
  }

  func sendVerificationCode(_ call: AuthCall) async throws -> Response {
    let body = try call.body()
    try Self.refuseTenant(body)
    let number = try AccountChecks.phoneNumber(body.phoneNumber)
    let code = codes.addPhoneCode(for: number)
    // As Firebase's emulator says it, in a sentence that people read in the terminal.
    logger.notice("To verify the telephone number \(number), use the code \(code.code)")
    var response = JSONObjectText()
    response.set("sessionInfo", code.session)
    return Self.json(response)
  }

  func signInWithPhoneNumber(_ call: AuthCall) async throws -> Response {
    let body = try call.body()
    try Self.refuseTenant(body)
    let number = try verifiedNumber(body)
    let current = try await verifyIfPresent(body.idToken)
    if let current, body.temporaryProof == nil,
      let owner = try await store.read({ try $0.user(with: .phoneNumber(number)) }),
      owner.localId != current.user.localId
    {
      var response = JSONObjectText()
      response.set("phoneNumber", number)
      response.set("temporaryProof", codes.addProof(of: number))
      response.set("temporaryProofExpiresIn", "3600")
      return Self.json(response)
    }
    let localID = newLocalID()
    let attempt = SignInAttempt(call, provider: "phone", method: "phone")
    let signedIn = try await signIn(attempt) { change in
      let owner = try change.user(with: .phoneNumber(number))
      let found = try current.map { try change.user($0.user.localId) } ?? owner
      if current != nil, let owner {
        try require(owner.localId == found?.localId, "PHONE_NUMBER_EXISTS")
      }
      var user = found ?? UserAccount(localId: localID)
      try require(!user.isDisabled, "USER_DISABLED")
      try Self.refuseSecondFactor(user)
      user.phoneNumber = number
      return (user, found == nil)
    }
    var response = JSONObjectText()
    response.set("isNewUser", signedIn.isNew)
    response.set("phoneNumber", number)
    response.set("localId", signedIn.user.localId)
    signedIn.tokens.add(to: &response)
    return Self.json(response)
  }

  /// Returns the number whose code, or proof, a request contains; each can be used once.
  private func verifiedNumber(_ body: AuthRequestBody) throws(AuthError) -> String {
    if let proof = body.temporaryProof {
      let number = try require(body.phoneNumber, "MISSING_PHONE_NUMBER")
      try require(codes.use(proof: proof, of: number), "INVALID_TEMPORARY_PROOF")
      return number
    }
    let session = try require(body.sessionInfo, "MISSING_SESSION_INFO")
    let code = try require(body.code, "MISSING_CODE")
    let stored = try require(codes.phoneCode(session: session), "INVALID_SESSION_INFO")
    try require(stored.code == code, "INVALID_CODE")
    try require(codes.use(phoneSession: session), "INVALID_SESSION_INFO")
    return stored.phoneNumber
  }

  func refresh(_ call: AuthCall) async throws -> Response {
    let fields = try RefreshRequest(call)
    let type = try require(fields.grantType, "MISSING_GRANT_TYPE")
    try require(type == "refresh_token", "INVALID_GRANT_TYPE")
    let token = try require(fields.refreshToken, "MISSING_REFRESH_TOKEN")
    let (stored, session) = try await tokens.redeem(token)
    let refreshed = "\(store.time)"
    let now = store.time.seconds
    let user = try await store.change(durability: .relaxed) { change in
      var user = try require(try change.user(stored.localId), "USER_NOT_FOUND")
      try require(user.validSince == stored.validSince, "TOKEN_EXPIRED")
      try require(!user.isDisabled, "USER_DISABLED")
      user.lastRefreshAt = refreshed
      try change.put(user)
      return user
    }
    let issued = try await tokens.issue(user, session, at: now)
    var response = JSONObjectText()
    response.set("id_token", issued.idToken)
    response.set("access_token", issued.idToken)
    response.set("expires_in", "\(TokenIssuer.lifetimeSeconds)")
    response.set("refresh_token", issued.refreshToken)
    response.set("token_type", "Bearer")
    response.set("user_id", user.localId)
    response.set("project_id", Self.projectNumber)
    return Self.json(response)
  }
}
