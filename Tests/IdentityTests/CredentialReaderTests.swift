import Cryptography
import StatusCodes
import Testing

@testable import Identity

@Suite("Credentials")
struct CredentialReaderTests {
  private let emulator = CredentialReader(mode: .emulator)
  private let production = CredentialReader(mode: .production)

  private func token(header: String = #"{"alg":"none"}"#, payload: String, signature: String = "")
    -> String
  {
    [Base64URL.encode(header.utf8), Base64URL.encode(payload.utf8), signature].joined(
      separator: "."
    )
  }

  private func refusal(of header: String, by reader: CredentialReader) -> StatusError? {
    #expect(throws: StatusError.self) { try reader.authenticate(authorization: header) }
  }

  @Test("No header is unauthenticated, in either mode")
  func noHeader() throws {
    #expect(try emulator.authenticate(authorization: nil) == .unauthenticated)
    #expect(try production.authenticate(authorization: nil) == .unauthenticated)
  }

  @Test("owner is the administrator", arguments: ["Bearer owner", "bearer owner", "BEARER  owner"])
  func owner(header: String) throws {
    #expect(try emulator.authenticate(authorization: header) == .admin)
  }

  @Test("A token names its user by sub, else by user_id; expiry and signature are not looked at")
  func users() throws {
    let payloads = [
      #"{"sub":"alice","exp":1}"#, #"{"user_id":"alice"}"#, #"{"sub":"","user_id":"alice"}"#,
      #"{"sub":"alice","user_id":"bob"}"#,
    ]
    for payload in payloads {
      for signature in ["", "c2ln"] {
        let header = "Bearer \(token(payload: payload, signature: signature))"

        #expect(
          try emulator.authenticate(authorization: header)
            == .user(UserIdentity(uid: "alice", claimsJSON: payload))
        )
      }
    }
  }

  @Test(
    "Anything else is refused as UNAUTHENTICATED",
    arguments: [
      "", "Bearer", "Bearer ", "owner", "Basic owner", "Bearer owner x", "Bearer Owner",
      "Bearer a.b", "Bearer a.b.c.d", "Bearer ..", "Bearer !!.!!.", "Bearer notatoken",
    ]
  )
  func refused(header: String) {
    #expect(refusal(of: header, by: emulator)?.statusCode == .unauthenticated)
  }

  @Test(
    "A token without a usable payload is refused",
    arguments: [
      "{}", #"{"sub":""}"#, #"{"sub":7}"#, "[]", "not json", #""text""#, #"{"sub":null}"#, "",
    ]
  )
  func payloadRefused(payload: String) {
    #expect(
      refusal(of: "Bearer \(token(payload: payload))", by: emulator)?.statusCode
        == .unauthenticated
    )
  }

  @Test("A header that is not JSON, a foreign character in the signature or a giant is refused")
  func shapeRefused() {
    let good = #"{"sub":"alice"}"#
    let tokens = [
      token(header: "none", payload: good), token(payload: good, signature: "a+b"),
      token(payload: #"{"sub":"\#(String(repeating: "a", count: 20_000))"}"#),
    ]
    for text in tokens {
      #expect(refusal(of: "Bearer \(text)", by: emulator)?.statusCode == .unauthenticated)
    }
  }

  @Test("What reads without verifying refuses everything in production")
  func productionRefuses() throws {
    let payload = #"{"sub":"alice"}"#

    for credential in [
      "owner", token(payload: payload), token(payload: payload, signature: "c2ln"),
    ] {
      #expect(
        refusal(of: "Bearer \(credential)", by: production)?.statusMessage.contains("Unsigned")
          == true
      )
    }
  }

  @Test("A refusal never repeats the token")
  func noEcho() {
    let secret = "c2VjcmV0"
    #expect(refusal(of: "Bearer \(secret)", by: emulator)?.statusMessage.contains(secret) == false)
  }
}

@Suite("Unsigned tokens")
struct UnsignedTokenTests {
  @Test("An issued token signs its user in and carries extra claims, which win")
  func issued() throws {
    let token = try UnsignedTokenIssuer.issue(
      uid: "a/ü",
      project: "demo-psst",
      claims: ["admin": "yes", "aud": "other"]
    )

    #expect(token.hasSuffix("."))
    guard
      case .user(let user) = try CredentialReader(mode: .emulator)
        .authenticate(authorization: "Bearer \(token)")
    else {
      Issue.record("not a user")
      return
    }
    #expect(user.uid == "a/ü")
    #expect(user.claimsJSON.contains(#""admin":"yes""#))
    #expect(user.claimsJSON.contains(#""aud":"other""#))
    #expect(user.claimsJSON.contains(#""iss":"https://securetoken.google.com/demo-psst""#))
    #expect(user.claimsJSON.contains(#""sign_in_provider":"custom""#))
  }

  @Test("A token that was decoded before stands for itself only")
  func knownTokens() throws {
    let reader = CredentialReader(mode: .emulator)
    let alice = try UnsignedTokenIssuer.issue(uid: "alice")
    let bob = try UnsignedTokenIssuer.issue(uid: "bob")
    for _ in 0..<2 {
      for (token, uid) in [(alice, "alice"), (bob, "bob")] {
        guard case .user(let user) = try reader.authenticate(token: token) else {
          Issue.record("no user")
          continue
        }
        #expect(user.uid == uid)
      }
    }
    // Swift's strings treat the Kelvin sign as equal to K, but it is not a base64 character.
    let token = try UnsignedTokenIssuer.issue(uid: "***")
    let alike = token.replacing("K", with: "\u{212A}")
    try #require(alike == token && Array(alike.utf8) != Array(token.utf8))
    _ = try reader.authenticate(token: token)
    #expect(throws: StatusError.self) { try reader.authenticate(token: alike) }
  }
}
