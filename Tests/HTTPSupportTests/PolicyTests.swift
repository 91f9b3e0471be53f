import HTTPMessages
import HTTPSupport
import HTTPTypes
import NIOCore
import StatusCodes
import Testing

private func request(
  _ method: HTTPRequest.Method = .get,
  path: String = "/",
  authority: String? = "localhost:5001",
  headers: HTTPFields = [:]
) -> Request {
  Request(
    head: HTTPRequest(
      method: method,
      scheme: "http",
      authority: authority,
      path: path,
      headerFields: headers
    )
  )
}

@Suite("CORS policy")
struct CORSPolicyTests {
  @Test("A callable's preflight reflects origin and headers and allows POST")
  func callablePreflight() throws {
    let preflight = try #require(
      CORSPolicy.callables.preflight(
        request(
          .options,
          headers: [
            .origin: "https://a.example", .accessControlRequestHeaders: "authorization,x-b",
          ]
        ).head
      )
    )

    #expect(preflight.status == .noContent)
    #expect(preflight.headerFields[.accessControlAllowOrigin] == "https://a.example")
    #expect(preflight.headerFields[.accessControlAllowMethods] == "POST")
    #expect(preflight.headerFields[.accessControlAllowHeaders] == "authorization,x-b")
    #expect(preflight.headerFields[.vary] == "Origin, Access-Control-Request-Headers")
    #expect(preflight.headerFields[.contentLength] == "0")
    #expect(preflight.headerFields[.accessControlAllowCredentials] == nil)
  }

  @Test("Firestore's preflight is a 200 that allows credentials and exposes its headers")
  func firestorePreflight() throws {
    let preflight = try #require(
      CORSPolicy.firestore.preflight(
        request(.options, headers: [.origin: "https://a.example"]).head
      )
    )

    #expect(preflight.status == .ok)
    #expect(preflight.headerFields[.accessControlAllowCredentials] == "true")
    #expect(
      preflight.headerFields[.accessControlAllowMethods] == "GET,POST,PUT,PATCH,DELETE,HEAD"
    )
    #expect(
      preflight.headerFields[.accessControlExposeHeaders]?.contains("X-HTTP-Session-Id") == true
    )
  }

  @Test("Other methods are no preflight; their replies get origin and Vary, errors too")
  func replies() {
    let post = request(.post, headers: [.origin: "https://a.example"])
    var reply = Response.error(.unauthenticated, "No.")
    CORSPolicy.callables.apply(to: &reply.head, for: post.head)
    var plain = Response.text("x")
    plain.headers[.vary] = "Accept"
    CORSPolicy.callables.apply(to: &plain.head, for: request(.post).head)

    #expect(CORSPolicy.callables.preflight(post.head) == nil)
    #expect(reply.headers[.accessControlAllowOrigin] == "https://a.example")
    #expect(reply.headers[.vary] == "Origin")
    #expect(plain.headers[.accessControlAllowOrigin] == nil)
    #expect(plain.headers[.vary] == "Accept, Origin")
  }
}

@Suite("Network access policy")
struct NetworkAccessPolicyTests {
  private func refusal(
    _ headers: HTTPFields = [:],
    host: String? = "127.0.0.1:8080",
    by policy: NetworkAccessPolicy = NetworkAccessPolicy()
  ) -> StatusError? {
    policy.refusal(of: request(authority: host, headers: headers).head)
  }

  private static func fetched(
    site: String = "cross-site",
    mode: String = "no-cors",
    to destination: String = "image",
    from referrer: String? = nil
  ) -> HTTPFields {
    var headers: HTTPFields = [:]
    for (name, value) in [
      ("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", destination),
    ] {
      if let name = HTTPField.Name(name) { headers[name] = value }
    }
    headers[.referer] = referrer
    return headers
  }

  @Test(
    "Programs and pages of this machine pass, by whatever name of it",
    arguments: [
      ("localhost:4400", nil), ("localhost.:4400", "http://localhost.:3000"),
      ("127.0.0.1", "http://localhost:4000"), ("127.8.9.1", nil),
      ("[::1]:4400", "http://[::1]:4000"), ("LOCALHOST", "http://127.0.0.1"), (nil, nil),
      ("app.localhost:8080", "http://client-1.localhost:3000"), ("10.0.2.2:8080", nil),
      ("192.168.1.2:8080", nil), ("host.docker.internal:5001", nil),
      ("127.0.0.1:5001", "capacitor://localhost"),
    ] as [(String?, String?)]
  )
  func passes(host: String?, origin: String?) {
    var headers: HTTPFields = [:]
    headers[.origin] = origin
    #expect(refusal(headers, host: host) == nil)
  }

  @Test(
    "Names that anybody can point here are refused",
    arguments: [
      "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "evillocalhost",
      "localhost@evil.example", "1.2.3", "127.0.0.300", "", "devbox", "127.0.0.1:x@evil",
      "localhost:80.evil.example", "[a:b]evil", "[::1", "127.+1.0.1",
    ]
  )
  func foreignNames(host: String) {
    #expect(refusal(host: host)?.statusCode == .permissionDenied)
  }

