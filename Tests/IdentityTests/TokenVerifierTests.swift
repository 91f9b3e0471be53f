import Cryptography
import StatusCodes
import Testing

@testable import Identity

@Suite("Signed tokens")
struct TokenVerifierTests {
  private func reader(_ issuer: SignedTokens) -> CredentialReader {
    CredentialReader(
      mode: .production,
      idTokens: .idTokens(project: "demo", keys: issuer.signingKeys, now: issuer.now),
      appTokens: .appCheck(project: "demo", keys: issuer.signingKeys, now: issuer.now)
    )
  }

  private func refusal(_ reader: CredentialReader, _ token: String) async -> StatusError? {
    await #expect(throws: StatusError.self) {
      _ = try await reader.verify(authorization: "Bearer \(token)")
    }
  }

  @Test("A token that its issuer signed for the project names its user, with all claims")
  func accepted() async throws {
    let issuer = SignedTokens()
    let reader = reader(issuer)

    guard
      case .user(let user) = try await reader.verify(
        authorization: "bearer \(try issuer.token())"
      )
    else {
      Issue.record("not a user")
      return
    }
    #expect(user.uid == "alice")
    #expect(user.claimsJSON.contains(#""admin":true"#))
    #expect(try await reader.verify(authorization: nil) == .unauthenticated)
  }

  @Test(
    "A claim that is wrong or missing is refused, and the message says which",
    arguments: [
      ("iss", .text("https://securetoken.google.com/other"), "issuer"),
      ("iss", nil, "issuer"),
      ("aud", .text("other"), "another project"),
      ("aud", nil, "another project"),
      ("sub", .text(""), "'sub'"),
      ("sub", nil, "'sub'"),
      ("sub", .text(String(repeating: "x", count: 129)), "'sub'"),
      ("exp", .number(1_800_000_000), "expired"),
      ("exp", nil, "expired"),
      ("iat", .number(1_800_000_011), "future"),
      ("iat", nil, "future"),
      ("auth_time", .number(1_800_000_011), "auth_time"),
      ("auth_time", nil, "auth_time"),
    ] as [(String, SignedTokens.Claim?, String)]
  )
  func claims(name: String, value: SignedTokens.Claim?, message: String) async throws {
    let issuer = SignedTokens()
    let refusal = await refusal(reader(issuer), try issuer.token([name: value]))

    #expect(refusal?.statusCode == .unauthenticated)
    #expect(refusal?.statusMessage.contains(message) == true)
    // Only an expired token can be renewed, so only its refusal has a reason for the app.
    #expect(refusal?.statusDetails.isEmpty == (name != "exp"))
  }

  @Test("A subject of 128 characters and clocks ten seconds apart are accepted")
  func bounds() async throws {
    let issuer = SignedTokens()
    let token = try issuer.token([
      "sub": .text(String(repeating: "x", count: 128)), "iat": .number(1_800_000_010),
      "auth_time": .number(1_800_000_010),
    ])

    _ = try await reader(issuer).verify(authorization: "Bearer \(token)")
  }

  @Test("Another key, a changed payload, another algorithm and no signature are refused")
  func signatures() async throws {
    let issuer = SignedTokens()
    let reader = reader(issuer)
    let good = try issuer.token()
    let parts = good.split(separator: ".").map(String.init)
    let other = try issuer.token(["sub": .text("mallory")]).split(separator: ".")
    let hmac = Base64URL.encode(#"{"alg":"HS256","kid":"k1"}"#.utf8)
    let none = Base64URL.encode(#"{"alg":"none","kid":"k1"}"#.utf8)
    let tokens = [
      ("\(parts[0]).\(other[1]).\(parts[2])", "signature does not fit"),
      (try issuer.token(key: "stranger", named: "k1"), "signature does not fit"),
      (try issuer.token(key: "stranger"), "key is not known"),
      ("\(hmac).\(parts[1]).\(parts[2])", "RS256"),
      ("\(none).\(parts[1]).", "emulator only"),
      ("owner", "emulator only"),
      ("a.b", "three parts"),
    ]
    for (token, message) in tokens {
      let refusal = await refusal(reader, token)

      #expect(refusal?.statusCode == .unauthenticated)
      #expect(refusal?.statusMessage.contains(message) == true, "\(message)")
    }
  }

  @Test("Keys are fetched once for as long as their server allows, and once for many at a time")
  func caching() async throws {
    let issuer = SignedTokens()
    let reader = reader(issuer)
    let token = try issuer.token(["exp": .number(1_900_000_000)])
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<10 {
        group.addTask { _ = try await reader.verify(authorization: "Bearer \(token)") }
      }
      try await group.waitForAll()
    }
    #expect(issuer.fetches == 1)
    issuer.advance(by: 599)
    _ = try await reader.verify(authorization: "Bearer \(token)")
    #expect(issuer.fetches == 1)
    issuer.advance(by: 1)
    _ = try await reader.verify(authorization: "Bearer \(token)")
    #expect(issuer.fetches == 2)
  }

  @Test("A rotated key is found by looking once more, but not more than once a minute")
  func rotation() async throws {
    let issuer = SignedTokens()
    let reader = reader(issuer)
    let new = try issuer.token(key: "k2")
    _ = try await reader.verify(authorization: "Bearer \(try issuer.token())")
    issuer.publish(["k1", "k2"])

    #expect(await refusal(reader, new)?.statusMessage.contains("not known") == true)
    #expect(issuer.fetches == 1)
    issuer.advance(by: 60)
    _ = try await reader.verify(authorization: "Bearer \(new)")
    #expect(issuer.fetches == 2)
  }

  @Test("While keys cannot be fetched tokens are refused, and the next one tries again")
  func keysUnavailable() async throws {
    let issuer = SignedTokens()
    let reader = reader(issuer)
    issuer.setDown(true)
    let token = try issuer.token()

    let refusal = await refusal(reader, token)
    #expect(refusal?.statusCode == .unauthenticated)
    #expect(refusal?.statusMessage.contains("cannot be fetched") == true)
    issuer.setDown(false)
    _ = try await reader.verify(authorization: "Bearer \(token)")
  }

  @Test(
    "Without a project all tokens are refused, and the emulator believes signed ones unverified"
  )
  func modes() async throws {
    let issuer = SignedTokens()
    let token = try issuer.token(key: "stranger")

    #expect(
      await refusal(CredentialReader(mode: .production), token)?.statusMessage
        .contains("GCLOUD_PROJECT") == true
    )
    guard
      case .user(let user) = try await CredentialReader(mode: .emulator)
        .verify(authorization: "Bearer \(token)")
    else {
      Issue.record("not a user")
      return
    }
    #expect(user.uid == "alice")
  }

  @Test("App Check tokens name their app; issuer and audience are App Check's own")
  func appCheck() async throws {
    let issuer = SignedTokens()
    let reader = reader(issuer)
    let claims: [String: SignedTokens.Claim?] = [
      "iss": .text("https://firebaseappcheck.googleapis.com/1234"),
      "aud": .texts(["projects/1234", "projects/demo"]), "sub": .text("1:1234:ios:5678"),
      "auth_time": nil,
    ]
    let good = try issuer.token(claims)

    #expect(try await reader.verifyApp(token: good).appID == "1:1234:ios:5678")
    let foreign = try issuer.token(claims.merging(["aud": .text("projects/x")]) { $1 })
    for token in [try issuer.token(), foreign] {
      await #expect(throws: StatusError.self) { _ = try await reader.verifyApp(token: token) }
    }
    #expect(!reader.consume(appToken: good))
    #expect(reader.consume(appToken: good))
    #expect(!reader.consume(appToken: foreign))
  }

  @Test(
    "The age of keys is the max-age of Cache-Control",
    arguments: [
      ("public, max-age=19302, must-revalidate", 19302), ("Max-Age = 5", 5), ("no-cache", nil),
      (nil, nil),
    ] as [(String?, Double?)]
  )
  func maxAge(header: String?, age: Double?) {
    #expect(SigningKeys.maxAge(in: header) == age)
  }
}
