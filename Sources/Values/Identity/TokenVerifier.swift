#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif
import JWTKit
import RuntimeSupport

/// Verifies the signed tokens of one issuer for one project, as Firebase's Admin SDK does.
///
/// A token must be signed by RS256 with a key that its issuer publishes, and its claims must be in
/// order. When the keys cannot be fetched, a token is refused like a bad one, with 401, as by
/// `firebase-functions`, which turns every verification error into `UNAUTHENTICATED`.
package struct TokenVerifier: Sendable {
  private enum Issuer: Sendable {
    case exactly(String)
    /// App Check's tokens name the project's number, which a worker does not know.
    case below(String)
  }

  private let issuer: Issuer
  private let audience: String
  private let needsAuthTime: Bool
  private let keys: SigningKeys
  private let now: @Sendable () -> Double

  /// How far the clocks of issuer and server may be apart, in seconds.
  private static let clockSkewMax = 10.0
  /// The longest subject, in characters.
  private static let subjectLengthMax = 128

  /// A verifier of the ID tokens of a project's users; `now` is in seconds since 1970.
  package static func idTokens(
    project: String,
    keys: SigningKeys,
    now: @escaping @Sendable () -> Double
  ) -> TokenVerifier {
    TokenVerifier(
      issuer: .exactly("https://securetoken.google.com/\(project)"),
      audience: project,
      needsAuthTime: true,
      keys: keys,
      now: now
    )
  }

  /// A verifier of the App Check tokens of a project's apps.
  package static func appCheck(
    project: String,
    keys: SigningKeys,
    now: @escaping @Sendable () -> Double
  ) -> TokenVerifier {
    TokenVerifier(
      issuer: .below("https://firebaseappcheck.googleapis.com/"),
      audience: "projects/\(project)",
      needsAuthTime: false,
      keys: keys,
      now: now
    )
  }

  /// The subject and all claims of a token; throws `UNAUTHENTICATED`, never repeating the token.
  func verify(_ token: String) async throws(StatusError) -> DecodedToken {
    let decoded = try DecodedToken(token)
    guard decoded.header.alg == "RS256" else {
      throw DecodedToken.refused(
        decoded.signature.isEmpty
          ? "Unsigned credentials are accepted by the emulator only."
          : "The token must be signed by RS256."
      )
    }
    guard let keyName = decoded.header.kid else {
      throw DecodedToken.refused("The token does not name its key.")
    }
    try check(decoded.claims)
    let key: JWTKeyCollection?
    do {
      key = try await keys.key(named: keyName)
    } catch {
      throw DecodedToken.refused("The keys that verify tokens cannot be fetched; try again.")
    }
    guard let key else { throw DecodedToken.refused("The token's key is not known.") }
    do {
      _ = try await key.verify(token, as: AnyClaims.self)
    } catch {
      throw DecodedToken.refused("The token's signature does not fit.")
    }
    return decoded
  }

  private func check(_ claims: DecodedToken.Claims) throws(StatusError) {
    let isIssuer =
      switch issuer {
      case .exactly(let name): claims.iss == name
      case .below(let prefix): claims.iss?.hasPrefix(prefix) ?? false
      }
    guard isIssuer else { throw DecodedToken.refused("The token has another issuer.") }
    guard claims.audiences.contains(audience) else {
      throw DecodedToken.refused("The token is for another project than \(audience).")
    }
    guard let subject = claims.sub, (1...Self.subjectLengthMax).contains(subject.utf16.count) else {
      throw DecodedToken.refused(
        "The token's 'sub' must have 1 to \(Self.subjectLengthMax) characters."
      )
    }
    let time = now()
    guard let expiry = claims.exp, time < expiry else {
      throw DecodedToken.refused("The token has expired; get a new one.")
    }
    guard let issued = claims.iat, issued <= time + Self.clockSkewMax else {
      throw DecodedToken.refused("The token is from the future.")
    }
    guard needsAuthTime else { return }
    guard let signedIn = claims.authTime, signedIn <= time + Self.clockSkewMax else {
      throw DecodedToken.refused("The token's 'auth_time' is missing or in the future.")
    }
  }

  /// The library checks only the signature; the claims are checked here, by Hearth's own clock.
  private struct AnyClaims: JWTPayload {
    func verify(using algorithm: some JWTAlgorithm) {}
  }
}
