#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif
package import RuntimeSupport

/// Turns the `Authorization` header of a request into an `AuthContext`.
///
/// Every door that speaks for a user (Firestore, callables, storage) uses this one reader, so that a
/// credential means the same everywhere.
package struct CredentialReader: Sendable {
  /// Where the process runs, which decides what a credential is worth.
  package enum Mode: Sendable, Hashable {
    /// `owner` is the administrator; tokens are decoded and believed.
    case emulator
    /// Nothing is believed without a verified signature.
    case production
  }

  /// Decides which credentials are accepted.
  package var mode: Mode

  /// A reader for one mode; the caller learns the mode from its configuration.
  package init(mode: Mode) {
    self.mode = mode
  }

  /// A token this long is refused unread; the longest real ones have about 2 kB.
  static let tokenBytesMax = 16 * 1024

  /// Who asks, by the value of the `Authorization` header; nil when the request has none.
  ///
  /// In `emulator` mode `Bearer owner` is the administrator, and a JWT of three parts (the third may
  /// be empty) is believed when header and payload are JSON objects and the payload has a non-empty
  /// `sub` or `user_id`; its `exp` and its signature are not looked at. In `production` mode every
  /// credential is refused until signatures can be verified.
  ///
  /// Throws `UNAUTHENTICATED` for everything else; the message never repeats the token.
  package func authenticate(authorization header: String?) throws(StatusError) -> AuthContext {
    guard let header else { return .unauthenticated }
    return try authenticate(token: Self.bearerToken(in: header))
  }

  /// Who asks, by a token without the word `Bearer` around it.
  ///
  /// For the few places where a token does not travel in a header; the rules are the same.
  package func authenticate(token: String) throws(StatusError) -> AuthContext {
    guard token.utf8.count <= Self.tokenBytesMax else {
      throw Self.refused("The token is longer than \(Self.tokenBytesMax) bytes.")
    }
    guard mode == .emulator else { throw Self.refusedInProduction(token) }
    if token == "owner" { return .admin }
    return .user(try Self.decode(token))
  }

  private static func bearerToken(in header: String) throws(StatusError) -> String {
    let parts = header.split(separator: " ", omittingEmptySubsequences: true)
    guard parts.count == 2, parts[0].lowercased() == "bearer" else {
      throw refused("The Authorization header must be 'Bearer' followed by one token.")
    }
    return String(parts[1])
  }

  private static func decode(_ token: String) throws(StatusError) -> UserIdentity {
    let parts = token.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3 else {
      throw refused("The token is not a JWT of three parts (header.payload.signature).")
    }
    guard parts[2].utf8.allSatisfy(Base64URL.isDigit) else {
      throw refused("The token's signature is not base64url.")
    }
    let _: Header = try json(parts[0], named: "header")
    let claims: Claims = try json(parts[1], named: "payload")
    guard let uid = [claims.sub, claims.userID].compactMap(\.self).first(where: { !$0.isEmpty })
    else { throw refused("The token's payload needs a non-empty 'sub' or 'user_id'.") }
    guard let bytes = Base64URL.decode(parts[1]),
      let text = String(validating: bytes, as: UTF8.self)
    else { throw refused("The token's payload is not UTF-8.") }
    return UserIdentity(uid: uid, claimsJSON: text)
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

  private static func refusedInProduction(_ token: String) -> StatusError {
    let parts = token.split(separator: ".", omittingEmptySubsequences: false)
    if parts.count == 3, !parts[2].isEmpty {
      return refused("This server cannot verify signed tokens yet, so it refuses all of them.")
    }
    return refused("Unsigned credentials are accepted by the emulator only.")
  }

  private static func refused(_ message: String) -> StatusError {
    StatusError(.unauthenticated, message)
  }

  private struct Header: Decodable {
    var alg: String?
  }

  private struct Claims: Decodable {
    var sub: String?
    var userID: String?

    enum CodingKeys: String, CodingKey {
      case sub
      case userID = "user_id"
    }
  }
}
