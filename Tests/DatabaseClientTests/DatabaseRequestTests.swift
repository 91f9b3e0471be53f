import FirestoreClient
import InvocationContext
import JSONText
import OutboundHTTP
import Synchronization
import TestSupport
import Testing

@testable import DatabaseClient

@Suite("Requests to the Realtime Database")
struct DatabaseRequestTests {
  struct Presence: Codable, Sendable, Equatable {
    var online: Bool
    var devices: [String]?
  }

  private func database(
    _ http: ScriptedHTTP,
    _ credential: DatabaseCredential = .admin
  ) -> Database {
    Database.scripted(http, credential)
  }

  @Test("A value is read as a type, and as nil if there is none")
  func get() async throws {
    let http = ScriptedHTTP([
      ScriptedHTTP.json(#"{"online":true,"devices":["a","b"]}"#), ScriptedHTTP.json("null"),
    ])
    let reference = database(http).reference("/presence/a b/")
    let presence: Presence = try await reference.get().data()
    let absent = try await reference.get()

    #expect(presence == Presence(online: true, devices: ["a", "b"]))
    #expect(!absent.exists && absent.key == "a b")
    #expect(try absent.data(Presence?.self) == nil)
    #expect(throws: ValueCodingError.self) { try absent.data(Presence.self) }
    let request = try #require(http.requests.first)
    #expect(request.url == "http://127.0.0.1:9000/presence/a%20b.json?ns=main")
    #expect(request.method == "GET" && request.headers["Authorization"] == "Bearer owner")
  }

  @Test("Each write has its method, its path and its body")
  func writes() async throws {
    let http = ScriptedHTTP { _ in OutboundResponse(status: 204) }
    let root = database(http).root
    try await root.child("presence").child("tina").set(Presence(online: true))
    try await root.child("p").set(["on": true, "at": ServerValue.timestamp])
    try await root.update(["a/b": 1, "c": nil, "n": ServerValue.increment(2)])
    try await root.child("p").remove()
    let first = try await root.child("list").push("x")
    let second = root.child("list").push()

    let writes = http.requests.map { request in
      [
        request.method, String(request.url.dropFirst("http://127.0.0.1:9000".count)),
        String(decoding: request.body, as: UTF8.self),
      ]
    }
    #expect(
      Array(writes.prefix(4)) == [
        ["PUT", "/presence/tina.json?print=silent&ns=main", #"{"online":true}"#],
        ["PUT", "/p.json?print=silent&ns=main", #"{"at":{".sv":"timestamp"},"on":true}"#],
        [
          "PATCH", "/.json?print=silent&ns=main",
          #"{"a/b":1,"c":null,"n":{".sv":{"increment":2}}}"#,
        ],
        ["DELETE", "/p.json?print=silent&ns=main", ""],
      ]
    )
    #expect(writes[4][1] == "/list/\(first.key ?? "").json?print=silent&ns=main")
    let (firstKey, secondKey) = (first.key ?? "", second.key ?? "")
    #expect(firstKey.count == 20 && firstKey < secondKey)
  }

  @Test("A query has its parameters, and its children come in its order")
  func query() async throws {
    let http = ScriptedHTTP { _ in
      OutboundResponse(status: 200, body: Array(#"{"a":{"n":2},"b":{"n":1},"c":{"n":1}}"#.utf8))
    }
    let scores = database(http).reference("scores")
    let query = scores.queryOrdered(byChild: "n").queryStarting(atValue: 1)
      .queryEnding(beforeValue: "x").queryLimited(toLast: 3)
    #expect(try await query.get().children.map(\.key) == ["b", "c", "a"])
    _ = try await scores.queryOrderedByKey().queryEqual(toValue: "a").get()
    _ = try await scores.queryOrderedByValue().queryStarting(afterValue: nil).get()

    let queries = http.requests.map { $0.url.drop { $0 != "?" } }
    #expect(
      queries == [
        "?orderBy=%22n%22&endBefore=%22x%22&startAt=1&limitToLast=3&ns=main",
        "?orderBy=%22%24key%22&equalTo=%22a%22&ns=main",
        "?orderBy=%22%24value%22&startAfter=null&ns=main",
      ]
    )
  }

  @Test(
    "A refusal has its code and the server's reason",
    arguments: [
      (401, "Permission denied", StatusCode.permissionDenied),
      (401, "Auth token is expired", .unauthenticated),
      (400, "Index not defined, add \".indexOn\"", .failedPrecondition),
      (400, "Invalid data; couldn't parse JSON", .invalidArgument), (404, "x", .notFound),
      (413, "x", .outOfRange), (500, "x", .internal),
    ]
  )
  func refused(status: Int, text: String, code: StatusCode) async {
    let body = #"{"error": \#(jsonQuoted(text))}"#
    let http = ScriptedHTTP([ScriptedHTTP.json(body, status: status)])
    let error = await #expect(throws: DatabaseError.self) {
      try await database(http).reference("a").get()
    }

    #expect(error?.code == code && error?.message == text)
    #expect(http.requests.count == 1)
  }

  @Test("What an unavailable server did not do is tried again; an increment is not")
  func retries() async throws {
    let http = ScriptedHTTP([
      .failure(OutboundHTTPError(.failed, "lost")), ScriptedHTTP.json("{}", status: 503),
      ScriptedHTTP.json("null"), .failure(OutboundHTTPError(.failed, "lost")),
    ])
    try await database(http).reference("a").set(1)
    #expect(http.requests.count == 3)

    await #expect(throws: DatabaseError.self) {
      try await database(http).root.update(["a": ServerValue.increment(1)])
    }
    #expect(http.requests.count == 4)
  }

  @Test("A user's token is a parameter, and is renewed once when the server refuses it")
  func tokens() async throws {
    struct Source: IDTokenSource {
      func idToken(replacing rejected: String?) async throws -> String {
        rejected == nil ? "old" : "new"
      }
    }
    let http = ScriptedHTTP([
      ScriptedHTTP.json(#"{"error":"Auth token is expired"}"#, status: 401),
      ScriptedHTTP.json("1"), ScriptedHTTP.json("2"),
    ])
    let reference = database(http).acting(as: Source()).reference("a")
    #expect(try await reference.get().data() == 1)
    #expect(try await database(http, .anonymous).reference("a").get().data() == 2)

    #expect(
      http.requests.map { $0.url.split(separator: "?").last } == [
        "ns=main&auth=old", "ns=main&auth=new", "ns=main",
      ]
    )
    #expect(http.requests.allSatisfy { $0.headers["Authorization"] == nil })
  }

  @Test(
    "A path with an invalid key is refused before anything is sent",
    arguments: ["a.b", "a/$c", "x[0]", "a/#", String(repeating: "k/", count: 33)]
  )
  func invalidPath(path: String) async {
    let http = ScriptedHTTP()
    for call in [
      { _ = try await $0.get() }, { try await $0.set(1) }, { try await $0.remove() },
    ] as [(DatabaseReference) async throws -> Void] {
      let error = await #expect(throws: DatabaseError.self) {
        try await call(database(http).reference(path))
      }
      #expect(error?.code == .invalidArgument)
    }
    #expect(http.requests.isEmpty)
  }

