import DocumentModel
import FunctionsRuntime
import GoogleAccess
import HTTPMessages
import HTTPTypes
import Identity
import Invocation
import InvocationContext
import NIOCore
import OutboundHTTP
import Testing
import TestSupport

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

@Suite("Task functions")
struct TaskTests {
  struct Job: Codable, Sendable, Equatable {
    var n: Int
    var due: Timestamp?
  }

  private let json = [("Content-Type", "application/json")]

  @Test("A task arrives decoded with its queue's metadata, and success is 204")
  func dispatched() async throws {
    let seen = Seen<TaskRequest<Job>>()
    let harness = try HostHarness { OnTaskDispatched<Job>("work") { seen.add($0) } }
    let claims = Data(#"{"sub":"queue","email":"q@p"}"#.utf8).base64EncodedString()
      .replacing("=", with: "")
    let reply = try await harness.post(
      "work",
      #"{"data":{"n":1,"due":"2026-07-01T12:00:00Z"}}"#,
      json + [
        ("X-CloudTasks-QueueName", "work"), ("X-CloudTasks-TaskName", "t1"),
        ("X-CloudTasks-TaskRetryCount", "2"), ("X-CloudTasks-TaskExecutionCount", "1"),
        ("X-CloudTasks-TaskETA", "1595443200.25"), ("X-CloudTasks-TaskPreviousResponse", "503"),
        ("X-CloudTasks-TaskRetryReason", "busy"), ("Authorization", "Bearer e30.\(claims).x"),
      ]
    )

    #expect(reply.status == 204, "\(reply.body)")
    let request = try #require(seen.all.first)
    #expect(request.data == Job(n: 1, due: Timestamp("2026-07-01T12:00:00Z")))
    #expect(request.queueName == "work")
    #expect(request.taskName == "t1")
    #expect(request.retryCount == 2)
    #expect(request.attempt == 3)
    #expect(request.executionCount == 1)
    #expect(request.scheduledTime == Timestamp(microseconds: 1_595_443_200_250_000))
    #expect(request.previousResponse == 503)
    #expect(request.retryReason == "busy")
    #expect(request.caller?.uid == "queue")
    #expect(request.caller?.claims["email"] == .string("q@p"))
  }

  @Test("Without a queue's headers a task is a first try; the envelope is a callable's")
  func bare() async throws {
    let seen = Seen<TaskRequest<Job>>()
    let harness = try HostHarness { OnTaskDispatched<Job>("work") { seen.add($0) } }

    #expect(
      try await harness.post(
        "work",
        #"{"data":{"n":1}}"#,
        json + [("Authorization", "Bearer owner")]
      )
      .status == 204
    )
    #expect(seen.all.first?.attempt == 1)
    #expect(seen.all.first?.queueName == "work")
    #expect(seen.all.first?.caller == nil)
    for (body, message) in [
      (#"{"data":{}}"#, "'data.n' is missing"), (#"{"n":1}"#, "'n' is not expected"),
      ("{", "not JSON"), ("", "empty"),
    ] {
      let reply = try await harness.post("work", body, json)
      #expect(reply.status == 400)
      #expect(reply.body.contains(#""status":"INVALID_ARGUMENT""#))
      #expect(reply.body.contains(message), "\(reply.body)")
      #expect(reply.headers[RetryAdvice.header] == "never")
    }
    #expect(seen.all.count == 1)
  }

  @Test("A failing task is answered as a callable's error, with the advice of its error")
  func failures() async throws {
    let harness = try HostHarness {
      OnTaskDispatched<Job>("plain") { _ in throw CancellationError() }
      OnTaskDispatched<Job>("forGood") { _ in throw EventError.permanent("secret") }
      OnTaskDispatched<Job>("later") { _ in throw EventError.retry(after: .seconds(7), "busy")
      }
      OnTaskDispatched<Job>("reported") { _ in throw CallableError(.notFound, "gone") }
    }
    func failure(_ name: String) async throws -> (Int, String, String?) {
      let reply = try await harness.post(name, #"{"data":{"n":1}}"#, json)
      return (reply.status, reply.body, reply.headers[RetryAdvice.header])
    }
    let hidden = #"{"error":{"message":"INTERNAL","status":"INTERNAL"}}"#

    #expect(try await failure("plain") == (500, hidden, nil))
    #expect(try await failure("forGood") == (500, hidden, "never"))
    #expect(try await failure("later") == (500, hidden, "after=7.0"))
    #expect(
      try await failure("reported") == (
        404, #"{"error":{"message":"gone","status":"NOT_FOUND"}}"#, nil
      )
    )
  }
}

/// Returns a server that gives each request the same response.
private func answering(_ status: Int = 200, _ body: String = "{}") -> ScriptedHTTP {
  ScriptedHTTP { _ in OutboundResponse(status: status, body: Array(body.utf8)) }
}

/// Credentials with fixed strings.
private struct Words: AccessTokenSource {
  func token() async throws -> String { "ya29" }
  func reject(_ token: String) async {}
  func serviceAccountEmail() async throws -> String { "run@p.iam" }
}

@Suite("Enqueuing tasks")
struct EnqueueTests {
  typealias Job = TaskTests.Job

