import Foundation
import JWTKit
import Synchronization

@testable import Identity

/// An issuer of signed tokens whose keys are served by a stub.
final class SignedTokens: Sendable {
  private struct State {
    var published: [String]
    var fetches = 0
    var cacheControl: String? = "public, max-age=600, must-revalidate"
    var isDown = false
  }

  struct DownError: Error {}

  /// Created once, because creating a key takes longer than all tests that use it.
  private static let keys: [String: Insecure.RSA.PrivateKey] = {
    Dictionary(uniqueKeysWithValues: zip(["k1", "k2", "stranger"], SampleKeys.pems)).mapValues {
      pem in
      guard let key = try? Insecure.RSA.PrivateKey(pem: pem) else { fatalError("a sample key") }
      return key
    }
  }()

  private let state: Mutex<State>
  let time = Mutex(1_800_000_000.0)

  init(publishing keys: [String] = ["k1"]) {
    state = Mutex(State(published: keys))
  }

  var fetches: Int { state.withLock { $0.fetches } }

  func publish(_ keys: [String]) { state.withLock { $0.published = keys } }
  func setDown(_ isDown: Bool) { state.withLock { $0.isDown = isDown } }
  func advance(by seconds: Double) { time.withLock { $0 += seconds } }

  var signingKeys: SigningKeys {
    SigningKeys(url: "https://keys.example", now: now) { _ in try self.answer() }
  }

  var now: @Sendable () -> Double { { self.time.withLock { $0 } } }

  private func answer() throws -> SigningKeys.Answer {
    try state.withLock { state in
      state.fetches += 1
      if state.isDown { throw DownError() }
      let keys = try state.published.map { name in
        guard let key = Self.keys[name] else { fatalError("no key \(name)") }
        let parts = try key.publicKey.getKeyPrimitives()
        return """
          {"kty":"RSA","use":"sig","alg":"RS256","kid":"\(name)",\
          "n":"\(Base64URL.encode(parts.modulus))","e":"\(Base64URL.encode(parts.publicExponent))"}
          """
      }
      return SigningKeys.Answer(
        body: Array(#"{"keys":[\#(keys.joined(separator: ","))]}"#.utf8),
        cacheControl: state.cacheControl
      )
    }
  }

  /// Creates a signed token; `changes` replaces claims, and removes those that are nil.
  func token(
    _ changes: [String: Claim?] = [:],
    key: String = "k1",
    named name: String? = nil
  ) async throws -> String {
    var claims: [String: Claim] = [
      "iss": .text("https://securetoken.google.com/demo"), "aud": .text("demo"),
      "sub": .text("alice"), "iat": .number(1_800_000_000), "exp": .number(1_800_003_600),
      "auth_time": .number(1_800_000_000), "admin": .truth(true),
    ]
    for (name, claim) in changes { claims[name] = claim }
    guard let signer = Self.keys[key] else { fatalError("no key \(key)") }
    let keys = JWTKeyCollection()
    let identifier = JWKIdentifier(string: name ?? key)
    await keys.add(rsa: signer, digestAlgorithm: .sha256, kid: identifier)
    return try await keys.sign(Payload(claims: claims), kid: identifier)
  }

  enum Claim: Codable, Equatable {
    case text(String)
    case number(Double)
    case truth(Bool)
    case texts([String])

    init(from decoder: any Decoder) throws { self = .text("") }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      switch self {
      case .text(let text): try container.encode(text)
      case .number(let number): try container.encode(number)
      case .truth(let truth): try container.encode(truth)
      case .texts(let texts): try container.encode(texts)
      }
    }
  }

  private struct Payload: JWTPayload {
    var claims: [String: Claim]

    init(claims: [String: Claim]) { self.claims = claims }
    init(from decoder: any Decoder) throws { claims = [:] }
    func encode(to encoder: any Encoder) throws { try claims.encode(to: encoder) }
    func verify(using algorithm: some JWTAlgorithm) {}
  }
}
