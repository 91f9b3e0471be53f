import AuthAccounts
import Foundation
import HTTPSupport
import Identity
import JSONText

/// What an identity provider says about a user, as the fake tokens of tests claim it.
struct IdentityProviderResponse: Sendable {
  var providerID: String
  /// The user's id at the provider.
  var rawID: String
  var email: String?
  var isEmailVerified: Bool
  var displayName: String?
  var photoURL: String?
  var screenName: String?
  var firstName: String?
  var lastName: String?
  /// The user as the provider describes it, as JSON text.
  var rawUserInfo: String
  var idToken: String?
  var accessToken: String

  /// Reads the credential in a request's `postBody` and `requestUri`.
  ///
  /// The ID token is a JWT whose signature is not checked, or plain JSON with a `sub`.
  init(_ body: AuthRequestBody) throws(AuthError) {
    let uri = try require(body.requestUri, "MISSING_REQUEST_URI")
    try require(
      URL(string: uri)?.scheme != nil && URL(string: uri)?.host != nil,
      "INVALID_REQUEST_URI"
    )
    let fields = Self.parameters(uri: uri, postBody: body.postBody ?? "")
    func field(_ name: String) -> String? {
      fields.first { $0[name] != nil }.flatMap { $0[name] }.flatMap { $0.isEmpty ? nil : $0 }
    }
    providerID = try require(
      field("providerId")?.lowercased(),
      "INVALID_CREDENTIAL_OR_PROVIDER_ID : Invalid IdP response/credential: \(uri)"
    )
    if providerID.hasPrefix("saml.") { throw AuthError.notEmulated("SAML is") }
    idToken = field("id_token")
    let given = field("access_token")
    guard let claims = idToken.flatMap(Self.claims) ?? given.flatMap(Self.claims) else {
      if let idToken {
        throw AuthError(
          "INVALID_IDP_RESPONSE : Unable to parse id_token: \(idToken.prefix(200)) ((Auth Emulator "
            + "only accepts strict JSON or JWTs as fake id_tokens.))"
        )
      }
      throw AuthError.notEmulated("Sign-in with \(providerID) without an id_token is")
    }
    try require(
      (idToken?.utf8.count ?? 0) <= Self.tokenBytesMax,
      "INVALID_IDP_RESPONSE : The id_token has more than \(Self.tokenBytesMax) bytes."
    )
    let subject = try require(
      claims.text("sub").flatMap { $0.isEmpty ? nil : $0 },
      "INVALID_IDP_RESPONSE : Invalid Idp Response: id_token missing required fields. "
        + "((Missing \"sub\" field. This field is required and must be a unique identifier.))"
    )
    rawID = AccountChecks.composed(subject)
    accessToken = given ?? "FirebaseAuthEmulatorFakeAccessToken_\(providerID)"
    let address = claims.text("email")
    email = try address.flatMap { $0.isEmpty ? nil : $0 }.map(AccountChecks.email)
    isEmailVerified = claims.flag("email_verified") ?? false
    displayName = claims.text("name")
    photoURL = claims.text("picture")
    screenName = claims.text("screen_name")
    firstName = claims.text("given_name")
    lastName = claims.text("family_name")
    rawUserInfo = Self.userInfo(claims, providerID: providerID)
  }

  /// Returns the parameters of the body, of the URI's query and of its fragment, in that order.
  private static func parameters(uri: String, postBody: String) -> [QueryParameters] {
    let parts = uri.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
    let query = parts[0].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    return [
      QueryParameters(postBody), QueryParameters(query.count == 2 ? query[1] : ""),
      QueryParameters(parts.count == 2 ? parts[1] : ""),
    ]
  }

  private static let tokenBytesMax = 16 << 10

  private static func claims(_ token: String) -> JSONObjectText? {
    if token.hasPrefix("{") { return JSONObjectText(parsing: token) }
    // The caller refuses a token without claims.
    return (try? DecodedToken(token)).flatMap { JSONObjectText(parsing: $0.claimsJSON) }
  }

  private static func userInfo(_ claims: JSONObjectText, providerID: String) -> String {
    guard providerID == "google.com" else { return String(decoding: claims.bytes, as: UTF8.self) }
    var scopes = "openid https://www.googleapis.com/auth/userinfo.profile"
    if claims["email"] != nil { scopes += " https://www.googleapis.com/auth/userinfo.email" }
    var info = JSONObjectText()
    info.set("granted_scopes", scopes)
    info.set("id", json: claims["sub"])
    info.set("name", json: claims["name"])
    info.set("given_name", json: claims["given_name"])
    info.set("family_name", json: claims["family_name"])
    info.set("verified_email", json: claims["email_verified"])
    info.set("locale", "en")
    info.set("email", json: claims["email"])
    info.set("picture", json: claims["picture"])
    return String(decoding: info.bytes, as: UTF8.self)
  }

  /// The user's account at the provider.
  var providerAccount: ProviderAccount {
    var account = ProviderAccount(providerId: providerID, rawId: rawID)
    account.federatedId = rawID
    account.email = email
    account.displayName = displayName
    account.photoUrl = photoURL
    account.screenName = screenName
    return account
  }

  private var federatedID: String {
    providerID == "google.com" ? "https://accounts.google.com/\(rawID)" : rawID
  }

  /// The members of the response that describe the user at the provider.
  var json: JSONObjectText {
    var response = JSONObjectText()
    response.set("kind", "identitytoolkit#VerifyAssertionResponse")
    response.set("context", "")
    response.set("providerId", providerID)
    response.set("federatedId", federatedID)
    response.set("displayName", displayName)
    response.set("fullName", displayName)
    response.set("firstName", firstName)
    response.set("lastName", lastName)
    response.set("screenName", screenName)
    response.set("email", email)
    response.set("emailVerified", isEmailVerified)
    response.set("photoUrl", photoURL)
    response.set("rawUserInfo", rawUserInfo)
    response.set("oauthIdToken", idToken)
    response.set("oauthAccessToken", accessToken)
    return response
  }
}