  private let work = OnTaskDispatched<Job>("work") { _ in }
  private let emulator = [
    "CLOUD_TASKS_EMULATOR_HOST": "127.0.0.1:9499", "GCLOUD_PROJECT": "demo-p",
  ]
  private let now = Timestamp("2026-07-01T12:00:00Z") ?? Timestamp(microseconds: 0)

  private func enqueuer(
    _ server: ScriptedHTTP,
    _ environment: [String: String]? = nil,
    _ tokens: (any AccessTokenSource)? = nil
  ) -> CloudTasksEnqueuer {
    CloudTasksEnqueuer(
      environment: environment ?? emulator,
      tokens: tokens,
      http: server,
      now: { [now] in now }
    )
  }

  /// Returns the task in a request, with its body decoded.
  private func task(_ request: OutboundRequest?) throws -> [String: String] {
    struct Body: Decodable {
      struct Task: Decodable {
        struct HTTP: Decodable {
          struct Token: Decodable { var serviceAccountEmail: String }
          var url: String
          var body: Data
          var headers: [String: String]
          var oidcToken: Token
        }
        var name: String?
        var scheduleTime: String?
        var dispatchDeadline: String?
        var httpRequest: HTTP
      }
      var task: Task
    }
    let request = try #require(request)
    let task = try JSONDecoder().decode(Body.self, from: Data(request.body)).task
    #expect(task.httpRequest.headers == ["Content-Type": "application/json"])
    let parts: [String: String?] = [
      "name": task.name, "time": task.scheduleTime, "deadline": task.dispatchDeadline,
      "url": task.httpRequest.url, "account": task.httpRequest.oidcToken.serviceAccountEmail,
      "body": String(decoding: task.httpRequest.body, as: UTF8.self),
    ]
    return parts.compactMapValues(\.self)
  }

