import AuthAccounts
import DocumentModel
import Foundation
import HTTPMessages
import JSONText
import Logging

/// The codes that production sends by e-mail.
extension AuthService {
  func sendEmailCode(_ call: AuthCall) async throws -> Response {
    let body = try call.body()
    try Self.refuseTenant(body)
    guard let type = body.requestType, !type.isEmpty, type != "OOB_REQ_TYPE_UNSPECIFIED" else {
      throw AuthError("MISSING_REQ_TYPE")
    }
    let returnsLink = body.returnOobLink ?? false
    try require(!returnsLink || call.isAdmin, "INSUFFICIENT_PERMISSION")
    if let url = body.continueUrl.flatMap({ $0.isEmpty ? nil : $0 }) {
      let parsed = URL(string: url)
      try require(url.utf8.count <= Self.urlBytesMax, "INVALID_CONTINUE_URI : ((too long))")
      try require(
        parsed?.scheme != nil && parsed?.host?.isEmpty == false,
        "INVALID_CONTINUE_URI : ((expected an absolute URI with valid scheme and host))"
      )
    }
    var response = JSONObjectText()
    response.set("kind", "identitytoolkit#GetOobConfirmationCodeResponse")
    guard let recipient = try await recipient(type, body, returnsLink: returnsLink) else {
      // The response must not show that there is no such user.
      response.set("email", body.email?.lowercased())
      return Self.json(response)
    }
    let code = makeEmailCode(
      type,
      for: recipient.localID,
      email: recipient.email,
      newEmail: recipient.newEmail,
      call,
      body.continueUrl
    )
    response.set("email", recipient.email)
    if returnsLink {
      response.set("oobCode", code.code)
      response.set("oobLink", code.link)
    } else {
      log(code)
    }
    return Self.json(response)
  }

  /// The address to which a code is sent, and the user whom it is for.
  private struct Recipient {
    var email: String
    var newEmail: String?
    var localID: String?
  }

  /// Returns the recipient of a code; nil for an unknown user who must stay unknown.
  private func recipient(
    _ type: String,
    _ body: AuthRequestBody,
    returnsLink: Bool
  ) async throws -> Recipient? {
    func address() throws(AuthError) -> String {
      try AccountChecks.email(try require(body.email, "MISSING_EMAIL"))
    }
    func user(with email: String) async throws -> UserAccount? {
      try await store.read { try $0.user(with: .email(email)) }
    }
    switch type {
    case "EMAIL_SIGNIN": return Recipient(email: try address())
    case "PASSWORD_RESET":
      let email = try address()
      guard let owner = try await user(with: email) else {
        let hides = try await store.read { try $0.settings() }.hidesAccounts
        try require(hides, "EMAIL_NOT_FOUND")
        return nil
      }
      return Recipient(email: email, localID: owner.localId)
    case "VERIFY_EMAIL":
      let owner = try await owner(body, returnsLink: returnsLink, user(with:))
      return Recipient(email: try require(owner.email, "MISSING_EMAIL"), localID: owner.localId)
    case "VERIFY_AND_CHANGE_EMAIL":
      let newEmail = try AccountChecks.email(try require(body.newEmail, "MISSING_NEW_EMAIL"))
      let owner = try await owner(body, returnsLink: returnsLink, user(with:))
      let email = try require(owner.email, "MISSING_EMAIL")
      try require(try await user(with: newEmail) == nil, "EMAIL_EXISTS")
      return Recipient(email: email, newEmail: newEmail, localID: owner.localId)
    default:
      throw AuthError("INVALID_REQ_TYPE : \(type.prefix(100)) is not a type of code.")
    }
  }

