import DocumentModel
import Events
import Foundation
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Identity
import InvocationContext
import Logging
import Manifests
import NIOCore
import TaskQueueModel
import TaskQueues
import Testing

@Suite("Cloud Tasks' REST API")
struct TaskQueueServiceTests {
  private let queues: MemoryQueues
  private let service: TaskQueueService
  private static let now = Timestamp(microseconds: 1_795_244_400_000_000)
  private static let queue = "projects/demo/locations/us-central1/queues/mail"

  init() {
    let queues = MemoryQueues(
      [
        TaskQueue(id: "mail", locations: ["us-central1"]),
        TaskQueue(
          id: "thumbnails",
          locations: ["europe-west1", "us-central1"],
          rateLimits: .init(maxConcurrentDispatches: 2, maxDispatchesPerSecond: 1.5),
          retryConfig: .init(maxAttempts: 7, maxRetrySeconds: 60, minBackoffSeconds: 2)
        ),
      ],
      now: Self.now
    )
    self.queues = queues
    service = TaskQueueService(
      project: "demo",
      backend: queues,
      functionURL: { "http://127.0.0.1:5001/demo/\($0)/\($1)" },
      reachesLoopback: true,
      now: { Self.now },
      logger: Logger(label: "test")
    )
  }

  private struct Reply {
    var status: Int
    var json: NSDictionary

    var message: String { (json["error"] as? NSDictionary)?["message"] as? String ?? "" }
    var code: String { (json["error"] as? NSDictionary)?["status"] as? String ?? "" }
    func text(_ path: String) -> String? { value(path) as? String }

    func value(_ path: String) -> Any? {
      path.split(separator: ".").reduce(json as Any?) { ($0 as? NSDictionary)?[String($1)] }
    }
  }

