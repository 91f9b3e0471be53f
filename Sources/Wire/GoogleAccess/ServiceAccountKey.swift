import JSONText
import StatusCodes

#if canImport(Cryptography)
  import Cryptography
#endif

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
  func assertion(at time: Date) throws(StatusError) -> String {
    #if canImport(Cryptography)
      do {
        let start = Int64(time.timeIntervalSince1970)
        let claims = Claims(
          iss: email,
          scope: Self.scopes.joined(separator: " "),
          aud: tokenAddress,
          iat: start,
          exp: start + Self.lifetimeSeconds
        )
        let text = [
          Base64URL.encode(try Header(kid: keyID).jsonBytes()),
          Base64URL.encode(try claims.jsonBytes()),
        ].joined(separator: ".")
        let signature = try RSAPrivateKey(pem: privateKey).signature(for: Array(text.utf8))
        return "\(text).\(Base64URL.encode(signature))"
      } catch {
        // The error of an encoder may quote what it encodes, so only ours is used.
        let reason = (error as? CryptographyError).map { " (\($0.message))" } ?? ""
        throw StatusError(
          .failedPrecondition,
          "The private_key of \(email) is not an RSA key in PEM\(reason)."
        )
      }
    #else
      throw StatusError(
        .unimplemented,
        "The key of \(email) signs on servers only; an app acts as its user."
      )
    #endif
  }

  var description: String { email }
  var customMirror: Mirror { Mirror(self, children: ["email": email]) }

  /// The scopes for everything that the account may access.
  ///
  /// Google Cloud has one for all services. The Realtime Database, which is none of them, has its
  /// own, and wants to know the account's address.
  static let scopes = ["cloud-platform", "firebase.database", "userinfo.email"]
    .map { "https://www.googleapis.com/auth/\($0)" }
  /// The longest lifetime that Google accepts for an assertion.
  private static let lifetimeSeconds: Int64 = 3600

  private struct Header: Encodable {
    var alg = "RS256"
    var typ = "JWT"
    var kid: String?
  }

  private struct Claims: Encodable {
    var iss: String
    var scope: String
    var aud: String
    var iat: Int64
    var exp: Int64
  }
}
