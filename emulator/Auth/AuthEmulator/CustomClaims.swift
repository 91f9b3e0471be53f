import AuthAccounts
import JSONText

/// The rules for custom claims.
enum CustomClaims {
  /// Throws if a text is not a JSON object, is too long, or has a claim that tokens reserve.
  static func check(_ text: String) throws(AuthError) {
    try require(text.utf16.count <= lengthMax, "CLAIMS_TOO_LARGE")
    let claims = try require(JSONObjectText(parsing: text), "INVALID_CLAIMS")
    if let name = reserved.first(where: { claims[$0] != nil }) {
      throw AuthError("FORBIDDEN_CLAIM : \(name)")
    }
  }

  /// The maximum length of the JSON text, in UTF-16 code units.
  private static let lengthMax = 1000

  private static let reserved = [
    "iss", "aud", "sub", "iat", "exp", "nbf", "jti", "nonce", "azp", "acr", "amr", "cnf",
    "auth_time", "firebase", "at_hash", "c_hash",
  ]
}
