import Cryptography
import StatusCodes
import TestSupport
import Testing

@testable import Identity

/// Tokens of attackers who know the issuer's public keys and valid tokens of other users.
@Suite("Hostile tokens")
struct HostileTokenTests {
  private let issuer = SignedTokens()

  private func message(_ token: String) async -> String {
    let verifier = TokenVerifier.idTokens(
      project: "demo",
      keys: issuer.signingKeys,
      now: issuer.now
    )
    let error = await #expect(throws: StatusError.self) { try await verifier.verify(token) }
    #expect(error?.statusCode == .unauthenticated)
    #expect(error?.statusMessage.contains(token.prefix(40)) != true || token.isEmpty)
    return error?.statusMessage ?? ""
  }

  private func isAccepted(_ token: String) async -> Bool {
    let verifier = TokenVerifier.idTokens(
      project: "demo",
      keys: issuer.signingKeys,
      now: issuer.now
    )
    return (try? await verifier.verify(token)) != nil
  }

  private func parts(_ token: String) -> [String] {
    token.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
  }

  @Test("A token that the openssl command has signed is accepted")
  func knownToken() async {
    #expect(await isAccepted(Self.knownToken))
  }

  @Test(
    "Another algorithm than RS256 is refused, in any letter case and with any signature",
    arguments: [
      #""none""#, #""None""#, #""NONE""#, #""nOnE""#, #""HS256""#, #""ES256""#, #""PS256""#,
      #""RS512""#, #""RS1""#, #""rs256""#, #""RS256 ""#, #""""#, "null", "0", #"["RS256"]"#,
    ]
  )
  func algorithms(name: String) async throws {
    let token = try issuer.sign(
      header: #"{"alg":\#(name),"kid":"k1"}"#,
      payload: SignedTokens.payload
    )
    let parts = parts(token)

    #expect(await message(token).contains("RS256"))
    #expect(await message("\(parts[0]).\(parts[1]).").contains("emulator only"))
  }