  @Test("A task goes to the emulator as firebase-admin sends it, and the id comes back")
  func emulated() async throws {
    let server = answering(
      200,
      #"{"name":"projects/demo-p/locations/us-central1/queues/work/tasks/t77"}"#
    )
    let id = try await TaskQueueing.$current.withValue(TaskQueueing(enqueuer: enqueuer(server))) {
      try await EventCause.$current.withValue("5.0.f") {
        try await work.enqueue(Job(n: 1, due: now))
      }
    }
    let request = try #require(server.requests.first)

    #expect(id == "t77")
    #expect(request.method == "POST")
    #expect(
      request.url
        == "http://127.0.0.1:9499/projects/demo-p/locations/us-central1/queues/work/tasks"
    )
    #expect(request.headers["Authorization"] == "Bearer owner")
    #expect(request.headers["x-hearth-cause"] == "5.0.f")
    #expect(
      try task(request) == [
        "url": "", "account": "emulated-service-acct@email.com",
        "body": #"{"data":{"due":"2026-07-01T12:00:00Z","n":1}}"#,
      ]
    )
  }

  @Test("An id, a delay, a time and a deadline are sent; the region is the app's")
  func options() async throws {
    let server = answering()
    let queueing = TaskQueueing(
      enqueuer: enqueuer(server),
      options: ["work": FunctionOptions(region: "europe-west1", dates: .millisecondsSince1970)]
    )
    let queue = "projects/demo-p/locations/europe-west1/queues/work"
    let ids = try await TaskQueueing.$current.withValue(queueing) {
      let first = try await work.enqueue(
        Job(n: 1),
        id: "a-1",
        after: .milliseconds(1500),
        dispatchDeadline: .seconds(15)
      )
      let time = try #require(Timestamp("2027-01-01T00:00:00Z"))
      let second = try await work.enqueue(Job(n: 2), at: time)
      try await work.delete(id: "a-1")
      return [first, second]
    }

    #expect(ids == ["a-1", ""])
    let first = try task(server.requests.first)
    #expect(first["name"] == "\(queue)/tasks/a-1")
    #expect(first["time"] == "2026-07-01T12:00:01.500Z")
    #expect(first["deadline"] == "15s")
    #expect(try task(server.requests[1])["time"] == "2027-01-01T00:00:00Z")
    #expect(server.requests.last?.method == "DELETE")
    #expect(server.requests.last?.url == "http://127.0.0.1:9499/\(queue)/tasks/a-1")
  }

  @Test("In production the token is an OAuth token and the queue calls the function's address")
  func production() async throws {
    let server = answering()
    let enqueuer = enqueuer(server, ["GOOGLE_CLOUD_PROJECT": "p"], Words())
    _ = try await TaskQueueing.$current.withValue(TaskQueueing(enqueuer: enqueuer)) {
      try await work.enqueue(Job(n: 1))
    }
    let request = try #require(server.requests.first)
    let task = try task(request)

    #expect(
      request.url == "https://cloudtasks.googleapis.com/v2/projects/p/locations/us-central1/"
        + "queues/work/tasks"
    )
    #expect(request.headers["Authorization"] == "Bearer ya29")
    #expect(task["url"] == "https://us-central1-p.cloudfunctions.net/work")
    #expect(task["account"] == "run@p.iam")
  }

  private func error(
    _ server: ScriptedHTTP = answering(),
    _ environment: [String: String]? = nil,
    _ body: (OnTaskDispatched<Job>) async throws -> Void
  ) async throws -> TaskQueueError? {
    let queueing = TaskQueueing(enqueuer: enqueuer(server, environment))
    do {
      try await TaskQueueing.$current.withValue(queueing) { try await body(work) }
      return nil
    } catch let error as TaskQueueError {
      return error
    }
  }

  @Test("An id in use is alreadyExists; other refusals keep the queue's code and words")
  func refused() async throws {
    let conflict = try await error(answering(409)) {
      try await $0.enqueue(Job(n: 1), id: "a")
    }
    let reported = try await error(
      answering(429, #"{"error":{"status":"RESOURCE_EXHAUSTED","message":"full"}}"#)
    ) { try await $0.enqueue(Job(n: 1)) }
    let bare = try await error(answering(503, "down")) { try await $0.enqueue(Job(n: 1)) }
    let gone = try await error(answering(404)) { try await $0.delete(id: "a") }

    #expect(conflict?.code == .alreadyExists)
    #expect(conflict?.message.contains("the id a is or was") == true)
    #expect(reported == TaskQueueError(.resourceExhausted, "full"))
    #expect(bare?.code == .unavailable)
    #expect(gone == nil)
  }

  @Test("What no queue would take is refused before it is sent, and so is a missing setting")
  func invalid() async throws {
    let server = answering()
    let bodies: [(OnTaskDispatched<Job>) async throws -> Void] = [
      { try await $0.enqueue(Job(n: 1), id: "a/b") },
      { try await $0.enqueue(Job(n: 1), id: "") },
      { try await $0.enqueue(Job(n: 1), after: .seconds(-1)) },
      { try await $0.enqueue(Job(n: 1), dispatchDeadline: .seconds(14)) },
      { try await $0.enqueue(Job(n: 1), dispatchDeadline: .seconds(1801)) },
      { try await $0.delete(id: "ä") },
    ]
    for body in bodies {
      #expect(try await error(server, nil, body)?.code == .invalidArgument)
    }
    let noProject = try await error(server, ["CLOUD_TASKS_EMULATOR_HOST": "h"]) {
      try await $0.enqueue(Job(n: 1))
    }
    let noTokens = try await error(server, ["GCLOUD_PROJECT": "p"]) {
      try await $0.enqueue(Job(n: 1))
    }

    #expect(noProject?.message.contains("GCLOUD_PROJECT is not set") == true)
    #expect(noTokens?.message.contains("CLOUD_TASKS_EMULATOR_HOST is not set") == true)
    #expect(server.requests.isEmpty)
  }

  @Test("A function's tasks go to its host's queues, with the app's options, from every task in it")
  func withinAFunction() async throws {
    let server = answering()
    let work = work
    let app = FunctionsApp(defaults: .init(region: "asia-east1")) {
      work
      OnCall<FirestoreValue, _>("enqueue") { _ in
        async let id = work.enqueue(Job(n: 1))
        _ = try await id
      }
    }
    let host = try FunctionHost(
      app: app,
      credentials: CredentialReader(mode: .emulator),
      tasks: enqueuer(server)
    )
    var head = HTTPRequest(method: .post, scheme: nil, authority: nil, path: "/enqueue")
    head.headerFields[.contentType] = "application/json"
    head.headerFields[InvocationRequest.causeHeader] = "7.0.g"
    let reply = await host.respond(to: head, body: ByteBuffer(string: #"{"data":null}"#))

    #expect(reply.head.status == .ok)
    #expect(server.requests.first?.url.contains("/locations/asia-east1/queues/work/") == true)
    #expect(server.requests.first?.headers["x-hearth-cause"] == "7.0.g")
  }
}