  /// Returns the user whom a token or an administrator names.
  private func owner(
    _ body: AuthRequestBody,
    returnsLink: Bool,
    _ find: (String) async throws -> UserAccount?
  ) async throws -> UserAccount {
    if returnsLink, body.idToken == nil {
      let email = try AccountChecks.email(try require(body.email, "MISSING_EMAIL"))
      return try require(try await find(email), "USER_NOT_FOUND")
    }
    return try await verify(body.idToken).user
  }

  /// Makes a code whose link leads to this emulator's action page.
  func makeEmailCode(
    _ type: String,
    for localID: String?,
    email: String,
    newEmail: String?,
    _ call: AuthCall,
    _ continueURL: String?
  ) -> OneTimeCodes.EmailCode {
    codes.add(type, for: localID, email: email, newEmail: newEmail) { code in
      var items = [
        URLQueryItem(name: "mode", value: Self.modes[type] ?? "action"),
        URLQueryItem(name: "lang", value: "en"),
        URLQueryItem(name: "oobCode", value: code),
        URLQueryItem(name: "apiKey", value: "fake-api-key"),
      ]
      if let continueURL, !continueURL.isEmpty {
        items.append(URLQueryItem(name: "continueUrl", value: continueURL))
      }
      var link = URLComponents()
      link.queryItems = items
      // A plus sign would be read as a space.
      let query = (link.percentEncodedQuery ?? "").replacing("+", with: "%2B")
      return "\(call.origin)/emulator/action?\(query)"
    }
  }

  func log(_ code: OneTimeCodes.EmailCode) {
    let purpose =
      switch code.requestType {
      case "PASSWORD_RESET": "reset the password for"
      case "VERIFY_EMAIL": "verify the email address"
      case "EMAIL_SIGNIN": "sign in as"
      case "VERIFY_AND_CHANGE_EMAIL": "verify and change the email address from"
      default: "recover your email address at"
      }
    // As Firebase's emulator says it, in a sentence that people read in the terminal.
    logger.notice("To \(purpose) \(code.email), follow this link: \(code.link)")
  }

  /// Returns the mode of the action page that uses a code.
  static func mode(of code: OneTimeCodes.EmailCode) -> String? { modes[code.requestType] }

  private static let urlBytesMax = 2048
  private static let modes = [
    "EMAIL_SIGNIN": "signIn", "PASSWORD_RESET": "resetPassword", "VERIFY_EMAIL": "verifyEmail",
    "RECOVER_EMAIL": "recoverEmail", "VERIFY_AND_CHANGE_EMAIL": "verifyAndChangeEmail",
  ]

  // MARK: - Using codes

  func resetPassword(_ call: AuthCall) async throws -> Response {
    let body = try call.body()
    try Self.refuseTenant(body)
    let code = try require(body.oobCode, "MISSING_OOB_CODE")
    let stored = try require(codes.emailCode(code), "INVALID_OOB_CODE")
    if let password = body.newPassword {
      try await reset(stored, password: password)
    }
    var response = JSONObjectText()
    response.set("kind", "identitytoolkit#ResetPasswordResponse")
    response.set("requestType", stored.requestType)
    if stored.requestType != "EMAIL_SIGNIN" { response.set("email", stored.email) }
    response.set("newEmail", stored.newEmail)
    return Self.json(response)
  }

  /// Sets a new password, and removes all else that signs in, which another person may have added.
  func reset(_ code: OneTimeCodes.EmailCode, password: String) async throws {
    try require(code.requestType == "PASSWORD_RESET", "INVALID_OOB_CODE")
    var hashed = UserAccount(localId: "")
    try await setPassword(password, of: &hashed)
    let new = hashed
    try await codes.using(emailCode: code) {
      try await store.change { change in
        var user = try Self.owner(of: code, &change)
        user.passwordHash = new.passwordHash
        user.salt = new.salt
        user.passwordUpdatedAt = new.passwordUpdatedAt
        user.validSince = new.validSince
        user.emailVerified = true
        user.providerUserInfo = nil
        user.phoneNumber = nil
        try change.put(user)
      }
    }
  }

