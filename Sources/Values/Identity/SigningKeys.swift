#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif
import JWTKit

/// The public keys that verify an issuer's tokens.
///
/// They are fetched when needed and kept for as long as their server allows. Callers that need keys
/// at the same time share one fetch. A token that names an unknown key causes one more fetch,
/// because keys are rotated, but at most one every minute.
package actor SigningKeys {
  /// What a server answered when asked for its keys.
  package struct Answer: Sendable {
    /// The body, a JSON Web Key Set.
    package var body: [UInt8]
    /// The header `Cache-Control`, or nil.
    package var cacheControl: String?

    /// An answer whose status was 200.
    package init(body: [UInt8], cacheControl: String?) {
      self.body = body
      self.cacheControl = cacheControl
    }
  }

  /// Gets the keys at an address; throws when they cannot be had.
  package typealias Fetch = @Sendable (_ url: String) async throws -> Answer

  /// The address of the keys of Firebase's ID tokens.
  package static let idTokensURL =
    "https://www.googleapis.com/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com"
  /// The address of the keys of App Check's tokens.
  package static let appCheckURL = "https://firebaseappcheck.googleapis.com/v1/jwks"

  // Google's servers grant hours; the bounds are for servers that say nothing or nonsense.
  private static let ageDefault = 3600.0
  private static let ageRange = 60.0...86_400.0

  private struct Kept {
    var keys: [String: JWTKeyCollection]
    var fetchedAt: Double
    var goodUntil: Double
  }

  private let url: String
  private let fetch: Fetch
  private let now: @Sendable () -> Double
  private var kept: Kept?
  private var fetching: Task<Kept, any Error>?

  /// The keys at an address, none fetched yet; `now` is in seconds since 1970.
  package init(url: String, now: @escaping @Sendable () -> Double, fetch: @escaping Fetch) {
    self.url = url
    self.now = now
    self.fetch = fetch
  }

  /// The key of this name alone, or nil when there is none; throws when keys cannot be fetched.
  func key(named name: String) async throws -> JWTKeyCollection? {
    let time = now()
    if let kept, time < kept.goodUntil {
      if let key = kept.keys[name] { return key }
      if time < kept.fetchedAt + Self.ageRange.lowerBound { return nil }
    }
    return try await refreshed().keys[name]
  }

  private func refreshed() async throws -> Kept {
    if let fetching { return try await fetching.value }
    // All tasks that wait own the fetch, so that one of them leaving does not fail the others; the
    // duration of the fetch bounds the task.
    let task = Task { [url, fetch, now] in
      let answer = try await fetch(url)
      let set = try JSONDecoder().decode(JWKS.self, from: Data(answer.body))
      var keys: [String: JWTKeyCollection] = [:]
      for key in set.keys where key.keyType == .rsa {
        guard let name = key.keyIdentifier?.string else { continue }
        // Each collection has one key, because a collection falls back to another key for unknown
        // names.
        keys[name] = try await JWTKeyCollection().add(jwk: key)
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

  /// The seconds of `max-age` in a `Cache-Control` header.
  static func maxAge(in header: String?) -> Double? {
    for part in header?.split(separator: ",") ?? [] {
      let directive = part.filter { $0 != " " }.lowercased()
      if directive.hasPrefix("max-age=") { return Double(directive.dropFirst(8)) }
    }
    return nil
  }
}
