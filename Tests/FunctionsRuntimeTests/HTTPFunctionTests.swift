import Manifests
import FunctionsRuntime
import HTTPMessages
import HTTPTypes
import Identity
import NIOCore
import Testing
import TestSupport

@Suite("HTTP functions")
struct HTTPFunctionTests {
  private struct Failure: Error {}

  private func harness() throws -> HostHarness {
    try HostHarness {
      OnRequest("describe") { request in
        let body = String(decoding: try await request.body.collect(upTo: 100), as: UTF8.self)
        return .text(
          "\(request.method) \(request.path) \(request.query ?? "-") \(request.query("q") ?? "-") "
            + "\(request.headers[.userAgent] ?? "-") \(request.traceID ?? "-") \(body)"
        )
      }
      OnRequest("json", options: .init(cors: .only(["https://app.example"]))) { _ in
        try .json(["a": 1], status: .created)
      }
      OnRequest("parts") { _ in
        .stream(contentType: "text/plain") { writer in
          try await writer.write("a")
          try await writer.write([98, 99])
        }
      }
      OnRequest("fails") { request in
        if request.path == "/reported" { throw HTTPFunctionError(.conflict, "taken") }
        throw Failure()
      }
      OnRequest("empty") { _ in HTTPFunctionResponse(status: .noContent) }
      OnRequest("breaks") { _ in
        .stream { writer in
          try await writer.write("half")
          throw Failure()
        }
      }
    }
  }

  private func send(
    _ method: HTTPRequest.Method,
    _ target: String,
    headers: HTTPFields = [:],
    body: String = "",
    harness: HostHarness
  ) async throws -> HostHarness.Reply {
    let head = HTTPRequest(
      method: method,
      scheme: "http",
      authority: "localhost",
      path: target,
      headerFields: headers
    )
    return try await harness.send(head, ByteBuffer(string: body))
  }

