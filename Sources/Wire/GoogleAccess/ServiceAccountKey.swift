import JWTKit
import StatusCodes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The key of a service account, which signs assertions.
struct ServiceAccountKey: Sendable, CustomStringConvertible, CustomReflectable {
  var email: String
  var keyID: String?
  /// The private key in PKCS #8, as PEM.
  var privateKey: String
  var tokenAddress: String

  /// Returns the RS256-signed assertion of identity that is exchanged for an access token.
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
      // The library's message may quote the key, so it is not used.
      throw StatusError(
        .failedPrecondition,
        "The private_key of \(email) is not an RSA key in PEM."
      )
    }
  }

  var description: String { email }
  var customMirror: Mirror { Mirror(self, children: ["email": email]) }

  /// The scope for everything in Google Cloud that the account may access.
  static let scope = "https://www.googleapis.com/auth/cloud-platform"
  /// The longest lifetime that Google accepts for an assertion.
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
