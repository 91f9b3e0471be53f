import JWTKit
import RuntimeSupport

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The key of a service account, and the assertions that it signs.
struct ServiceAccountKey: Sendable, CustomStringConvertible, CustomReflectable {
  var email: String
  var keyID: String?
  /// The key in PKCS #8, as PEM.
  var privateKey: String
  var tokenAddress: String

  /// The statement of identity, signed with RS256, that is exchanged for an access token.
  func assertion(at time: Date) async throws(StatusError) -> String {
    do {
      let keys = JWTKeyCollection()
      let key = try Insecure.RSA.PrivateKey(pem: privateKey)
      await keys.add(
        rsa: key,
        digestAlgorithm: .sha256,
        kid: keyID.map(JWKIdentifier.init(string:))
      )
      let claims = Claims(
        iss: IssuerClaim(value: email),
        scope: Self.scope,
        aud: tokenAddress,
        iat: IssuedAtClaim(value: time),
        exp: ExpirationClaim(value: time.addingTimeInterval(Self.lifetimeSeconds))
      )
      return try await keys.sign(claims, kid: keyID.map(JWKIdentifier.init(string:)))
    } catch {
      // The library's message may quote the key.
      throw StatusError(
        .failedPrecondition,
        "The private_key of \(email) is not an RSA key in PEM."
      )
    }
  }

  var description: String { email }
  var customMirror: Mirror { Mirror(self, children: ["email": email]) }

  /// Access to all of Google Cloud that the account is allowed.
  static let scope = "https://www.googleapis.com/auth/cloud-platform"
  /// The longest lifetime that Google accepts.
  private static let lifetimeSeconds = 3600.0

  private struct Claims: JWTPayload {
    var iss: IssuerClaim
    var scope: String
    var aud: String
    var iat: IssuedAtClaim
    var exp: ExpirationClaim

    func verify(using algorithm: some JWTAlgorithm) throws {}
  }
}
