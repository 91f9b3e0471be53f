import Cryptography
import Foundation
import GoogleAccess
import OutboundHTTP
import StatusCodes
import Testing
import TestSupport

@Suite("Google credentials")
struct GoogleCredentialsTests {
  private let server = ScriptedHTTP.tokenServer()
  private let clock = WallClock(secondsSince1970: 1_795_244_400)
  private let waits = WaitLog()

  private func credentials(
    _ source: CredentialsSource = .metadataServer("metadata.test")
  ) -> GoogleCredentials {
    GoogleCredentials(
      source: source,
      http: server,
      now: clock.date,
      sleep: waits.add
    )
  }

  private func file(_ content: String, in folder: TemporaryFolder) throws -> CredentialsSource {
    let path = folder.path("key-\(content.hashValue).json")
    try content.write(toFile: path, atomically: true, encoding: .utf8)
    return .file(path)
  }

  @Test("The metadata server is asked as it wants to be, once for many calls")
  func metadataServer() async throws {
    let credentials = credentials()

    for _ in 0..<3 { #expect(try await credentials.token() == "token-1") }
    let request = try #require(server.requests.first)
    #expect(server.requests.count == 1)
    #expect(request.headers["Metadata-Flavor"] == "Google")
    #expect(
      request.url.hasPrefix(
        "http://metadata.test/computeMetadata/v1/instance/service-accounts/default/token?scopes="
      )
    )
  }

  // caller 1      fetch ---- held ---------- token-1
  // callers 2…8        wait ------- release  token-1
  @Test("Many callers at once make one request")
  func oneFetch() async throws {
    let credentials = credentials()
    server.hold()

    let tokens = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<8 { group.addTask { try await credentials.token() } }
      await server.wait(for: 1)
      server.release()
      return try await group.reduce(into: []) { $0.append($1) }
    }

