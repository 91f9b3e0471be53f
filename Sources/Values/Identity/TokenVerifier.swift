#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif
import Cryptography
import StatusCodes

/// A verifier of one issuer's signed tokens for one project, as in Firebase's Admin SDK.
///
/// A token must be signed with RS256 by the key that it names among those that its issuer
/// publishes, and its claims must be valid. The algorithm is the key's; the token has to agree.
/// If the keys cannot be fetched, the token is refused with 401 like an invalid token.
/// `firebase-functions` does the same: it turns every verification error into `UNAUTHENTICATED`.
package struct TokenVerifier: Sendable {
  private enum Issuer: Sendable {
    case exactly(String)
    /// A prefix, because App Check's issuer ends with the project number, unknown to a worker.
    case below(String)
  }

  private enum Audience: Sendable {
    case exactly(String)
    /// A part of the audience, because that of a blocking function is its address.
    case containing(String)
  }

  private let issuer: Issuer
  private let audience: Audience
  private let needsAuthTime: Bool
  private let keys: SigningKeys
  private let now: @Sendable () -> Double

  /// The tolerated difference between the clocks of issuer and server, in seconds.
  private static let clockSkewMax = 10.0
  /// The maximum length of a subject, in UTF-16 code units.
  private static let subjectLengthMax = 128

  /// Creates a verifier for ID tokens of a project's users; `now` returns seconds since 1970.
  package static func idTokens(
    project: String,
    keys: SigningKeys,
    now: @escaping @Sendable () -> Double
  ) -> TokenVerifier {
    TokenVerifier(
      issuer: .exactly("https://securetoken.google.com/\(project)"),
      audience: .exactly(project),
      needsAuthTime: true,
      keys: keys,
      now: now
    )
  }

  /// Creates a verifier for App Check tokens of a project's apps; `now` returns seconds since 1970.
  package static func appCheck(
    project: String,
    keys: SigningKeys,
    now: @escaping @Sendable () -> Double
  ) -> TokenVerifier {
    TokenVerifier(
      issuer: .below("https://firebaseappcheck.googleapis.com/"),
      audience: .exactly("projects/\(project)"),
      needsAuthTime: false,
      keys: keys,
      now: now
    )
  }

  /// Creates a verifier for the tokens that Auth sends to blocking functions on Cloud Run.
  package static func blocking(
    project: String,
    keys: SigningKeys,
    now: @escaping @Sendable () -> Double
  ) -> TokenVerifier {
    TokenVerifier(
      issuer: .exactly("https://securetoken.google.com/\(project)"),
      audience: .containing("run.app"),
      needsAuthTime: false,
      keys: keys,
      now: now
    )
  }

  /// Verifies a token and returns it decoded.
  ///
  /// Throws `UNAUTHENTICATED` with a message that never repeats the token.
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
    guard !decoded.header.isCritical else {
      throw DecodedToken.refused("The token's 'crit' demands what this server does not know.")
    }
    guard decoded.hasUniqueMembers else {
      throw DecodedToken.refused("The token has two members of one name.")
    }
    try check(decoded.claims)
    let key: RSAPublicKey?
    do {
      key = try await keys.key(named: keyName)
    } catch {
      throw DecodedToken.refused("The keys that verify tokens cannot be fetched; try again.")
    }
    guard let key else { throw DecodedToken.refused("The token's key is not known.") }
    // Only one text of a signature is accepted, because a consumed token is known by its text.
    guard let signature = Base64URL.decodeCanonical(decoded.signature),
      key.isValid(signature, for: Array(decoded.signedText.utf8))
    else { throw DecodedToken.refused("The token's signature does not fit.") }
    return decoded
  }

  private func check(_ claims: DecodedToken.Claims) throws(StatusError) {
    let isIssuer =
      switch issuer {
      case .exactly(let name): claims.iss == name
      case .below(let prefix): claims.iss?.hasPrefix(prefix) ?? false
      }
    guard isIssuer else { throw DecodedToken.refused("The token has another issuer.") }
    switch audience {
    case .exactly(let audience):
      guard claims.audiences.contains(audience) else {
        throw DecodedToken.refused("The token is for another project than \(audience).")
      }
    case .containing(let part):
      guard claims.audiences.contains(where: { $0.contains(part) }) else {
        throw DecodedToken.refused("The token is not for a function.")
      }
    }
    guard let subject = claims.sub, (1...Self.subjectLengthMax).contains(subject.utf16.count) else {
      throw DecodedToken.refused(
        "The token's 'sub' must have 1 to \(Self.subjectLengthMax) characters."
      )
    }
    let time = now()
    guard let expiry = claims.exp, time < expiry else {
      throw StatusError(
        .unauthenticated,
        "The token has expired; get a new one.",
        details: [.errorInfo(reason: "TOKEN_EXPIRED")]
      )
    }
    guard let issued = claims.iat, issued <= time + Self.clockSkewMax else {
      throw DecodedToken.refused("The token is from the future.")
    }
    guard needsAuthTime else { return }
    guard let signedIn = claims.authTime, signedIn <= time + Self.clockSkewMax else {
      throw DecodedToken.refused("The token's 'auth_time' is missing or in the future.")
    }
  }
}
