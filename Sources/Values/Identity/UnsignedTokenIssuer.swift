import Cryptography
import JSONText

/// An issuer of tokens that emulators accept: the unsigned mock tokens of Firebase clients.
///
/// `UnsignedTokenAcceptance` decides which tokens are accepted.
package enum UnsignedTokenIssuer {
  /// Creates a token that signs in `uid`, in the form `header.payload.`.
  ///
  /// The payload is the same as that of a client's `mockUserToken`: `iss`, `aud`, `iat`, `exp`,
  /// `auth_time`, `sub`, `user_id` and `firebase`. `claims` must encode as an object; its members
  /// are added and replace standard members of the same name. `issuedAt` is in seconds since 1970.
  package static func issue(
    uid: String,
    project: String = "demo-project",
    claims: some Encodable = NoClaims(),
    issuedAt: Int64 = 0
  ) throws -> String {
    let payload = Payload(uid: uid, project: project, issuedAt: issuedAt, claims: claims)
    let header = Base64URL.encode(Array(#"{"alg":"none","type":"JWT"}"#.utf8))
    return "\(header).\(Base64URL.encode(try payload.jsonBytes()))."
  }

  /// Creates a token from its payload's JSON text, with the header of Firebase's Auth emulator.
  package static func token(payload: some Sequence<UInt8>) -> String {
    let header = Base64URL.encode(#"{"alg":"none","typ":"JWT"}"#.utf8)
    return "\(header).\(Base64URL.encode(payload))."
  }

  /// An empty set of claims.
  package struct NoClaims: Encodable {
    package init() {}
  }

  private struct Payload<Claims: Encodable>: Encodable {
    var uid: String
    var project: String
    var issuedAt: Int64
    var claims: Claims

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Key.self)
      try container.encode("https://securetoken.google.com/\(project)", forKey: .iss)
      try container.encode(project, forKey: .aud)
      try container.encode(issuedAt, forKey: .iat)
      try container.encode(issuedAt + 3600, forKey: .exp)
      try container.encode(issuedAt, forKey: .authTime)
      try container.encode(uid, forKey: .sub)
      try container.encode(uid, forKey: .userID)
      try container.encode(Provider(), forKey: .firebase)
      try claims.encode(to: encoder)
    }

    enum Key: String, CodingKey {
      case iss, aud, iat, exp, sub, firebase
      case authTime = "auth_time"
      case userID = "user_id"
    }
  }

  private struct Provider: Encodable {
    var identities: [String: [String]] = [:]
    var provider = "custom"

    enum CodingKeys: String, CodingKey {
      case identities
      case provider = "sign_in_provider"
    }
  }
}