  private func send(
    _ method: HTTPRequest.Method,
    _ path: String,
    _ body: String = "",
    headers: HTTPFields = [:],
    to other: TaskQueueService? = nil
  ) async throws -> Reply {
    let head = HTTPRequest(
      method: method,
      scheme: "http",
      authority: "127.0.0.1:9499",
      path: path,
      headerFields: headers
    )
    let response = await (other ?? service).respond(
      to: Request(head: head, body: .whole(ByteBuffer(string: body)))
    )
    let answer = try await response.body.collect(upTo: 1 << 20)
    let json = try JSONSerialization.jsonObject(with: Data(answer.readableBytesView))
    return Reply(status: response.status.code, json: try #require(json as? NSDictionary))
  }

  private func create(
    _ task: String = #"{"httpRequest": {"body": "eyJkYXRhIjoxfQ=="}}"#,
    prefix: String = "/v2/"
  ) async throws -> Reply {
    try await send(.post, "\(prefix)\(Self.queue)/tasks", #"{"task": \#(task)}"#)
  }

  @Test("A task is kept with what was asked for, and shown without its body")
  func creates() async throws {
    let reply = try await create(
      #"""
      {"name": "\#(Self.queue)/tasks/a-1_B", "scheduleTime": "2026-11-21T08:00:00.5Z",
       "dispatchDeadline": "15s",
       "httpRequest": {"url": "https://us-central1-demo.cloudfunctions.net/mail", "httpMethod": "POST",
         "headers": {"Content-Type": "application/json", "X-CloudTasks-TaskName": "forged"},
         "oidcToken": {"serviceAccountEmail": "a@b"}, "body": "eyJkYXRhIjoxfQ=="}}
      """#
    )

    #expect(reply.status == 200)
    #expect(reply.text("name") == "\(Self.queue)/tasks/a-1_B")
    #expect(reply.text("scheduleTime") == "2026-11-21T08:00:00.500Z")
    #expect(reply.text("createTime") == "2026-11-21T07:00:00Z")
    #expect(reply.text("dispatchDeadline") == "15s")
    #expect(reply.text("view") == "BASIC")
    #expect(reply.text("httpRequest.url") == "http://127.0.0.1:5001/demo/us-central1/mail")
    #expect(reply.text("httpRequest.body") == nil)
    let kept = try #require(await queues.task("a-1_B", in: "mail"))
    #expect(kept.body == Array(#"{"data":1}"#.utf8))
    #expect(kept.headers == ["Content-Type": "application/json"])
    #expect(kept.dispatchDeadline == .seconds(15))
  }

  @Test(
    "A task goes to the function or the server of this machine that its url names",
    arguments: [
      ("", nil, "http://127.0.0.1:5001/demo/us-central1/mail"),
      ("http://127.0.0.1:5001/demo/us-central1/mail", nil, nil),
      (
        "https://us-central1-demo.cloudfunctions.net/mail/", nil,
        "http://127.0.0.1:5001/demo/us-central1/mail"
      ),
      ("https://mail-ab12cd-uc.a.run.app", nil, "http://127.0.0.1:5001/demo/us-central1/mail"),
      (
        "https://us-central1-demo.cloudfunctions.net/other/a%20b?c=d",
        .function("other", path: "/a%20b?c=d"),
        "http://127.0.0.1:5001/demo/us-central1/other/a%20b?c=d"
      ),
      (
        "http://localhost:5001/demo/us-central1/other", .function("other", path: "/"),
        "http://127.0.0.1:5001/demo/us-central1/other"
      ),
      (
        "http://localhost:5001/demo/us-central1/other?c", .function("other", path: "/?c"),
        "http://127.0.0.1:5001/demo/us-central1/other/?c"
      ),
      (
        "http://localhost:8080/hook?a=b#c", .url("http://localhost:8080/hook?a=b"),
        "http://localhost:8080/hook?a=b"
      ),
      ("HTTPS://app.localhost/", .url("https://app.localhost/"), "https://app.localhost/"),
      ("http://[::1]:81", .url("http://[::1]:81/"), "http://[::1]:81/"),
    ] as [(String, TaskTarget.Place?, String?)]
  )
  func targets(url: String, place: TaskTarget.Place?, shown: String?) async throws {
    let reply = try await create(#"{"httpRequest": {"url": "\#(url)", "body": "e30="}}"#)

    #expect(reply.status == 200, "\(reply.message)")
    #expect(reply.text("httpRequest.url") == shown ?? url)
    let kept = try #require(await queues.all(in: "mail").first)
    #expect(kept.target == place.map { TaskTarget(method: "POST", place: $0) })
  }

  @Test(
    "An address that is not of this machine is refused in words, however it is written",
    arguments: [
      "https://example.com", "http://127.0.0.1.example.com/", "http://127.0.0.1@example.com/",
      "http://user:secret@localhost/", "http://example.com\\\\@127.0.0.1/", "http://10.0.0.1/",
      "http://0x7f.1/", "http://[fe80::1]/", "ftp://localhost/", "file:///etc/passwd",
      "localhost:80",
      "/mail", "http://", "http:///mail", "http://[::ffff:127.0.0.1%25.localhost]/",
      "http://[fe80::1%25.localhost]/", "http://[localhost]/", "http://[127.0.0.1]/",
      "http://localhost:65536/", "http://localhost:99999999999999999999/", "http://localhost:+80/",
      "http://127.+0.0.1/", "http://127.0.0.08/", "http://example.com%00.localhost/",
      "http://example.com%2f.localhost/", "http://$x.localhost/", "http://localhost:/",
      "http://localhost:٣/", "https://europe-west1-other.cloudfunctions.net/mail",
      "https://mailer.a.run.app", "http://localhost:99999/", "http://localhost/\\r\\nX: y",
      "http://169.254.169.254/computeMetadata/v1/", "http://metadata.google.internal/",
    ]
  )
  func refusedTargets(url: String) async throws {
    let reply = try await create(#"{"httpRequest": {"url": "\#(url)", "body": "e30="}}"#)

    #expect(reply.status == 400)
    #expect(reply.message.contains("task.httpRequest.url is"), "\(reply.message)")
    #expect(await queues.all(in: "mail").isEmpty)
  }

  @Test("A missing queue is a 503 while a deployment is not served, and so is an empty list")
  func unserved() async throws {
    func service(_ queues: MemoryQueues) -> TaskQueueService {
      TaskQueueService(
        project: "demo",
        backend: queues,
        functionURL: { "http://127.0.0.1:5001/demo/\($0)/\($1)" },
        unserved: { "Still starting." },
        reachesLoopback: true,
        now: { Self.now },
        logger: Logger(label: "test")
      )
    }
    let starting = service(MemoryQueues([], now: Self.now))
    let requests: [(HTTPRequest.Method, String, String)] = [
      (.post, "/v2/\(Self.queue)/tasks", #"{"task": {"httpRequest": {"body": "e30="}}}"#),
      (.get, "/v2/\(Self.queue)", ""), (.post, "/v2/\(Self.queue)", ""),
      (.get, "/v2/projects/demo/locations/us-central1/queues", ""), (.get, "/queueStats", ""),
    ]
    for (method, path, body) in requests {
      let reply = try await send(method, path, body, to: starting)
      #expect((reply.status, reply.code, reply.message) == (503, "UNAVAILABLE", "Still starting."))
    }
    #expect(try await send(.get, "/v2/\(Self.queue)", to: service(queues)).status == 200)
  }

  @Test("Where other machines reach the queues, tasks do not reach this machine's servers")
  func openSuite() async throws {
    let open = TaskQueueService(
      project: "demo",
      backend: queues,
      functionURL: { "http://192.168.0.7:5001/demo/\($0)/\($1)" },
      reachesLoopback: false,
      now: { Self.now },
      logger: Logger(label: "test")
    )
    let server = #"{"httpRequest": {"url": "http://127.0.0.1:8080/hook"}}"#
    let refused = try await send(
      .post,
      "/v2/\(Self.queue)/tasks",
      #"{"task": \#(server)}"#,
      to: open
    )
    let function = #"{"httpRequest": {"url": "http://127.0.0.1:5001/demo/us-central1/other"}}"#
    let taken = try await send(
      .post,
      "/v2/\(Self.queue)/tasks",
      #"{"task": \#(function)}"#,
      to: open
    )

    #expect(refused.status == 400 && refused.message.contains("its own functions only"))
    #expect(taken.status == 200)
  }

  @Test("A task to another place has any method, and a body only with those that have one")
  func methods() async throws {
    func http(_ method: String, _ rest: String) -> String {
      #"{"httpRequest": {"url": "http://localhost:8080/", "httpMethod": "\#(method)"\#(rest)}}"#
    }
    let get = try await create(http("GET", ""))
    let put = try await create(http("PUT", #", "body": "e30=""#))
    let bad = try await create(http("DELETE", #", "body": "e30=""#))

    #expect(get.text("httpRequest.httpMethod") == "GET")
    #expect(put.text("httpRequest.httpMethod") == "PUT")
    #expect(bad.status == 400 && bad.message.contains("only POST, PUT and PATCH"))
  }

  @Test("A task knows the event whose function enqueued it")
  func cause() async throws {
    let name = try #require(HTTPField.Name(EventCause.headerName))
    let task = #"{"task": {"httpRequest": {"body": "eyJkYXRhIjoxfQ=="}}}"#
    let tasks = "/v2/\(Self.queue)/tasks"
    for cause in [CauseSignature.signed("7.0.f;0"), "7.0.f;0", nil] {
      let headers: HTTPFields = cause.map { [name: $0] } ?? [:]
      #expect(try await send(.post, tasks, task, headers: headers).status == 200)
    }

    #expect(await queues.causes == ["7.0.f;0", nil, nil])
  }

  @Test("Names may be spelled as in protobuf's definitions, and base64 as in URLs")
  func spellings() async throws {
    let reply = try await create(
      #"""
      {"schedule_time": "2026-11-21T08:00:00Z", "dispatch_deadline": "20.5s",
       "http_request": {"http_method": "POST", "body": "__8",
         "oidc_token": {"service_account_email": "x"}}}
      """#
    )

    #expect(reply.status == 200)
    #expect(reply.text("dispatchDeadline") == "20.5s")
    let id = try #require(reply.text("name")?.split(separator: "/").last.map(String.init))
    #expect(await queues.task(id, in: "mail")?.body == [0xff, 0xff])
  }

  @Test("Without /v2/ the reply has the task once more, as Firebase's emulator has it")
  func emulatorForm() async throws {
    let reply = try await create(prefix: "/")
    let google = try await create()

    let name = try #require(reply.text("name"))
    #expect(reply.text("task.name") == "/" + name)
    #expect(name.split(separator: "/").count == 8)
    #expect(google.json["task"] == nil)
  }

  @Test("A name is taken while the task is there and an hour after it went")
  func names() async throws {
    let task = #"{"name": "\#(Self.queue)/tasks/one", "httpRequest": {}}"#
    #expect(try await create(task).status == 200)
    let second = try await create(task)
    #expect(try await send(.delete, "/v2/\(Self.queue)/tasks/one").status == 200)
    await queues.advance(seconds: 3_599)
    let third = try await create(task)
    await queues.advance(seconds: 2)
    let fourth = try await create(task)

    #expect(second.status == 409)
    #expect(second.code == "ALREADY_EXISTS")
    #expect(second.message.contains("Queue mail has, or had within the last hour, a task one"))
    #expect(third.status == 409)
    #expect(fourth.status == 200)
  }

  @Test("A task can be shown, run, deleted, and is not found after that")
  func lifeOfATask() async throws {
    let name = "\(Self.queue)/tasks/one"
    _ = try await create(
      #"{"name": "\#(name)", "httpRequest": {"body": "eyJkYXRhIjoxfQ=="}}"#
    )

    let full = try await send(.get, "/v2/\(name)?responseView=FULL")
    let run = try await send(.post, "/v2/\(name):run", "{}")
    let deleted = try await send(.delete, "/\(name)")
    let gone = try await send(.get, "/v2/\(name)")

    #expect(full.text("httpRequest.body") == "eyJkYXRhIjoxfQ==")
    #expect(run.json["dispatchCount"] as? Int == 1)
    #expect(run.text("lastAttempt.dispatchTime") == "2026-11-21T07:00:00Z")
    #expect(deleted.status == 200 && deleted.json.count == 0)
    #expect(gone.status == 404)
    #expect(gone.message.contains("Queue mail has no task one"))
    #expect(try await send(.delete, "/v2/\(name)").status == 404)
    #expect(try await send(.post, "/v2/\(name):run", "{}").status == 404)
  }

  @Test("Tasks come in pages")
  func pages() async throws {
    for id in ["a", "b", "c"] {
      _ = try await create(#"{"name": "\#(Self.queue)/tasks/\#(id)", "httpRequest": {}}"#)
    }

    let first = try await send(.get, "/v2/\(Self.queue)/tasks?pageSize=2")
    let second = try await send(
      .get,
      "/v2/\(Self.queue)/tasks?pageSize=2&pageToken=\(first.text("nextPageToken") ?? "")"
    )

    #expect((first.json["tasks"] as? [Any])?.count == 2)
    #expect((second.json["tasks"] as? [Any])?.count == 1)
    #expect(second.json["nextPageToken"] == nil)
  }

  @Test("Queues are those of the functions, with the limits that they declare")
  func queuesOfFunctions() async throws {
    let here = try await send(.get, "/v2/projects/demo/locations/us-central1/queues")
    let there = try await send(.get, "/v2/projects/demo/locations/europe-west1/queues")
    let queue = try await send(
      .get,
      "/v2/projects/demo/locations/europe-west1/queues/thumbnails"
    )
    let plain = try await send(.get, "/v2/\(Self.queue)")

    #expect((here.json["queues"] as? [Any])?.count == 2)
    #expect((there.json["queues"] as? [Any])?.count == 1)
    #expect(queue.text("state") == "RUNNING")
    #expect(queue.text("retryConfig.maxRetryDuration") == "60s")
    #expect(queue.text("retryConfig.minBackoff") == "2s")
    #expect(queue.value("rateLimits.maxDispatchesPerSecond") as? Double == 1.5)
    #expect(plain.text("retryConfig.minBackoff") == "0.1s")
    #expect(plain.value("retryConfig.maxAttempts") as? Int == 3)
  }

  @Test("A queue can be paused, resumed and purged, and reports its statistics")
  func queueCommands() async throws {
    _ = try await create()
    let paused = try await send(.post, "/v2/\(Self.queue):pause", "{}")
    let figures = try await send(.get, "/queueStats")
    let resumed = try await send(.post, "/v2/\(Self.queue):resume", "{}")
    let purged = try await send(.post, "/v2/\(Self.queue):purge", "{}")

    #expect(paused.text("state") == "PAUSED")
    let mail = figures.json["queue:demo-us-central1-mail"] as? NSDictionary
    #expect(mail?["tasksCount"] as? Int == 1)
    #expect(mail?["isPaused"] as? Bool == true)
    #expect(figures.json["queue:demo-europe-west1-thumbnails"] != nil)
    #expect(resumed.text("state") == "RUNNING")
    #expect(purged.status == 200)
    #expect(await queues.all(in: "mail").isEmpty)
  }

  @Test("Making a queue is granted where a function made it, and explained elsewhere")
  func createsQueues() async throws {
    let there = try await send(.post, "/\(Self.queue)", "{}")
    let google = try await send(
      .post,
      "/v2/projects/demo/locations/us-central1/queues",
      #"{"name": "\#(Self.queue)"}"#
    )
    let none = try await send(.post, "/projects/demo/locations/us-central1/queues/none", "{}")
    let deleted = try await send(.delete, "/v2/\(Self.queue)")

    #expect(there.status == 200)
    #expect(google.text("name") == Self.queue)
    #expect(none.status == 400 && none.message.contains("made by deploying a function"))
    #expect(deleted.status == 400 && deleted.message.contains("belongs to its function"))
  }

  @Test(
    "An unknown place is a 404 that says what there is",
    arguments: [
      ("/v2/projects/demo/locations/us-central1/queues/none/tasks", "are: mail, thumbnails"),
      ("/v2/projects/demo/locations/asia-east1/queues/mail/tasks", "not in asia-east1 but in us-"),
      ("/v2/projects/other/locations/us-central1/queues/mail/tasks", "this suite serves demo"),
      ("/v2/projects/demo/locations/us-central1/lists/mail", "a queue's tasks are at"),
      ("/", "a queue's tasks are at"),
      ("/v2/projects/demo/locations/us-central1/queues/mail/tasks:fly", "queues are at"),
    ]
  )
  func unknownPlaces(path: String, words: String) async throws {
    let reply = try await send(.post, path, #"{"task": {"httpRequest": {}}}"#)

    #expect(reply.status == 404)
    #expect(reply.message.contains(words), "\(reply.message)")
  }

  @Test(
    "A malformed task is a 400 that says what to change",
    arguments: [
      ("[", "not JSON"), (#"{"task": 1"#, "an unexpected end at byte 10"),
      (String(repeating: "[", count: 4000), "nested more than 128 levels deep"),
      (Self.task(headers: 1000), "a value beyond the 1000 that it may have at byte"),
      (
        #"{"task": {"httpRequest": {"headers": {"a": "\#(String(repeating: "b", count: 81920))"}}}}"#,
        "more than the 81920 bytes"
      ),
      (#"{"task": [\#(String(repeating: "1,", count: 1000))"#, "a value beyond the 1000 that"),
      (
        #"{"\#(String(repeating: "a_", count: 500_000))": 1, "task": {"httpRequest": {}}}"#,
        "Unknown name \"a_a_"
      ),
      ("[]", "must be a JSON object"), ("{}", "has no task"),
      (#"{"task": 1}"#, "task must be a JSON object"),
      (#"{"task": {}}"#, "task.httpRequest is missing"),
      (#"{"task": {"appEngineHttpRequest": {}}}"#, "App Engine"),
      (#"{"task": {"httpRequest": {}}, "tsk": 1}"#, "Unknown name \"tsk\": Cannot find field."),
      (#"{"task": {"httpRequest": {}, "when": 1}}"#, "Unknown name \"when\" at 'task'"),
      (#"{"task": {"httpRequest": {"bdy": ""}}}"#, "Unknown name \"bdy\" at 'task.httpRequest'"),
      (#"{"task": {"httpRequest": {"body": "%"}}}"#, "not base64"),
      (#"{"task": {"httpRequest": {"body": 7}}}"#, "task.httpRequest.body must be a string"),
      (#"{"task": {"httpRequest": {"headers": {"a": 1}}}}"#, "headers.a must be a string"),
      (#"{"task": {"httpRequest": {"headers": {"a b": "c"}}}}"#, "no HTTP header"),
      (#"{"task": {"httpRequest": {"headers": {"a": "c\nd"}}}}"#, "no HTTP header"),
      (#"{"task": {"httpRequest": {"httpMethod": "GET"}}}"#, "take their tasks by POST"),
      (#"{"task": {"httpRequest": {}, "scheduleTime": "soon"}}"#, "write RFC 3339"),
      (
        #"{"task": {"httpRequest": {}, "scheduleTime": "2026-12-21T07:00:01Z"}}"#,
        "no more than 30 days"
      ),
      (#"{"task": {"httpRequest": {}, "dispatchDeadline": "14.9s"}}"#, "give 15s to 1800s"),
      (#"{"task": {"httpRequest": {}, "dispatchDeadline": "1801s"}}"#, "give 15s to 1800s"),
      (#"{"task": {"httpRequest": {}, "dispatchDeadline": "60"}}"#, "write seconds"),
      (#"{"task": {"httpRequest": {}, "dispatchDeadline": "nans"}}"#, "write seconds"),
      (#"{"task": {"httpRequest": {}, "name": "one"}}"#, "is named projects/demo/"),
      (
        #"{"task": {"httpRequest": {}, "name": "\#(Self.queue)/tasks/a.b"}}"#,
        "letters, digits, hyphens and underscores"
      ),
      (#"{"task": {"httpRequest": {}}, "responseView": "ALL"}"#, "BASIC or FULL"),
    ]
  )
  func malformed(body: String, words: String) async throws {
    let reply = try await send(.post, "/v2/\(Self.queue)/tasks", body)

    #expect(reply.status == 400)
    #expect(reply.code == "INVALID_ARGUMENT")
    #expect(reply.message.contains(words), "\(reply.message)")
    #expect(await queues.all(in: "mail").isEmpty)
  }

  private static func task(headers: Int) -> String {
    let headers = (0..<headers).map { #""h\#($0)": "v""# }.joined(separator: ",")
    return #"{"task": {"httpRequest": {"headers": {\#(headers)}}}}"#
  }

  @Test("A task may have hundreds of headers")
  func manyHeaders() async throws {
    let reply = try await send(.post, "/v2/\(Self.queue)/tasks", Self.task(headers: 900))

    #expect(reply.status == 200)
    #expect(await queues.all(in: "mail").first?.headers.count == 900)
  }

  @Test("A body of a megabyte fits, a byte more does not")
  func sizes() async throws {
    func task(_ bytes: Int) -> String {
      #"{"httpRequest": {"body": "\#(Data(repeating: 65, count: bytes).base64EncodedString())"}}"#
    }

    #expect(try await create(task(1 << 20)).status == 200)
    let tooLong = try await create(task(1 << 20 + 1))
    #expect(tooLong.status == 400)
  }
}