  // MARK: Transactions

  private static func tagged(_ body: String, _ tag: String, _ status: Int = 200)
    -> ScriptedHTTP.Answer
  {
    .success(OutboundResponse(status: status, headers: ["ETag": tag], body: Array(body.utf8)))
  }

  @Test("A transaction runs again for the value of a faster writer")
  func transaction() async throws {
    let http = ScriptedHTTP([
      Self.tagged("null", "null_etag"), Self.tagged("5", "t5", 412), Self.tagged("6", "t6"),
    ])
    let seen = Mutex<[Int?]>([])
    let result = try await database(http).reference("n").transaction { (number: Int?) -> Int? in
      seen.withLock { $0.append(number) }
      return (number ?? 0) + 1
    }

    #expect(result == 6 && seen.withLock { $0 } == [nil, 5])
    #expect(http.requests.map(\.method) == ["GET", "PUT", "PUT"])
    #expect(http.requests.map { $0.headers["if-match"] } == [nil, "null_etag", "t5"])
    #expect(http.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["", "1", "6"])
    #expect(http.requests.allSatisfy { $0.headers["X-Firebase-ETag"] == "true" })
  }

  @Test("A transaction gives up after 25 attempts, and at an error of its own without a write")
  func transactionEnds() async throws {
    struct Stop: Error {}
    let http = ScriptedHTTP { request in
      OutboundResponse(
        status: request.method == "PUT" ? 412 : 200,
        headers: ["ETag": "t"],
        body: Array("1".utf8)
      )
    }
    let error = await #expect(throws: DatabaseError.self) {
      try await database(http).reference("n").transaction { (number: Int?) in number }
    }
    #expect(error?.code == .aborted && http.requests.count == 26)
    await #expect(throws: Stop.self) {
      try await database(http).reference("n").transaction { (_: Int?) -> Int? in throw Stop() }
    }
    #expect(http.requests.count == 27)
  }

  // MARK: Settings

  @Test(
    "The environment names the emulator and the instance",
    arguments: [
      (
        ["FIREBASE_DATABASE_EMULATOR_HOST": "h:1", "GCLOUD_PROJECT": "p"], "http://h:1",
        "p-default-rtdb"
      ),
      (
        [
          "FIREBASE_DATABASE_EMULATOR_HOST": "h:1",
          "FIREBASE_CONFIG": #"{"projectId":"p","databaseURL":"http://h:1/?ns=mine"}"#,
        ], "http://h:1", "mine"
      ),
      (
        [
          "FIREBASE_DATABASE_EMULATOR_HOST": "h:1", "GCLOUD_PROJECT": "p",
          "FIREBASE_CONFIG": #"{"databaseURL":"https://other.firebaseio.com"}"#,
        ], "http://h:1", "other"
      ),
      (
        ["GCLOUD_PROJECT": "p", "FIREBASE_CONFIG": #"{"databaseURL":"http://h:2/?ns=mine"}"#],
        "http://h:2", "mine"
      ),
    ]
  )
  func environment(variables: [String: String], url: String, namespace: String) throws {
    let settings = try DatabaseSettings(environment: variables)

    #expect(settings.url == url && settings.namespace == namespace)
  }

  @Test(
    "Without an address the first call says what to set",
    arguments: [
      ([:], "GCLOUD_PROJECT is not set"),
      (["GCLOUD_PROJECT": "p"], "FIREBASE_DATABASE_EMULATOR_HOST is not set"),
    ]
  )
  func missing(variables: [String: String], reason: String) async {
    let error = await #expect(throws: DatabaseError.self) {
      try await Database(environment: variables, http: ScriptedHTTP()).reference("a").get()
    }

    #expect(error?.code == .failedPrecondition && error?.message.contains(reason) == true)
  }

  @Test("A write names the event that caused it")
  func cause() async throws {
    let http = ScriptedHTTP([ScriptedHTTP.json("1")])
    try await EventCause.with(header: "9.0.f;1") {
      try await database(http).reference("a").set(1)
    }

    #expect(http.requests.first?.headers[EventCause.headerName]?.hasPrefix("9.0.f;1") == true)
  }
}

extension Database {
  /// A database behind scripted responses, whose waits are over at once, except for long ones.
  static func scripted(
    _ http: ScriptedHTTP,
    _ credential: DatabaseCredential = .admin,
    sockets: any MessageSockets = PlatformSockets(),
    longWait: @escaping @Sendable (Duration) async throws -> Void = {
      try await Task.sleep(for: $0)
    }
  ) -> Database {
    Database(
      DatabaseCalls(
        settings: DatabaseSettings(url: "http://127.0.0.1:9000?ns=main", credential: credential),
        http: http,
        tokens: nil,
        identity: .fixed(credential),
        retries: CallRetries(sleep: { if $0 > .seconds(20) { try await longWait($0) } })
      ),
      sockets: sockets
    )
  }
}
