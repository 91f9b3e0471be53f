import Foundation
import HTTPMessages
import HTTPSupport
import HTTPTypes
import NIOCore
import NIOEmbedded
import StatusCodes
import Testing

@testable import Console

@Suite("Console service")
struct ConsoleServiceTests {
  private let service = ConsoleService(
    suiteToken: SecretToken("suite-secret"),
    sessionToken: SecretToken("session-secret"),
    description: { ["project": "demo-app"] },
    backends: [
      "echo": { request, _ in
        let token = HTTPField.Name("X-Hearth-Console").flatMap { request.headers[$0] }
        return .text("\(request.method) \(request.head.path ?? "") \(token ?? "no token")")
      },
      "failing": { _, _ in throw StatusError(.aborted, "Try again.") },
    ]
  )

  private func respond(
    _ path: String,
    _ headers: [String: String] = [:],
    method: HTTPRequest.Method = .get,
    from address: String = "127.0.0.1"
  ) async throws -> (status: Int, text: String, headers: HTTPFields) {
    let channel = NIOAsyncTestingChannel()
    channel.remoteAddress = try SocketAddress(ipAddress: address, port: 50_000)
    var head = HTTPRequest(method: method, scheme: "http", authority: "localhost", path: path)
    for (name, value) in headers { head.headerFields[try #require(HTTPField.Name(name))] = value }
    let response = await service.respond(to: Request(head: head), HTTPContext(channel: channel))
    let body = try await response.body.collect(upTo: 1 << 20)
    return (response.status.code, String(buffer: body), response.headers)
  }

  @Test("A session opens for the own page on this machine, and for the suite's token anywhere")
  func sessions() async throws {
    let ownPage = ["Sec-Fetch-Site": "same-origin"]
    let suite = ["Authorization": "Bearer suite-secret"]

    let opened = try await respond("/session", ownPage)
    #expect(opened.status == 200)
    #expect(opened.text == #"{"suite":{"project":"demo-app"},"token":"session-secret"}"#)
    #expect(try await respond("/session", suite, from: "192.168.1.2").status == 200)

    #expect(try await respond("/session").status == 403)
    #expect(try await respond("/session", ownPage, from: "192.168.1.2").status == 403)
    for site in ["cross-site", "same-site", "none"] {
      #expect(try await respond("/session", ["Sec-Fetch-Site": site]).status == 403, "\(site)")
    }
    for wrong in ["suite-secre", "suite-secrets", "Suite-secret", ""] {
      let headers = ["Authorization": "Bearer \(wrong)"]
      #expect(try await respond("/session", headers).status == 403, "\(wrong)")
    }
  }

  @Test("A request with the session's token reaches its service with the rest of its path, as sent")
  func forwarding() async throws {
    let session = ["X-Hearth-Console": "session-secret"]

    let sent = try await respond("/api/echo/v1/a%2Fb/c:run?x=%2F1", session, method: .post)
    #expect(sent.text == "POST /v1/a%2Fb/c:run?x=%2F1 no token")
    #expect(try await respond("/api/echo?x=1", session).text == "GET /?x=1 no token")
    #expect(try await respond("/api/failing/", session).status == 409)

    let unknown = try await respond("/api/other/x", session)
    #expect(unknown.status == 404)
    #expect(unknown.text.contains("echo, failing"))
  }

  @Test("Without the session's token no request reaches a service")
  func refusals() async throws {
    for headers in [
      [:], ["X-Hearth-Console": "session-secre"], ["X-Hearth-Console": ""],
      ["Authorization": "Bearer session-secret"], ["X-Hearth-Console": "suite-secret"],
    ] {
      #expect(try await respond("/api/echo/x", headers).status == 401, "\(headers)")
      #expect(try await respond("/api/other/x", headers).status == 401, "\(headers)")
    }
  }

  @Test(
    "Every response keeps other sites out",
    arguments: ["/", "/app.js", "/session", "/api/echo/", "/nothing"]
  )
  func protection(path: String) async throws {
    let headers = try await respond(path).headers
    let policy = try #require(HTTPField.Name("content-security-policy").flatMap { headers[$0] })

    #expect(policy.contains("default-src 'none'"))
    #expect(policy.contains("frame-ancestors 'none'"))
    #expect(!policy.contains("unsafe"))
    #expect(HTTPField.Name("x-frame-options").flatMap { headers[$0] } == "DENY")
    #expect(HTTPField.Name("x-content-type-options").flatMap { headers[$0] } == "nosniff")
    #expect(headers[.accessControlAllowOrigin] == nil)
  }

  @Test("Every file of the page is part of the program, and every module that a file imports")
  func files() async throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "emulator/Console/Pages")
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)

    #expect(names.count > 10)
    for name in names {
      let text = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
      let served = try await respond("/\(name)")
      #expect(served.status == 200, "\(name)")
      #expect(served.text == text, "\(name)")
      for match in text.matches(of: /(?:from|import\() ?"\.\/([^"]+)"/) {
        #expect(names.contains(String(match.1)), "\(name) imports \(match.1)")
      }
    }
    #expect(try await respond("/").text == respond("/index.html").text)
  }

  @Test("A file that the browser has is not sent again, and none is outside of the page")
  func caching() async throws {
    let tag = try #require(try await respond("/app.js").headers[.eTag])

    let again = try await respond("/app.js", ["If-None-Match": tag])
    #expect(again.status == 304 && again.text.isEmpty)
    #expect(try await respond("/app.js", ["If-None-Match": "\"0\""]).status == 200)
    #expect(try await respond("/../Package.swift").status == 404)
    #expect(try await respond("/app.js", method: .post).status == 501)
  }
}