  @Test("The handler sees method, path below its name, query, headers, trace and body as sent")
  func request() async throws {
    let harness = try harness()
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    let reply = try await send(
      .put,
      "/describe/a%2Fb/?q=x%20y&q=z",
      headers: [.userAgent: "me", fieldName("traceparent"): "00-\(trace)-00f067aa0ba902b7-01"],
      body: "hello",
      harness: harness
    )

    #expect(reply.status == 200)
    #expect(reply.body == "PUT /a%2Fb/ q=x%20y&q=z x y me \(trace) hello")
    #expect(reply.headers[.contentType] == "text/plain; charset=utf-8")
    #expect(reply.headers[.contentLength] == "\(reply.body.utf8.count)")
    #expect(reply.headers[.eTag] == nil)
    for (target, seen) in [
      ("/describe", "GET / - "), ("/describe?", "GET /  "), ("/describe/", "GET / -"),
    ] {
      #expect(try await send(.get, target, harness: harness).body.hasPrefix(seen))
    }
    let old = HTTPFields([HTTPField(name: fieldName("x-cloud-trace-context"), value: "abc/1;o=1")])
    #expect(
      try await send(.get, "/describe", headers: old, harness: harness).body.contains(" abc ")
    )
  }

  @Test(
    "Every method arrives",
    arguments: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"]
  )
  func methods(name: String) async throws {
    let method = try #require(HTTPRequest.Method(rawValue: name))
    let reply = try await send(method, "/describe", harness: try harness())

    #expect(reply.body.hasPrefix("\(name) /"))
  }

  @Test("A response is bytes, JSON or a stream")
  func responses() async throws {
    let harness = try harness()
    let json = try await send(.get, "/json", harness: harness)
    let parts = try await send(.get, "/parts", harness: harness)
    let empty = try await send(.get, "/empty", harness: harness)

    #expect(json.status == 201)
    #expect(json.body == #"{"a":1}"#)
    #expect(parts.body == "abc")
    #expect(parts.headers[.contentLength] == nil)
    #expect(empty.status == 204)
    #expect(empty.headers[.contentLength] == nil)
  }

  @Test("An error is 500 without its text, marked as the function's, unless it is for the client")
  func errors() async throws {
    let harness = try harness()
    let hidden = try await send(.get, "/fails", harness: harness)
    let reported = try await send(.get, "/fails/reported", harness: harness)
    let long = try await send(
      .post,
      "/describe",
      body: String(repeating: "x", count: 101),
      harness: harness
    )

    #expect(hidden.status == 500)
    #expect(hidden.body == "Internal Server Error\n")
    #expect(hidden.headers[fieldName("x-google-status")] == "error")
    #expect(reported.status == 409)
    #expect(reported.body == "taken\n")
    #expect(reported.headers[fieldName("x-google-status")] == nil)
    #expect(long.status == 413)
    #expect(harness.log.entries(atLeast: .error).map { $0.metadata["error"] } == ["Failure()"])
    await #expect(throws: Failure.self) {
      _ = try await send(.get, "/breaks", harness: harness)
    }
  }

  @Test("CORS is off unless the function asks; then preflights are answered for it")
  func cors() async throws {
    let harness = try harness()
    let preflight: HTTPFields = [
      .origin: "https://app.example", .accessControlRequestMethod: "PUT",
      .accessControlRequestHeaders: "x-a",
    ]
    let allowed = try await send(.options, "/json", headers: preflight, harness: harness)
    let real = try await send(
      .get,
      "/json",
      headers: [.origin: "https://app.example"],
      harness: harness
    )
    let foreign = try await send(
      .get,
      "/json",
      headers: [.origin: "https://evil.example"],
      harness: harness
    )
    let off = try await send(.options, "/describe", headers: preflight, harness: harness)

    #expect(allowed.status == 204)
    #expect(allowed.headers[.accessControlAllowMethods] == "GET,HEAD,PUT,PATCH,POST,DELETE")
    #expect(allowed.headers[.accessControlAllowHeaders] == "x-a")
    #expect(real.headers[.accessControlAllowOrigin] == "https://app.example")
    #expect(real.headers[.vary] == "Origin")
    #expect(foreign.headers[.accessControlAllowOrigin] == nil)
    #expect(off.status == 200)
    #expect(off.headers[.accessControlAllowOrigin] == nil)
  }

  @Test("The emulator's enableCors opens every function that does not refuse")
  func enableCORS() async throws {
    let app = FunctionsApp {
      OnRequest("open") { _ in .text("x") }
      OnRequest("closed", options: .init(cors: .none)) { _ in .text("x") }
    }
    let host = try FunctionHost(
      app: app,
      credentials: CredentialReader(mode: .emulator),
      debugFeatures: DebugFeatures(enablesCORS: true)
    )
    func origin(_ path: String) async -> String? {
      let head = HTTPRequest(
        method: .get,
        scheme: nil,
        authority: nil,
        path: path,
        headerFields: [.origin: "https://a.example"]
      )
      return await host.respond(to: head, body: ByteBuffer()).head.headerFields[
        .accessControlAllowOrigin
      ]
    }

    #expect(await origin("/open") == "https://a.example")
    #expect(await origin("/closed") == nil)
  }

  @Test("Served at the root, a function never sees what browsers and crawlers ask every server for")
  func unserved() async throws {
    let app = FunctionsApp { OnRequest("site") { .text($0.path) } }
    let host = try FunctionHost(
      app: app,
      target: "site",
      credentials: CredentialReader(mode: .emulator)
    )
    func status(_ path: String) async -> Int {
      let head = HTTPRequest(method: .get, scheme: nil, authority: nil, path: path)
      return await host.respond(to: head, body: ByteBuffer()).head.status.code
    }

    #expect(await status("/robots.txt") == 404)
    #expect(await status("/favicon.ico?x") == 404)
    #expect(await status("/a/robots.txt") == 200)
    #expect(await status("/") == 200)
  }

  @Test("A declaration is called in a test")
  func direct() async throws {
    let shout = OnRequest("shout") { request in
      .text(String(decoding: try await request.body.collect(upTo: 10), as: UTF8.self).uppercased())
    }
    let response = try await shout.run(
      HTTPFunctionRequest(.post, "/x?y", body: HTTPRequestBody(Array("abc".utf8)))
    )

    guard case .bytes(let bytes) = response.body else {
      Issue.record("The body is streamed")
      return
    }
    #expect(bytes == Array("ABC".utf8))
  }

  @Test("Options that do not fit an HTTP function are refused")
  func validation() throws {
    let app = FunctionsApp {
      OnRequest("b", options: .init(cors: .only(["https://a.example/"]))) { _ in .text("") }
      OnRequest("c", options: .init(timeout: .seconds(3600))) { _ in .text("") }
    }
    let error = #expect(throws: InvalidFunctionsError.self) { try app.manifest() }

    #expect(error?.problems.count == 1)
    #expect(error?.problems[0].contains("https://a.example/") == true)
    let good = FunctionsApp { OnRequest("a") { _ in .text("") } }
    #expect(try good.manifest().endpoints["a"]?.httpsTrigger != nil)
  }
}
