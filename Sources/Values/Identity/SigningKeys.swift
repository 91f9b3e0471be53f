import Cryptography
import JSONText

/// The public keys that verify an issuer's tokens.
///
/// Keys are fetched on demand and kept as long as their server allows. Callers that need keys at
/// the same time share one fetch. A token that names an unknown key causes another fetch, because
/// keys are rotated, but at most once a minute.
package actor SigningKeys {
  /// A key server's response.
  package struct Answer: Sendable {
    /// The body, a JSON Web Key Set.
    package var body: [UInt8]
    /// The `Cache-Control` header; nil if there is none.
    package var cacheControl: String?

    /// Creates a response with status 200.
    package init(body: [UInt8], cacheControl: String?) {
      self.body = body
      self.cacheControl = cacheControl
    }
  }

  /// A function that fetches the keys at a URL; throws if it cannot get them.
  package typealias Fetch = @Sendable (_ url: String) async throws -> Answer

  /// The URL of the keys for Firebase ID tokens.
  package static let idTokensURL =
    "https://www.googleapis.com/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com"
  /// The URL of the keys for App Check tokens.
  package static let appCheckURL = "https://firebaseappcheck.googleapis.com/v1/jwks"

  // Google's servers allow hours. The bounds are for servers that send no age or an absurd one.
  private static let ageDefault = 3600.0
  private static let ageRange = 60.0...86_400.0
  /// The number of keys that are kept; Google publishes fewer than ten at a time.
  private static let countMax = 100

  private struct Kept {
    var keys: [String: RSAPublicKey]
    var fetchedAt: Double
    var goodUntil: Double
  }

  private let url: String
  private let fetch: Fetch
  private let now: @Sendable () -> Double
  private var kept: Kept?
  private var fetching: Task<Kept, any Error>?

  /// Creates a key set that has not been fetched yet; `now` returns seconds since 1970.
  package init(url: String, now: @escaping @Sendable () -> Double, fetch: @escaping Fetch) {
    self.url = url
    self.now = now
    self.fetch = fetch
  }

  /// Returns the key of this name; nil if there is no such key.
  ///
  /// Throws if keys cannot be fetched.
  func key(named name: String) async throws -> RSAPublicKey? {
    let time = now()
    if let kept, time < kept.goodUntil {
      if let key = kept.keys[name] { return key }
      if time < kept.fetchedAt + Self.ageRange.lowerBound { return nil }
    }
    return try await refreshed().keys[name]
  }

  private func refreshed() async throws -> Kept {
    if let fetching { return try await fetching.value }
    // The waiting callers share the fetch, so cancelling one of them does not fail the others. The
    // task ends with the fetch.
    let task = Task { [url, fetch, now] in
      let answer = try await fetch(url)
      let set = try KeySet(decodingJSON: answer.body)
      var keys: [String: RSAPublicKey] = [:]
      for published in set.keys.prefix(Self.countMax) {
        guard let name = published.kid, let key = published.key else { continue }
        keys[name] = key
      }
      let age = Self.maxAge(in: answer.cacheControl) ?? Self.ageDefault
      let bounded = min(max(age, Self.ageRange.lowerBound), Self.ageRange.upperBound)
      return Kept(keys: keys, fetchedAt: now(), goodUntil: now() + bounded)
    }
    fetching = task
    defer { fetching = nil }
    let fresh = try await task.value
    kept = fresh
    return fresh
  }

  /// Returns the number of seconds of `max-age` in a `Cache-Control` header.
  static func maxAge(in header: String?) -> Double? {
    for part in header?.split(separator: ",") ?? [] {
      let directive = part.filter { $0 != " " }.lowercased()
      if directive.hasPrefix("max-age=") { return Double(directive.dropFirst(8)) }
    }
    return nil
  }

  /// A JSON Web Key Set (RFC 7517).
  private struct KeySet: Decodable {
    var keys: [PublishedKey]
  }

  /// A JSON Web Key of any type.
  private struct PublishedKey: Decodable {
    var kty: String
    var kid: String?
    var alg: String?
    var use: String?
    var n: String?
    var e: String?

    /// The key, if it is for verifying RS256; nil for any other, for a short and a damaged one.
    var key: RSAPublicKey? {
      guard kty == "RSA", alg ?? "RS256" == "RS256", use ?? "sig" == "sig",
        let modulus = n.flatMap({ Base64URL.decode($0) }),
        let exponent = e.flatMap({ Base64URL.decode($0) })
      else { return nil }
      // A token that names an unusable key is refused like one that names no known key.
      return try? RSAPublicKey(modulus: modulus, exponent: exponent)
    }
  }
}
