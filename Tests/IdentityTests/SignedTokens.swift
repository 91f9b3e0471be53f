import Cryptography
import Foundation
import Synchronization
import TestSupport

@testable import Identity

/// An issuer of signed tokens whose keys are served by a stub.
final class SignedTokens: Sendable {
  private struct State {
    var published: [String]
    var others: [String] = []
    var fetches = 0
    var cacheControl: String? = "public, max-age=600, must-revalidate"
    var isDown = false
  }

  struct DownError: Error {}

  private static let names = ["k1", "k2", "stranger"]

  private static let keys: [String: RSAPrivateKey] = {
    Dictionary(uniqueKeysWithValues: zip(names, SampleKeys.pems)).mapValues { pem in
      guard let key = try? RSAPrivateKey(pem: pem) else { fatalError("a sample key") }
      return key
    }
  }()

  private let state: Mutex<State>
  private let clock = WallClock(secondsSince1970: 1_800_000_000)

  init(publishing keys: [String] = ["k1"]) {
    state = Mutex(State(published: keys))
  }

  var fetches: Int { state.withLock { $0.fetches } }

  func publish(_ keys: [String]) { state.withLock { $0.published = keys } }
  /// Publishes JSON Web Keys beside the issuer's own.
  func publish(others: [String]) { state.withLock { $0.others = others } }
  func setDown(_ isDown: Bool) { state.withLock { $0.isDown = isDown } }
  func advance(by seconds: Int) { clock.advance(by: .seconds(seconds)) }

  var signingKeys: SigningKeys {
    SigningKeys(url: "https://keys.example", now: now) { _ in try self.answer() }
  }

  var now: @Sendable () -> Double { { self.clock.date().timeIntervalSince1970 } }

  private func answer() throws -> SigningKeys.Answer {
    try state.withLock { state in
      state.fetches += 1
      if state.isDown { throw DownError() }
      let keys =
        state.others
        + state.published.map { name in
          let modulus = SampleKeys.moduli[Self.names.firstIndex(of: name) ?? 0]
          return """
            {"kty":"RSA","use":"sig","alg":"RS256","kid":"\(name)","n":"\(modulus)","e":"AQAB"}
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
  ) throws -> String {
    var claims: [String: Claim] = [
      "iss": .text("https://securetoken.google.com/demo"), "aud": .text("demo"),
      "sub": .text("alice"), "iat": .number(1_800_000_000), "exp": .number(1_800_003_600),
      "auth_time": .number(1_800_000_000), "admin": .truth(true),
    ]
    for (name, claim) in changes { claims[name] = claim }
    return try sign(
      header: #"{"alg":"RS256","typ":"JWT","kid":"\#(name ?? key)"}"#,
      payload: String(decoding: JSONEncoder().encode(claims), as: UTF8.self),
      key: key
    )
  }

  /// Creates a token of any header and payload, signed by RS256.
  func sign(header: String, payload: String, key: String = "k1") throws -> String {
    guard let signer = Self.keys[key] else { fatalError("no key \(key)") }
    let text = "\(Base64URL.encode(header.utf8)).\(Base64URL.encode(payload.utf8))"
    return "\(text).\(Base64URL.encode(try signer.signature(for: Array(text.utf8))))"
  }

  /// The payload of a valid token.
  static let payload = """
    {"iss":"https://securetoken.google.com/demo","aud":"demo","sub":"alice",\
    "iat":1800000000,"exp":1800003600,"auth_time":1800000000}
    """

  enum Claim: Encodable, Equatable {
    case text(String)
    case number(Double)
    case truth(Bool)
    case texts([String])

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
}
