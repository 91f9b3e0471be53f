#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif
package import StatusCodes

/// A JWT split into its parts, with its signature unchecked.
package struct DecodedToken: Sendable {
  /// The maximum length of a token; the longest real tokens have about 2 kB.
  static let bytesMax = 16 * 1024

  var header: Header
  var claims: Claims
  /// The payload as JSON text.
  package var claimsJSON: String
  /// The third part, in base64url; empty if the token is not signed.
  var signature: Substring

  /// Parses a token of three parts; throws `UNAUTHENTICATED` without repeating the token.
  package init(_ token: String) throws(StatusError) {
    guard token.utf8.count <= Self.bytesMax else {
      throw Self.refused("The token is longer than \(Self.bytesMax) bytes.")
    }
    let parts = token.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3 else {
      throw Self.refused("The token is not a JWT of three parts (header.payload.signature).")
    }
    guard parts[2].utf8.allSatisfy(Base64URL.isDigit) else {
      throw Self.refused("The token's signature is not base64url.")
    }
    signature = parts[2]
    header = try Self.json(parts[0], named: "header")
    claims = try Self.json(parts[1], named: "payload")
    guard let bytes = Base64URL.decode(parts[1]),
      let text = String(validating: bytes, as: UTF8.self)
    else { throw Self.refused("The token's payload is not UTF-8.") }
    claimsJSON = text
  }

  /// Returns the error for a refused credential.
  static func refused(_ message: String) -> StatusError {
    StatusError(.unauthenticated, message)
  }

  private static func json<T: Decodable>(
    _ part: Substring,
    named name: String
  ) throws(StatusError) -> T {
    guard let bytes = Base64URL.decode(part) else {
      throw refused("The token's \(name) is not base64url.")
    }
    do {
      return try JSONDecoder().decode(T.self, from: Data(bytes))
    } catch {
      throw refused(
        "The token's \(name) must be a JSON object"
          + (T.self == Claims.self ? " with text in 'sub' or 'user_id'." : ".")
      )
    }
  }

  struct Header: Decodable {
    var alg: String?
    var kid: String?

    enum CodingKeys: CodingKey {
      case alg, kid
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      // A value that is not text counts as absent because the emulator checks neither.
      alg = try? container.decode(String.self, forKey: .alg)
      kid = try? container.decode(String.self, forKey: .kid)
    }
  }

  struct Claims: Decodable {
    var iss: String?
    var audiences: [String]
    var sub: String?
    var userID: String?
    var appID: String?
    var exp: Double?
    var iat: Double?
    var authTime: Double?

    enum CodingKeys: String, CodingKey {
      case iss, aud, sub, exp, iat
      case userID = "user_id"
      case appID = "app_id"
      case authTime = "auth_time"
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      sub = try container.decodeIfPresent(String.self, forKey: .sub)
      userID = try container.decodeIfPresent(String.self, forKey: .userID)
      // A value of another type counts as absent because the emulator does not check it.
      iss = try? container.decode(String.self, forKey: .iss)
      appID = try? container.decode(String.self, forKey: .appID)
      exp = try? container.decode(Double.self, forKey: .exp)
      iat = try? container.decode(Double.self, forKey: .iat)
      authTime = try? container.decode(Double.self, forKey: .authTime)
      let several = try? container.decode([String].self, forKey: .aud)
      let one = try? container.decode(String.self, forKey: .aud)
      audiences = several ?? one.map { [$0] } ?? []
    }
  }
}