  @Test(
    "Pages of other sites are refused with the flag that would let them in",
    arguments: [
      "https://evil.example", "null", "http://localhost.evil.example", "http://192.168.1.2:4000",
      "https://evil.example:8080", "http://localhost:3000.evil.example",
      "http://127.0.0.1:80@evil.example", "http://[::1]evil.com", "http://evil.example?.localhost",
      #"http://evil.example\.localhost"#, "http://evil.example#.localhost",
    ]
  )
  func foreignPages(origin: String) throws {
    let refused = try #require(refusal([.origin: origin]))
    #expect(refused.statusCode == .permissionDenied)
    #expect(refused.statusMessage.contains("--allow-origin \(origin)"))
    #expect(
      refusal([.origin: origin], by: NetworkAccessPolicy(allowing: [origin.uppercased() + "/"]))
        == nil
    )
  }

  @Test("An origin that is allowed lets in no other, and its host may name the suite")
  func allowed() {
    let policy = NetworkAccessPolicy(allowing: ["https://app.example"])
    for other in ["http://app.example", "https://app.example.evil", "https://evil.example"] {
      #expect(refusal([.origin: other], by: policy) != nil)
    }
    #expect(refusal([.origin: "https://app.example"], host: "app.example:8080", by: policy) == nil)
    #expect(refusal(host: "other.example", by: policy) != nil)
  }

  @Test("An image of a foreign page is refused, a link that a person follows is not")
  func withoutOrigin() {
    #expect(refusal(Self.fetched(from: "https://evil.example/a")) != nil)
    #expect(refusal(Self.fetched()) != nil)
    #expect(refusal(Self.fetched(from: "http://localhost:3000/page?q=1")) == nil)
    #expect(refusal(Self.fetched(mode: "navigate", to: "document")) == nil)
    #expect(refusal(Self.fetched(mode: "navigate", to: "iframe")) != nil)
    #expect(refusal([.referer: "https://evil.example/"]) != nil)
    #expect(refusal([.referer: "http://localhost:4000/a"]) == nil)
    #expect(refusal(Self.fetched(site: "same-origin")) == nil)
  }

  @Test("In a local network its names pass, and a domain of the Internet does not")
  func localNetwork() {
    let policy = NetworkAccessPolicy(listeningOn: "0.0.0.0")
    for host in ["devbox:8080", "my-mac.local:8080", "192.168.1.2:8080", "localhost"] {
      #expect(refusal(host: host, by: policy) == nil)
    }
    #expect(refusal(host: "evil.example", by: policy) != nil)
    #expect(refusal([.origin: "http://192.168.1.3:3000"], by: policy) != nil)
    let named = NetworkAccessPolicy(listeningOn: "192.168.1.2")
    #expect(refusal([.origin: "http://192.168.1.2:3000"], host: "192.168.1.2", by: named) == nil)
  }
}

@Suite("Request target")
struct RequestTargetTests {
  @Test("Query parameters keep order and repeats, and decode escapes and plus signs")
  func query() {
    let query = request(path: "/a?mask=a.b&mask=c%20d&x=1+2&flag&bad=%zz&e=%C3%A9&=v").query

    #expect(query.all("mask") == ["a.b", "c d"])
    #expect(query["mask"] == "a.b")
    #expect(query["x"] == "1 2")
    #expect(query["flag"] == "")
    #expect(query["bad"] == "%zz")
    #expect(query["e"] == "é")
    #expect(query[""] == "v")
    #expect(query["none"] == nil)
    #expect(request(path: "/a").query.items == [])
  }

  @Test("Path segments are split before they are decoded")
  func segments() {
    #expect(
      request(path: "/v1/a%2Fb/%28default%29?x=/").pathSegments == ["v1", "a/b", "(default)"]
    )
    #expect(request(path: "/").pathSegments == [])
    #expect(request(path: "/a/").pathSegments == ["a", ""])
    #expect(request(path: "/a%2").pathSegments == nil)
    #expect(request(path: "/%FF").pathSegments == nil)
  }
}

@Suite("JSON replies")
struct JSONReplyTests {
  private struct Point: Encodable {
    let y = 2
    let x = "a/b"
  }

  @Test("Encoded values have sorted keys and a JSON content type")
  func encoding() async throws {
    let reply = try Response.json(encoding: Point())

    #expect(try await text(of: reply) == #"{"x":"a/b","y":2}"#)
    #expect(reply.headers[.contentType] == "application/json; charset=utf-8")
  }

  @Test("Errors carry their status; the text of an error without one is not sent")
  func errors() async throws {
    struct Secret: Error {}
    let large = Response.error(BodyTooLargeError(bytesMax: 7), httpStatus: 413)
    let secret = Response.error(Secret())
    let cancelled = Response.error(CancellationError())

    #expect(large.status.code == 413)
    #expect(secret.status == .internalServerError)
    #expect(
      try await text(of: secret)
        == #"{"error":{"code":500,"message":"Internal error.","status":"INTERNAL"}}"#
    )
    #expect(cancelled.status.code == 499)
  }

  private func text(of response: Response) async throws -> String {
    String(buffer: try await response.body.collect(upTo: 1 << 10))
  }
}