  @Test("A token without an algorithm is refused")
  func noAlgorithm() async throws {
    let token = try issuer.sign(header: #"{"kid":"k1"}"#, payload: SignedTokens.payload)

    #expect(await message(token).contains("RS256"))
  }

  @Test("The public key is no secret of HMAC, in PEM or as a number, and neither is an empty text")
  func publicKeyAsSecret() async throws {
    let payload = Base64URL.encode(SignedTokens.payload.utf8)
    let modulus = try #require(Base64URL.decode(SampleKeys.moduli[0]))
    let pem = SampleKeys.publicPEM
    for secret in [Array(pem.utf8), Array(pem.dropLast().utf8), modulus, []] {
      for algorithm in ["HS256", "RS256"] {
        let header = Base64URL.encode(#"{"alg":"\#(algorithm)","kid":"k1"}"#.utf8)
        let text = "\(header).\(payload)"
        let code = HMACSHA256.code(for: Array(text.utf8), key: secret)
        let message = await message("\(text).\(Base64URL.encode(code))")

        #expect(message.contains(algorithm == "RS256" ? "signature does not fit" : "RS256"))
      }
    }
  }

  @Test("A signature that is cut, longer, empty or in another text is refused")
  func signatures() async throws {
    let token = try issuer.token()
    let parts = parts(token)
    let signature = try #require(Base64URL.decode(parts[2]))
    let last = try #require(parts[2].last)
    let changed: [String] = [
      "", "A", String(parts[2].dropLast()), String(parts[2].dropLast(4)),
      Base64URL.encode(signature.dropLast()), Base64URL.encode(signature + [0]),
      Base64URL.encode([0] + signature), parts[2] + parts[2],
      // The same bytes: only the unused bits at the end are set.
      parts[2].dropLast() + ["A": "B", "Q": "R", "g": "h", "w": "x"][last, default: "-"],
    ]
    for signature in changed {
      let message = await message("\(parts[0]).\(parts[1]).\(signature)")

      #expect(message.contains("signature does not fit"))
    }
    #expect(await isAccepted(token))
  }

  @Test("Padding, spaces, standard base64 and a wrong number of parts are refused")
  func form() async throws {
    let token = try issuer.token()
    let parts = parts(token)
    let refused = [
      "\(token)=", "\(token)==", "\(parts[0])=.\(parts[1]).\(parts[2])",
      "\(parts[0])==.\(parts[1]).\(parts[2])", "\(parts[0]).\(parts[1])=.\(parts[2])",
      " \(token)", "\(token) ", "\(token)\n", "\(parts[0]). \(parts[1]).\(parts[2])",
      "\(parts[0]).\(parts[1]).\(parts[2].replacing("-", with: "+"))+/",
      ".\(token)", "\(token).", "\(token).\(parts[2])", "\(parts[0]).\(parts[1])", "..", "",
      "\(parts[0])..\(parts[1]).\(parts[2])",
    ]
    for token in refused {
      let message = await message(token)

      #expect(["base64url", "three parts", "JSON"].contains { message.contains($0) }, "\(message)")
    }
  }

  @Test(
    "Two members of one name are refused, at any depth, and so is an escaped name",
    arguments: [
      (#"{"alg":"none","alg":"RS256","kid":"k1"}"#, nil),
      (#"{"alg":"RS256","alg":"none","kid":"k1"}"#, nil),
      (#"{"alg":"RS256","kid":"k2","kid":"k1"}"#, nil),
      (nil, #""sub":"mallory""#), (nil, #""s\u0075b":"mallory""#),
      (nil, #""firebase":{"a":1,"a":2}"#), (nil, #""list":[{"a":1,"a":1}]"#),
    ] as [(String?, String?)]
  )
  func duplicates(header: String?, member: String?) async throws {
    let token = try issuer.sign(
      header: header ?? #"{"alg":"RS256","kid":"k1"}"#,
      payload: SignedTokens.payload.dropLast() + (member.map { ",\($0)" } ?? "") + "}"
    )

    let message = await message(token)

    // Of two algorithms in the header, either may be the one that is read.
    #expect(message.contains("two members") || header != nil && message.contains("RS256"))
  }

  @Test("Keys in the header are ignored; the issuer's key of that name decides")
  func ownKeys() async throws {
    let key = #"{"kty":"RSA","kid":"k1","n":"\#(SampleKeys.moduli[2])","e":"AQAB"}"#
    for member in [#""jwk":\#(key)"#, #""jku":"https://evil.example/keys""#, #""x5c":["MIIB"]"#] {
      let token = try issuer.sign(
        header: #"{"alg":"RS256","kid":"k1",\#(member)}"#,
        payload: SignedTokens.payload,
        key: "stranger"
      )

      #expect(await message(token).contains("signature does not fit"))
    }
  }

  @Test("A token must name the key that has signed it, exactly")
  func keyNames() async throws {
    issuer.publish(["k1", "k2"])
    for name in [#""K1""#, #""k1 ""#, #""""#, #""../k1""#] {
      let token = try issuer.sign(
        header: #"{"alg":"RS256","kid":\#(name)}"#,
        payload: SignedTokens.payload
      )
      #expect(await message(token).contains("key is not known"))
    }
    for name in ["null", "1", #"["k1"]"#] {
      let token = try issuer.sign(
        header: #"{"alg":"RS256","kid":\#(name)}"#,
        payload: SignedTokens.payload
      )
      #expect(await message(token).contains("does not name its key"))
    }
    #expect(await message(try issuer.token(named: "k2")).contains("signature does not fit"))
    #expect(await isAccepted(try issuer.token(key: "k2")))
  }

  @Test("An extension that must be understood is refused")
  func critical() async throws {
    for value in [#"["exp"]"#, "[]", "null"] {
      let token = try issuer.sign(
        header: #"{"alg":"RS256","kid":"k1","crit":\#(value),"exp":1}"#,
        payload: SignedTokens.payload
      )
      #expect(await message(token).contains("'crit'"))
    }
  }

  @Test("A token of more than 16 KiB is refused before it is decoded, and one of nearly so is not")
  func size() async throws {
    func token(_ count: Int) throws -> String {
      try issuer.token(["filler": .text(String(repeating: "x", count: count))])
    }

    #expect(await isAccepted(try token(11_000)))
    #expect(await message(try token(12_000)).contains("longer than 16384"))
    #expect(await message(String(repeating: ".", count: 10_000_000)).contains("longer"))
    #expect(await message(String(repeating: ".", count: 16_384)).contains("three parts"))
    let deep = String(repeating: "[", count: 8000)
    let nested = try issuer.sign(header: deep, payload: SignedTokens.payload)
    #expect(await message(nested).contains("JSON"))
  }

  @Test("A published key that is too short or of another use verifies nothing; the others do")
  func publishedKeys() async throws {
    let modulus = SampleKeys.moduli[0]
    issuer.publish(others: [
      #"{"kty":"RSA","kid":"short","n":"\#(SampleKeys.shortModulus)","e":"AQAB"}"#,
      #"{"kty":"RSA","kid":"a","use":"enc","n":"\#(modulus)","e":"AQAB"}"#,
      #"{"kty":"RSA","kid":"b","alg":"RS512","n":"\#(modulus)","e":"AQAB"}"#,
      #"{"kty":"RSA","kid":"c","n":"\#(modulus)","e":"AQ"}"#,
      #"{"kty":"RSA","kid":"d","n":"\#(modulus)=","e":"AQAB"}"#,
      #"{"kty":"RSA","kid":"e","n":"\#(modulus)"}"#,
      #"{"kty":"oct","kid":"f","k":"AAAA"}"#,
      #"{"kty":"EC","kid":"g","crv":"P-256","x":"AA","y":"AA"}"#,
      #"{"kty":"RSA","n":"\#(modulus)","e":"AQAB"}"#,
    ])

    for name in ["a", "b", "c", "d", "e", "f", "g", ""] {
      #expect(await message(try issuer.token(named: name)).contains("key is not known"))
    }
    // Its signature is right.
    #expect(await message(Self.shortKeysToken).contains("key is not known"))
    #expect(await isAccepted(try issuer.token()))
  }

  @Test("A consumed App Check token stays consumed in every accepted form")
  func consumed() async throws {
    let reader = CredentialReader(
      mode: .production,
      appTokens: .appCheck(project: "demo", keys: issuer.signingKeys, now: issuer.now)
    )
    let token = try issuer.token([
      "iss": .text("https://firebaseappcheck.googleapis.com/1"), "aud": .text("projects/demo"),
    ])
    _ = try await reader.verifyApp(token: token)
    #expect(!reader.consume(appToken: token))

    let last = try #require(token.last)
    let other = token.dropLast() + ["A": "B", "Q": "R", "g": "h", "w": "x"][last, default: "-"]
    await #expect(throws: StatusError.self) { try await reader.verifyApp(token: String(other)) }
    #expect(reader.consume(appToken: token))
  }

  private static let knownToken = """
    eyJhbGciOiJSUzI1NiIsImtpZCI6ImsxIn0.eyJpc3MiOiJodHRwczovL3NlY3VyZXRva2VuLmdvb2dsZS5jb20v\
    ZGVtbyIsImF1ZCI6ImRlbW8iLCJzdWIiOiJhbGljZSIsImlhdCI6MTgwMDAwMDAwMCwiZXhwIjoxODAwMDAzNjAw\
    LCJhdXRoX3RpbWUiOjE4MDAwMDAwMDB9.JyfuesfWgX3Qvya75SEnswZl1LlUzWS0HFNPoZIrYUgWTkJnqAzLdXy\
    nIACAcVL7AqfG4A92MpN-Mz3Gsh10nLzKJIxdoyfjSpIbOsg6bFjBeRhKuMkOD-ZStAkj4c4vE4DJ-Y6O78CCeRI\
    jl8cwjQVQt6t8gcIa7qmn93QnU-k4sIsR_Op9ZlifwJMWaFR8Lpx9EvzAzwqYhI5di8x7Wb_gcKKqlKUK6QE137A\
    C1sVFQ-SjMbsP2XAt0p8gcZiKclogIyyjoT0DudlOWutq3JaR2THaBZUv1YJboJc1iozdpt6-4kO0Sei_1P0D9c4\
    QVRaD7AyIg4YJYTQ1TS7PmQ
    """

  /// A token that is signed with the short key.
  private static let shortKeysToken = """
    eyJhbGciOiJSUzI1NiIsImtpZCI6InNob3J0In0.eyJpc3MiOiJodHRwczovL3NlY3VyZXRva2VuLmdvb2dsZS5j\
    b20vZGVtbyIsImF1ZCI6ImRlbW8iLCJzdWIiOiJhbGljZSIsImlhdCI6MTgwMDAwMDAwMCwiZXhwIjoxODAwMDAz\
    NjAwLCJhdXRoX3RpbWUiOjE4MDAwMDAwMDB9.sRvCr6kd7R7Q7o0CCnjOcbgLLALQ4YzfpR5bmsY6gRVt8gV8GDU\
    No8yKuVKMzhxW2kIH9k2JUd-xVeiML7jT1Ia-fUu7RasmkU8l-hFGKcwAHgN46f6RMsLXiIMaEArR5kmaY_1WD-Y\
    __LxzgqT-1FeUFuhY-IMP6P33Wg3in-Y
    """
}