  /// Returns the user whom a code was made for, who must still have its address.
  private static func owner(
    of code: OneTimeCodes.EmailCode,
    _ change: inout AccountChange
  ) throws -> UserAccount {
    guard let localID = code.localID, let user = try change.user(localID),
      user.email == code.email
    else { throw AuthError("INVALID_OOB_CODE") }
    return user
  }

  /// Verifies, changes or recovers an address with a code.
  func apply(emailCode code: String) async throws -> Response {
    let stored = try require(codes.emailCode(code), "INVALID_OOB_CODE")
    let validSince = "\(store.time.seconds)"
    try require(
      ["VERIFY_EMAIL", "VERIFY_AND_CHANGE_EMAIL", "RECOVER_EMAIL"].contains(stored.requestType),
      "INVALID_OOB_CODE"
    )
    let user = try await codes.using(emailCode: stored) {
      try await store.change { change in
        var user: UserAccount
        if stored.requestType == "RECOVER_EMAIL" {
          user = try require(try change.user(stored.localID ?? ""), "INVALID_OOB_CODE")
          try require(user.initialEmail == stored.email, "INVALID_OOB_CODE")
          try require(try change.user(with: .email(stored.email)) == nil, "EMAIL_EXISTS")
          user.email = stored.email
          user.validSince = validSince
        } else {
          user = try Self.owner(of: stored, &change)
          if stored.requestType == "VERIFY_AND_CHANGE_EMAIL" {
            let email = try require(stored.newEmail, "INVALID_OOB_CODE")
            try require(try change.user(with: .email(email)) == nil, "EMAIL_EXISTS")
            user.email = email
            user.validSince = validSince
          }
        }
        user.emailVerified = true
        try change.put(user)
        return try change.user(user.localId) ?? user
      }
    }
    var response = Self.response("SetAccountInfo", user)
    response.set("emailVerified", true)
    response.set("providerUserInfo", json: try (user.providerUserInfo ?? []).jsonBytes())
    return Self.json(response)
  }

  // MARK: - Sign-in methods of an address

  func createAuthURI(_ call: AuthCall) async throws -> Response {
    let body = try call.body()
    try Self.refuseTenant(body)
    _ = try require(body.continueUri.flatMap { $0.isEmpty ? nil : $0 }, "MISSING_CONTINUE_URI")
    try require(URL(string: body.continueUri ?? "")?.scheme != nil, "INVALID_CONTINUE_URI")
    if let provider = body.providerId, !provider.isEmpty {
      throw AuthError.notEmulated("The sign-in page of \(provider.prefix(100)) is")
    }
    let identifier = try require(body.identifier, "MISSING_IDENTIFIER")
    // Firebase has a code of its own here for every malformed address.
    guard let email = try? AccountChecks.email(identifier) else {
      throw AuthError("INVALID_IDENTIFIER")
    }
    let (hides, users) = try await store.read { view in
      (try view.settings().hidesAccounts, try view.users(withEmailAnywhere: email))
    }
    var response = JSONObjectText()
    response.set("kind", "identitytoolkit#CreateAuthUriResponse")
    response.set("sessionId", body.sessionId ?? newLocalID())
    guard !hides else { return Self.json(response) }
    response.set("registered", !users.isEmpty)
    var methods: [String] = []
    var providers: [String] = []
    for user in users {
      for provider in user.providerUserInfo ?? []
      where provider.providerId != "phone" && !providers.contains(provider.providerId) {
        providers.append(provider.providerId)
        guard provider.providerId == "password" else {
          methods.append(provider.providerId)
          continue
        }
        if user.passwordHash != nil { methods.append("password") }
        if user.emailLinkSignin == true { methods.append("emailLink") }
      }
    }
    response.set("allProviders", json: try providers.jsonBytes())
    response.set("signinMethods", json: try methods.jsonBytes())
    return Self.json(response)
  }
}
