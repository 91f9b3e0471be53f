import AuthAccounts
import Identity
import JSONText

/// A custom token: a JWT whose signature is not checked, or plain JSON.
struct CustomToken {
  var uid: String
  /// Claims for the session.
  var claims: JSONObjectText

  init(_ text: String) throws(AuthError) {
    let payload: JSONObjectText
    if text.hasPrefix("{") {
      payload = try require(
        JSONObjectText(parsing: text),
        "INVALID_CUSTOM_TOKEN : ((Auth Emulator only accepts strict JSON or JWTs as fake custom "
          + "tokens.))"
      )
    } else {
      // Firebase has one code for every malformed token.
      guard let token = try? DecodedToken(text),
        let decoded = JSONObjectText(parsing: token.claimsJSON)
      else { throw AuthError("INVALID_CUSTOM_TOKEN : Invalid assertion format") }
      try require(
        decoded.text("aud") == Self.audience,
        "INVALID_CUSTOM_TOKEN : ((Invalid aud (audience): \(decoded.text("aud") ?? "undefined") "
          + "Note: Firebase ID Tokens / third-party tokens cannot be used with "
          + "signInWithCustomToken.))"
      )
      payload = decoded
    }
    let names = [payload.text("uid"), payload.text("user_id")].compactMap(\.self)
    uid = try require(names.first { !$0.isEmpty }, "MISSING_IDENTIFIER")
    try AccountChecks.localID(uid)
    claims = JSONObjectText()
    guard let json = payload["claims"] else { return }
    let text = String(decoding: json, as: UTF8.self)
    try AccountChecks.customClaims(text)
    claims = JSONObjectText(parsing: text) ?? JSONObjectText()
  }

  private static let audience =
    "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit"
}
