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
  /// PKCS #8 in PEM.
  var privateKey: String
  var tokenAddress: String

  /// What is exchanged for an access token: a statement of who asks, signed with RS256.
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
      // What the library says may quote the key.
      throw StatusError(
        .failedPrecondition,
        "The private_key of \(email) is not an RSA key in PEM."
      )
    }
  }

  var description: String { email }
  var customMirror: Mirror { Mirror(self, children: ["email": email]) }

  /// All of Google Cloud, within what the account may do.
  static let scope = "https://www.googleapis.com/auth/cloud-platform"
  /// The longest that Google takes.
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
