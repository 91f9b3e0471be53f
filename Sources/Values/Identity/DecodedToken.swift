import Cryptography
import JSONText
package import StatusCodes

/// A JWT split into its parts, with its signature unchecked.
package struct DecodedToken: Sendable {
  /// The maximum length of a token; the longest real tokens have about 2 kB.
  static let bytesMax = 16 * 1024

  var header: Header
  var claims: Claims
  /// The payload as JSON text.
  package var claimsJSON: String
  /// The first two parts with the dot between them, which a signature covers.
  var signedText: Substring
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
    signedText = token[..<parts[1].endIndex]
    signature = parts[2]
    header = try Self.json(parts[0], named: "header")
    claims = try Self.json(parts[1], named: "payload")
    guard let bytes = Base64URL.decode(parts[1]),
      let text = String(validating: bytes, as: UTF8.self)
    else { throw Self.refused("The token's payload is not UTF-8.") }
    claimsJSON = text
  }

  /// True if no object of the header and the payload has two members of one name.
  ///
  /// Parsers disagree about which of the two counts. Also false for anything that is not strictly
  /// JSON.
  var hasUniqueMembers: Bool {
    signedText.split(separator: ".").allSatisfy { part in
      var parser = JSONParser(MemberNames())
      // The error does not matter: the token is refused in any case.
      guard let bytes = Base64URL.decode(part), (try? parser.parse(bytes)) != nil else {
        return false
      }
      return parser.builder.areUnique
    }
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
      return try T(decodingJSON: bytes)
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
    /// True if the header has `crit`, a list of extensions that a verifier must know.
    var isCritical: Bool

    enum CodingKeys: CodingKey {
      case alg, kid, crit
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      // A value that is not text counts as absent because the emulator checks neither.
      alg = try? container.decode(String.self, forKey: .alg)
      kid = try? container.decode(String.self, forKey: .kid)
      isCritical = container.contains(.crit)
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

/// A builder that keeps nothing of a JSON text but whether the names of its members are unique.
private struct MemberNames: JSONBuilder {
  var areUnique = true

  mutating func null() {}
  mutating func boolean(_ flag: Bool) {}
  mutating func number(_ number: JSONNumber) -> Void? { () }
  mutating func string(_ text: String) {}
  mutating func array(_ elements: [Void]) {}

  mutating func object(_ members: [(String, Void)]) {
    if Set(members.map(\.0)).count < members.count { areUnique = false }
  }
}