    #expect(tokens == Array(repeating: "token-1", count: 8))
    #expect(server.requests.count == 1)
  }

  // caller 1   fetch ---- held -- cancelled
  // caller 2         wait ------------------ fetch -- token-1
  @Test("When the caller that fetches gives up, another fetches in its stead")
  func leaderGivesUp() async throws {
    let credentials = credentials()
    server.hold()

    let leader = Task { try await credentials.token() }
    await server.wait(for: 1)
    let follower = Task { try await credentials.token() }
    leader.cancel()
    server.release()

    let token = try await follower.value
    #expect(token == "token-1")
    await #expect(throws: (any Error).self) { try await leader.value }
  }

  @Test("A token is renewed before its end, and serves on while that fails")
  func renewal() async throws {
    let credentials = credentials()
    #expect(try await credentials.token() == "token-1")

    clock.advance(by: .seconds(3600 - 226))
    #expect(try await credentials.token() == "token-1")
    clock.advance(by: .seconds(2))
    let refusal = ScriptedHTTP.json("", status: 503)
    server.add(refusal, refusal, refusal, refusal)
    #expect(try await credentials.token() == "token-1")
    #expect(server.requests.count == 5)
    #expect(try await credentials.token() == "token-1")
    #expect(server.requests.count == 5)
    clock.advance(by: .seconds(10))
    #expect(try await credentials.token() == "token-2")
  }

  @Test("A token that a service refused is replaced, however fresh, and only once")
  func rejection() async throws {
    let credentials = credentials()
    let first = try await credentials.token()

    credentials.reject(first)
    #expect(try await credentials.token() == "token-2")
    credentials.reject(first)
    #expect(try await credentials.token() == "token-2")
  }

  @Test("What passes is tried again with growing waits, and then reported")
  func backOff() async throws {
    server.add(
      ScriptedHTTP.json("", status: 500),
      .failure(OutboundHTTPError(.timedOut, "h: no")),
      ScriptedHTTP.json("", status: 429)
    )
    #expect(try await credentials().token() == "token-1")
    #expect(waits.all == [.milliseconds(200), .milliseconds(400), .milliseconds(800)])

    let absence = ScriptedHTTP.Answer.failure(OutboundHTTPError(.cannotConnect, "h: no"))
    server.add(absence, absence, absence, absence)
    let error = await #expect(throws: StatusError.self) { try await credentials().token() }
    #expect(error?.statusCode == .failedPrecondition)
    #expect(error?.statusMessage.contains("the metadata server metadata.test does not") == true)
    #expect(error?.statusMessage.contains("GOOGLE_APPLICATION_CREDENTIALS") == true)
  }

  @Test("A refusal is reported at once, in the endpoint's words")
  func refusal() async throws {
    server.add(
      ScriptedHTTP.json(
        #"{"error":"invalid_grant","error_description":"Invalid JWT Signature."}"#,
        status: 400
      )
    )

    let error = await #expect(throws: StatusError.self) { try await credentials().token() }
    #expect(error?.statusCode == .unauthenticated)
    #expect(error?.statusMessage.contains("400, invalid_grant: Invalid JWT Signature.") == true)
    #expect(server.requests.count == 1)
  }

  @Test("A user's refresh token is exchanged at Google's endpoint")
  func user() async throws {
    let folder = try TemporaryFolder()
    let source = try file(
      #"{"type":"authorized_user","client_id":"id","client_secret":"s&t","refresh_token":"1//r"}"#,
      in: folder
    )

    #expect(try await credentials(source).token() == "token-1")
    let request = try #require(server.requests.first)
    #expect(request.url == "https://oauth2.googleapis.com/token")
    #expect(
      String(decoding: request.body, as: UTF8.self)
        == "grant_type=refresh_token&client_id=id&client_secret=s%26t&refresh_token=1%2F%2Fr"
    )
  }

  private func serviceAccount(_ pem: String) throws -> String {
    let fields = [
      "type": "service_account", "client_email": "a@b", "private_key_id": "k1",
      "private_key": pem, "token_uri": "https://tokens.example",
    ]
    return String(decoding: try JSONEncoder().encode(fields), as: UTF8.self)
  }

  @Test("The key of a service account signs an assertion of an hour, by RS256")
  func assertion() async throws {
    let folder = try TemporaryFolder()
    let source = try file(try serviceAccount(SampleKeys.pems[0]), in: folder)

    #expect(try await credentials(source).token() == "token-1")
    let request = try #require(server.requests.first)
    #expect(request.url == "https://tokens.example")
    let body = String(decoding: request.body, as: UTF8.self)
    let start = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="
    #expect(body.hasPrefix(start))
    let parts = body.dropFirst(start.count).split(separator: ".")
    try #require(parts.count == 3)
    func json(_ part: Substring) throws -> [String: Any] {
      let bytes = try #require(Base64URL.decodeCanonical(part))
      return try #require(
        try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any]
      )
    }
    let header = try json(parts[0])
    #expect(header as? [String: String] == ["alg": "RS256", "typ": "JWT", "kid": "k1"])
    let claims = try json(parts[1])
    #expect(claims["iss"] as? String == "a@b")
    #expect(claims["aud"] as? String == "https://tokens.example")
    let scopes = (claims["scope"] as? String)?.split(separator: " ").compactMap {
      $0.split(separator: "/").last
    }
    #expect(scopes == ["cloud-platform", "firebase.database", "userinfo.email"])
    #expect(claims["iat"] as? Int == 1_795_244_400)
    #expect(claims["exp"] as? Int == 1_795_248_000)
    let modulus = try #require(Base64URL.decode(SampleKeys.moduli[0]))
    let key = try RSAPublicKey(modulus: modulus, exponent: [1, 0, 1])
    let signature = try #require(Base64URL.decodeCanonical(parts[2]))
    #expect(key.isValid(signature, for: Array("\(parts[0]).\(parts[1])".utf8)))
  }

  @Test("A key of a service account that is too short is refused before any request")
  func shortKey() async throws {
    let folder = try TemporaryFolder()
    let source = try file(try serviceAccount(SampleKeys.shortPEM), in: folder)

    let error = await #expect(throws: StatusError.self) { try await credentials(source).token() }
    #expect(error?.statusCode == .failedPrecondition)
    #expect(error?.statusMessage.contains("The private_key of a@b is not an RSA key") == true)
    #expect(error?.statusMessage.contains("1024 bits") == true)
    #expect(server.requests.isEmpty)
  }

  @Test(
    "A file that is none says why, and shows no key",
    arguments: [
      ("", "is not a JSON object"), ("[]", "is not a JSON object"),
      (#"{"type":"external_account"}"#, "is of type external_account"),
      (#"{"type":"service_account","client_email":"a@b"}"#, "has no private_key"),
      (
        #"{"type":"service_account","client_email":"a@b","private_key":"SECRET"}"#,
        "The private_key of a@b is not an RSA key"
      ),
      (
        #"{"type":"service_account","client_email":"a@b","private_key":"k","token_uri":"http://x"}"#,
        "token_uri that is not https"
      ),
    ]
  )
  func badFiles(content: String, words: String) async throws {
    let folder = try TemporaryFolder()
    let source = try file(content, in: folder)

    let error = await #expect(throws: StatusError.self) { try await credentials(source).token() }
    #expect(error?.statusCode == .failedPrecondition)
    #expect(error?.statusMessage.contains(words) == true, "\(error?.statusMessage ?? "")")
    #expect("\(String(describing: error))".contains("SECRET") == false)
    #expect(server.requests.isEmpty)
  }

  @Test("An environment names a key file, a metadata server, Cloud Run, or nothing")
  func environments() {
    let key = ["GOOGLE_APPLICATION_CREDENTIALS": "/k.json", "K_SERVICE": "s"]

    #expect(CredentialsSource(environment: key) == .file("/k.json"))
    #expect(
      CredentialsSource(environment: ["GCE_METADATA_HOST": "127.0.0.1:9"])
        == .metadataServer("127.0.0.1:9")
    )
    #expect(
      CredentialsSource(environment: ["K_SERVICE": "s"])
        == .metadataServer("metadata.google.internal")
    )
    #expect(CredentialsSource(environment: ["GOOGLE_APPLICATION_CREDENTIALS": ""]) == nil)
    #expect(CredentialsSource.file("/nowhere.json").project == nil)
  }
}
