import FunctionsRuntime
import HTTPMessages
import HTTPTypes
import Identity
import Logging
import NIOCore
import Testing
import TestSupport

@Suite("Functions Framework")
struct FrameworkTests {
  private let app = FunctionsApp {
    OnCall<FirestoreValue, _>("call") { $0.data }
    OnTyped<FirestoreValue, _>("typed") { $0.data }
    OnCloudEvent<[String: Int]>("event", type: "*") { _ in
      throw EventError.permanent("hopeless")
    }
    OnTaskDispatched<Int>("task") { _ in throw EventError.permanent("hopeless") }
    OnSchedule("tick", schedule: "0 3 * * *") { _ in
      throw EventError.retry(after: .milliseconds(1500), "x")
    }
    OnTyped<FirestoreValue, _>("hang") { _ in
      try await Task.sleep(for: .seconds(3600))
      return FirestoreValue.null
    }
  }

  private func host(
    _ target: String?,
    signature: FunctionSignature? = nil,
    requestTimeMax: Duration? = nil,
    mode: CredentialReader.Mode = .production
  ) throws -> FunctionHost {
    try FunctionHost(
      app: app,
      target: target,
      signature: signature,
      requestTimeMax: requestTimeMax,
      credentials: CredentialReader(mode: mode),
      makeLogger: { _ in .silent }
    )
  }

  private func post(
    _ host: FunctionHost,
    _ body: String,
    path: String = "/",
    _ headers: [(name: String, value: String)] = []
  ) async throws -> HTTPResponse {
    var head = HTTPRequest(method: .post, scheme: nil, authority: nil, path: path)
    for (name, value) in headers { head.headerFields[try #require(HTTPField.Name(name))] = value }
    return await host.respond(to: head, body: ByteBuffer(string: body)).head
  }

  @Test(
    "A signature must fit the target",
    arguments: [
      ("call", [.http]), ("task", [.http]), ("tick", [.http]), ("typed", [.http, .typed]),
      ("event", [.event, .cloudevent]),
    ] as [(String, [FunctionSignature])]
  )
  func signatures(target: String, fitting: [FunctionSignature]) throws {
    for signature in FunctionSignature.allCases {
      if fitting.contains(signature) {
        _ = try host(target, signature: signature)
      } else {
        let error = #expect(throws: InvalidFunctionsError.self) {
          try host(target, signature: signature)
        }
        #expect(error?.description.contains("FUNCTION_SIGNATURE_TYPE is") == true)
      }
    }
    _ = try host(nil, signature: .event)
  }

  @Test("Crawlers' files are not there, every other path is the target's")
  func paths() async throws {
    let host = try host("typed")

    #expect(try await post(host, "1", path: "/robots.txt").status == .notFound)
    #expect(try await post(host, "1", path: "/favicon.ico?x").status == .notFound)
    #expect(try await post(host, "1", path: "/some/where?x=1").status == .ok)
  }

  @Test("A request past its time is cancelled and answered with 504", .timeLimit(.minutes(5)))
  func timeOut() async throws {
    let reply = try await post(try host("hang", requestTimeMax: .milliseconds(1)), "1")

    #expect(reply.status.code == 504)
    #expect(reply.headerFields[fieldName("x-google-status")] == "error")
    #expect(
      try await post(try host("typed", requestTimeMax: .seconds(3600)), "1").status == .ok
    )
  }

  @Test("In production what can never succeed is acknowledged, but not what is no event")
  func permanentFailures() async throws {
    let json = [(name: "Content-Type", value: "application/json")]
    let event =
      json + [
        ("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-source", "s"), ("ce-type", "t"),
      ]
    for (mode, failed, undecodable) in [
      (CredentialReader.Mode.production, 204, 204), (.emulator, 500, 400),
    ] {
      let host = try host("event", mode: mode)
      let tasks = try self.host("task", mode: mode)

      #expect(try await post(host, #"{"a":1}"#, event).status.code == failed)
      #expect(try await post(host, #"{"a":"b"}"#, event).status.code == undecodable)
      #expect(try await post(host, "{}", json).status.code == 400)
      #expect(try await post(tasks, #"{"data":1}"#, json).status.code == failed)
      #expect(try await post(tasks, #"{"data":"b"}"#, json).status.code == undecodable)
    }
  }

  @Test("When to try again is sent to Google, too")
  func retryAfter() async throws {
    let reply = try await post(
      try host("tick"),
      "",
      [("X-CloudScheduler-ScheduleTime", "2026-07-01T00:00:00Z")]
    )

    #expect(reply.status.code == 500)
    #expect(reply.headerFields[.retryAfter] == "2")
    #expect(reply.headerFields[fieldName("x-google-status")] == "error")
  }
}
