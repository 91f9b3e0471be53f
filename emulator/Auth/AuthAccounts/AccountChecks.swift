import Foundation
import JSONText

/// The rules for what a user's properties may be, for requests and imports alike.
///
/// All text that identifies a user is in Unicode's composed form (NFC), so that texts that Swift
/// compares as equal are equal bytes in storage, too.
package enum AccountChecks {
  /// Returns an address in lower case and composed form.
  ///
  /// Throws `INVALID_EMAIL` unless it has one @ between texts without space.
  package static func email(_ email: String) throws(AuthError) -> String {
    let parts = email.utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
    try require(
      parts.count == 2 && !parts[0].isEmpty && !parts[1].isEmpty
        && email.utf8.count <= emailBytesMax
        && !email.unicodeScalars.contains { scalar in
          scalar.properties.isWhitespace || scalar.properties.generalCategory == .control
            || scalar.properties.generalCategory == .format
        },
      "INVALID_EMAIL"
    )
    return composed(composed(email).lowercased())
  }

  /// Returns a telephone number without spaces and punctuation, as production stores it.
  ///
  /// Throws unless there is a plus sign before digits.
  package static func phoneNumber(_ text: String?) throws(AuthError) -> String {
    let number = (text ?? "").filter { !" -().".contains($0) }
    guard number.first == "+", (2...20).contains(number.utf8.count),
      number.dropFirst().utf8.allSatisfy({ (48...57).contains($0) })
    else { throw AuthError("INVALID_PHONE_NUMBER : Invalid format.") }
    return number
  }

  /// Throws unless an id has 1 to 128 UTF-16 units in composed form.
  package static func localID(_ id: String) throws(AuthError) {
    try require(
      (1...128).contains(id.utf16.count) && isComposed(id),
      "INVALID_LOCAL_ID : A uid has 1 to 128 characters in Unicode's composed form."
    )
  }

  /// Throws for a name or an address of a picture that is too long for tokens.
  package static func profile(displayName: String?, photoURL: String?) throws(AuthError) {
    try require(
      (displayName?.utf8.count ?? 0) <= nameBytesMax,
      "INVALID_PROFILE_ATTRIBUTE : The display name has more than \(nameBytesMax) bytes."
    )
    try require(
      (photoURL?.utf8.count ?? 0) <= urlBytesMax,
      "INVALID_PROFILE_ATTRIBUTE : The photo URL has more than \(urlBytesMax) bytes."
    )
  }

  /// Throws if a text is not a JSON object, is too long, or has a claim that tokens reserve.
  package static func customClaims(_ text: String) throws(AuthError) {
    try require(text.utf16.count <= claimsLengthMax, "CLAIMS_TOO_LARGE")
    let claims = try require(JSONObjectText(parsing: text), "INVALID_CLAIMS")
    if let name = reservedClaims.first(where: { claims[$0] != nil }) {
      throw AuthError("FORBIDDEN_CLAIM : \(name)")
    }
  }

  /// Throws unless a text is a time from 1970 to 9999, in seconds or milliseconds.
  package static func time(_ text: String?, unitsPerSecond: Int64) throws(AuthError) {
    guard let text else { return }
    guard let time = Int64(text), (0...253_402_300_799 * unitsPerSecond).contains(time) else {
      throw AuthError("INVALID_TIME : \(text.prefix(40)) is not a time from 1970 to 9999.")
    }
  }

  /// Returns an account whose properties are checked and in the form in which they are stored.
  ///
  /// Throws `AuthError` for the first property that is not valid.
  package static func checked(_ account: UserAccount) throws(AuthError) -> UserAccount {
    var account = account
    try localID(account.localId)
    if let address = account.email {
      account.email = address.isEmpty ? nil : try email(address)
    }
    if let number = account.phoneNumber {
      account.phoneNumber = number.isEmpty ? nil : try phoneNumber(number)
    }
    try profile(displayName: account.displayName, photoURL: account.photoUrl)
    if let claims = account.customAttributes {
      if claims.isEmpty { account.customAttributes = nil } else { try customClaims(claims) }
    }
    try time(account.validSince, unitsPerSecond: 1)
    try time(account.createdAt, unitsPerSecond: 1000)
    try time(account.lastLoginAt, unitsPerSecond: 1000)
    var providers: [ProviderAccount] = []
    for provider in account.providerUserInfo ?? [] {
      guard ![ProviderAccount.password, ProviderAccount.phone].contains(provider.providerId) else {
        continue
      }
      providers.append(try checked(provider))
    }
    account.providerUserInfo = providers.isEmpty ? nil : providers
    return account
  }

  /// Returns a provider's account whose ids are in the form in which they are stored.
  package static func checked(_ provider: ProviderAccount) throws(AuthError) -> ProviderAccount {
    var provider = provider
    let rawID = composed(provider.rawId ?? "")
    try require(
      !provider.providerId.isEmpty && !rawID.isEmpty && rawID.utf8.count <= rawIDBytesMax,
      "federatedId or (providerId & rawId) is required"
    )
    provider.providerId = provider.providerId.lowercased()
    provider.rawId = rawID
    try profile(displayName: provider.displayName, photoURL: provider.photoUrl)
    return provider
  }

  /// Returns a text in Unicode's composed form.
  package static func composed(_ text: String) -> String {
    text.utf8.allSatisfy { $0 < 0x80 } ? text : text.precomposedStringWithCanonicalMapping
  }

  private static func isComposed(_ text: String) -> Bool {
    composed(text).utf8.elementsEqual(text.utf8)
  }

  /// The maximum length of an address, that of SMTP with some room.
  private static let emailBytesMax = 320
  private static let nameBytesMax = 1024
  private static let urlBytesMax = 2048
  private static let rawIDBytesMax = 512
  /// The maximum length of the claims' JSON text, in UTF-16 code units.
  private static let claimsLengthMax = 1000

  private static let reservedClaims = [
    "iss", "aud", "sub", "iat", "exp", "nbf", "jti", "nonce", "azp", "acr", "amr", "cnf",
    "auth_time", "firebase", "at_hash", "c_hash",
  ]
}
