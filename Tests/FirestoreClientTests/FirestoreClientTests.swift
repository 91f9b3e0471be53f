@testable import FirestoreClient
import GoogleAccess
import OutboundHTTP
import TestSupport
import Testing

private let settings = FirestoreSettings(project: "p", endpoint: "http://h:1")
private let root = "v1/projects/p/databases/%28default%29/documents"
private let name = "projects/p/databases/(default)/documents"

private func firestore(_ http: ScriptedHTTP) -> Firestore { Firestore(settings, http: http) }

@Suite("Documents over REST")
struct DocumentCallTests {
  private struct Person: Codable, Equatable {
    var displayName: String
    var age: Int
    var nickname: String?
  }

  @Test("A document is read and decoded")
  func get() async throws {
    let http = ScriptedHTTP(
      """
      [{"found":{"name":"\(name)/users/u1","fields":{"displayName":{"stringValue":"Ada"},
      "age":{"integerValue":"36"},"other":{"nullValue":null}},
      "createTime":"2024-01-01T00:00:00Z","updateTime":"2024-01-02T00:00:00.5Z"},
      "readTime":"2024-01-03T00:00:00Z","somethingNew":1}]
      """
    )
    let snapshot = try await firestore(http).document("users/u1").get()

    #expect(snapshot.exists)
    #expect(snapshot.id == "u1")
    #expect(try snapshot.data(as: Person.self) == Person(displayName: "Ada", age: 36))
    #expect(snapshot["age"] == .integer(36))
    #expect(snapshot.updateTime == Timestamp("2024-01-02T00:00:00.5Z"))
    #expect(http.calls == ["POST \(root):batchGet"])
    #expect(http.bodies == [#"{"documents":["\#(name)/users/u1"]}"#])
    #expect(http.authorizations == ["Bearer owner"])
  }

  @Test("A missing document is a snapshot, and an error only to who wants its data")
  func missing() async throws {
    let http = ScriptedHTTP(
      #"[{"missing":"\#(name)/users/u1","readTime":"2024-01-03T00:00:00Z"}]"#
    )
    let snapshot = try await firestore(http).document("users/u1").get()

    #expect(!snapshot.exists)
    #expect(snapshot.fields.isEmpty)
    let error = #expect(throws: FirestoreError.self) { try snapshot.data(as: Person.self) }
    #expect(error?.code == .notFound)
  }

  @Test("Many documents come in the order asked, whatever the order answered")
  func getAll() async throws {
    let http = ScriptedHTTP(
      """
      [{"missing":"\(name)/a/2","readTime":"2024-01-03T00:00:00Z"},
      {"found":{"name":"\(name)/a/1","createTime":"2024-01-01T00:00:00Z",
      "updateTime":"2024-01-01T00:00:00Z"},"readTime":"2024-01-03T00:00:00Z"}]
      """
    )
    let store = firestore(http)
    let references = ["1", "2", "1"].map { store.collection("a").document($0) }
    let snapshots = try await store.getAll(references)

    #expect(snapshots.map(\.exists) == [true, false, true])
  }

  @Test(
    "A path of the wrong shape is refused before anything is sent",
    arguments: ["", "users", "users//x", "users/a/b", "/users/a"]
  )
  func badPaths(path: String) async throws {
    let http = ScriptedHTTP()
    let error = await #expect(throws: FirestoreError.self) {
      try await firestore(http).document(path).get()
    }
    #expect(error?.code == .invalidArgument)
    #expect(http.calls.isEmpty)
  }

  @Test("An id with a slash does not reach another document")
  func slashInID() async throws {
    let http = ScriptedHTTP()
    await #expect(throws: FirestoreError.self) {
      try await firestore(http).collection("users").document("a/b/c").get()
    }
    #expect(http.calls.isEmpty)
  }

  @Test("The server's error is the caller's, in the words of the server")
  func serverError() async throws {
    let http = ScriptedHTTP([ScriptedHTTP.error(409, "ALREADY_EXISTS", "there")])
    let error = await #expect(throws: FirestoreError.self) {
      try await firestore(http).document("a/1").create(["x": 1])
    }
    #expect(error?.code == .alreadyExists)
    #expect(error?.message == "there")
  }

  @Test("An error after the first results is not taken for their end")
  func errorInStream() async throws {
    let http = ScriptedHTTP(
      """
      [{"document":{"name":"\(name)/a/1","createTime":"2024-01-01T00:00:00Z",
      "updateTime":"2024-01-01T00:00:00Z"},"readTime":"2024-01-03T00:00:00Z"},
      {"error":{"code":400,"message":"index missing","status":"FAILED_PRECONDITION"}}]
      """
    )
    let error = await #expect(throws: FirestoreError.self) {
      try await firestore(http).collection("a").get()
    }
    #expect(error?.code == .failedPrecondition)
    #expect(error?.message == "index missing")
  }

  @Test("A document that does not decode is named, with the field and what was there instead")
  func undecodable() async throws {
    struct Note: Decodable { var text: String }
    let http = ScriptedHTTP(
      """
      [{"document":{"name":"\(name)/a/1","fields":{"text":{"integerValue":"5"}},
      "createTime":"2024-01-01T00:00:00Z","updateTime":"2024-01-01T00:00:00Z"},
      "readTime":"2024-01-03T00:00:00Z"}]
      """
    )
    let found = try await firestore(http).collection("a").get()
    let error = #expect(throws: ValueCodingError.self) { try found.data(as: Note.self) }

    #expect(error?.document == "a/1")
    #expect(error?.description == "a/1: 'text' is an integer, not a string")
  }

  @Test("A user's token is sent, and no token for an unauthenticated client")
  func credentials() async throws {
    let http = ScriptedHTTP("[]", "[]")
    let store = firestore(http)
    _ = try await store.acting(as: .idToken("t")).collection("a").get()
    _ = try await store.acting(as: .anonymous).collection("a").get()

    #expect(http.authorizations == ["Bearer t", nil])
    #expect("\(FirestoreCredential.idToken("secret"))" == "idToken")
  }

  @Test("A user's token that the server refuses is renewed, and the call made again")
  func renewedToken() async throws {
    let http = ScriptedHTTP([
      ScriptedHTTP.json("[]"), ScriptedHTTP.error(401, "UNAUTHENTICATED"), ScriptedHTTP.json("[]"),
    ])
    let tokens = ScriptedTokens()
    let store = firestore(http).acting(as: tokens)
    _ = try await store.collection("a").get()
    _ = try await store.collection("a").get()

    #expect(http.authorizations == ["Bearer t1", "Bearer t1", "Bearer t2"])
    #expect(tokens.rejected == ["t1"])
  }

  @Test("A refusal of the only token, and of a new one, reaches the caller")
  func refusedTokens() async throws {
    for (renewals, calls) in [(0, 1), (1, 2)] {
      let http = ScriptedHTTP([
        ScriptedHTTP.error(401, "UNAUTHENTICATED"), ScriptedHTTP.error(401, "UNAUTHENTICATED"),
      ])
      let store = firestore(http).acting(as: ScriptedTokens(renewals: renewals))
      let error = await #expect(throws: FirestoreError.self) {
        try await store.collection("a").get()
      }
      #expect(error?.code == .unauthenticated)
      #expect(http.calls.count == calls)
    }
  }

  @Test("The error of the source of tokens reaches the caller, and nothing is sent")
  func signedOut() async throws {
    let http = ScriptedHTTP("[]")
    let tokens = ScriptedTokens(failures: [ScriptedTokens.SignedOutError()])
    await #expect(throws: ScriptedTokens.SignedOutError.self) {
      try await firestore(http).acting(as: tokens).document("a/b").set(["n": 1])
    }
    #expect(http.calls == [])
  }
}

@Suite("Settings of the client")
struct FirestoreSettingsTests {
  @Test("Emulator and project come from the environment given")
  func environment() throws {
    let settings = try FirestoreSettings(environment: [
      "FIRESTORE_EMULATOR_HOST": "127.0.0.1:8080", "GCLOUD_PROJECT": "demo",
    ])
    #expect(settings.endpoint == "http://127.0.0.1:8080")
    #expect(settings.project == "demo")
    #expect(settings.database == "(default)")
  }

  @Test("Without an emulator the database is Google's, where credentials are named")
  func production() throws {
    let settings = try FirestoreSettings(environment: [
      "GOOGLE_CLOUD_PROJECT": "psst-4711", "K_SERVICE": "greet",
    ])

    #expect(settings.endpoint == "https://firestore.googleapis.com")
    #expect(settings.credentials == .metadataServer("metadata.google.internal"))
  }

  @Test("An emulator decides, whatever credentials there are")
  func emulatorDecides() throws {
    let settings = try FirestoreSettings(environment: [
      "FIRESTORE_EMULATOR_HOST": "127.0.0.1:8080", "GCLOUD_PROJECT": "psst-4711",
      "GOOGLE_APPLICATION_CREDENTIALS": "/key.json",
    ])

    #expect(settings.endpoint == "http://127.0.0.1:8080")
    #expect(settings.credentials == nil)
  }

  @Test(
    "What is missing is named",
    arguments: [
      (["GCLOUD_PROJECT": "demo"], "FIRESTORE_EMULATOR_HOST"),
      (["GCLOUD_PROJECT": "demo-psst", "K_SERVICE": "greet"], "FIRESTORE_EMULATOR_HOST"),
      (
        ["GCLOUD_PROJECT": "psst", "K_SERVICE": "greet", "FUNCTIONS_EMULATOR": "true"],
        "FIRESTORE_EMULATOR_HOST"
      ),
      (["K_SERVICE": "greet"], "GCLOUD_PROJECT"),
      (["FIRESTORE_EMULATOR_HOST": "h:1"], "GCLOUD_PROJECT"),
    ]
  )
  func missing(environment: [String: String], variable: String) {
    let error = #expect(throws: FirestoreError.self) {
      try FirestoreSettings(environment: environment)
    }
    #expect(error?.code == .failedPrecondition)
    #expect(error?.message.hasPrefix(variable) == true)
  }
}

@Suite("Retries")
struct RetryTests {
  private let found = ScriptedHTTP.json("[]")

  private func store(_ http: ScriptedHTTP, waits: WaitLog) -> Firestore {
    Firestore(
      project: "p",
      transport: RESTTransport(
        endpoint: "http://h:1",
        timeout: .seconds(1),
        responseBytesMax: 1000,
        http: http,
        tokens: nil
      ),
      retries: CallRetries(sleep: { waits.add($0) }, random: { 0 })
    )
  }

  @Test("A read is made again while the server is unavailable, with growing waits")
  func reads() async throws {
    let http = ScriptedHTTP([
      ScriptedHTTP.error(503, "UNAVAILABLE"), .failure(OutboundHTTPError(.failed, "broke")),
      .failure(OutboundHTTPError(.cannotConnect, "no")), ScriptedHTTP.json("[]"),
    ])
    let waits = WaitLog()
    _ = try await store(http, waits: waits).collection("a").get()

    #expect(waits.all == [.milliseconds(100), .milliseconds(200), .milliseconds(400)])
  }

  @Test("A read is given up after five attempts")
  func givingUp() async throws {
    let http = ScriptedHTTP(Array(repeating: ScriptedHTTP.error(503, "UNAVAILABLE"), count: 9))
    let waits = WaitLog()
    let error = await #expect(throws: FirestoreError.self) {
      try await store(http, waits: waits).collection("a").get()
    }
    #expect(error?.code == .unavailable)
    #expect(http.calls.count == 5)
  }

  @Test("A commit is made again only if it has surely not been done")
  func commits() async throws {
    let committed = #"{"writeResults":[{}],"commitTime":"2024-01-01T00:00:00Z"}"#
    let sure = ScriptedHTTP([
      .failure(OutboundHTTPError(.cannotConnect, "no")), ScriptedHTTP.error(503, "UNAVAILABLE"),
      ScriptedHTTP.json(committed),
    ])
    try await store(sure, waits: WaitLog()).document("a/1").set(["x": 1])
    #expect(sure.calls.count == 3)

    let unsure = ScriptedHTTP([
      .failure(OutboundHTTPError(.failed, "broke")), ScriptedHTTP.json(committed),
    ])
    await #expect(throws: FirestoreError.self) {
      try await store(unsure, waits: WaitLog()).document("a/1").set(["x": 1])
    }
    #expect(unsure.calls.count == 1)
  }

  @Test("Chance shortens a wait by up to a half")
  func jitter() {
    var patience = Patience(CallRetries(random: { 0.5 }))
    #expect(
      patience.wait(after: FirestoreError(.unavailable, ""), at: .now) == .milliseconds(75)
    )
  }
}

@Suite("Transactions over REST")
struct TransactionTests {
  private let begun1 = ScriptedHTTP.json(#"{"transaction":"QQ=="}"#)
  private let begun2 = ScriptedHTTP.json(#"{"transaction":"Qg=="}"#)
  private let read = ScriptedHTTP.json(
    #"[{"missing":"\#(name)/a/1","readTime":"2024-01-03T00:00:00Z"}]"#
  )
  private let committed = ScriptedHTTP.json(
    #"{"writeResults":[{}],"commitTime":"2024-01-01T00:00:00Z"}"#
  )
  private let done = ScriptedHTTP.json("{}")

  private func store(_ http: ScriptedHTTP, waits: WaitLog = WaitLog()) -> Firestore {
    Firestore(
      project: "p",
      transport: RESTTransport(
        endpoint: "http://h:1",
        timeout: .seconds(1),
        responseBytesMax: 1000,
        http: http,
        tokens: nil
      ),
      retries: CallRetries(sleep: { waits.add($0) }, random: { 0 })
    )
  }

  @Test("Reads and commit carry the transaction")
  func whole() async throws {
    let http = ScriptedHTTP([begun1, read, committed])
    let existed = try await store(http).runTransaction { transaction in
      let reference = firestore(http).document("a/1")
      let snapshot = try await transaction.get(reference)
      try transaction.set(reference, ["x": 1])
      return snapshot.exists
    }

    #expect(!existed)
    #expect(
      http.calls
        == [":beginTransaction", ":batchGet", ":commit"].map { "POST \(root)\($0)" }
    )
    #expect(http.bodies[1].contains(#""transaction":"QQ==""#))
    #expect(http.bodies[2].contains(#""transaction":"QQ==""#))
  }

  @Test("An aborted transaction runs again, in the place of the one before")
  func aborted() async throws {
    let http = ScriptedHTTP([
      begun1, read, ScriptedHTTP.error(409, "ABORTED"), done, begun2, read, committed,
    ])
    let waits = WaitLog()
    let runs = WaitLog()
    try await store(http, waits: waits).runTransaction { transaction in
      runs.add(.zero)
      _ = try await transaction.get(firestore(http).document("a/1"))
    }

    #expect(runs.all.count == 2)
    #expect(waits.all == [.milliseconds(10)])
    #expect(http.calls[3] == "POST \(root):rollback")
    #expect(http.bodies[4].contains(#""retryTransaction":"QQ==""#))
  }

  @Test(
    "A commit that may have succeeded ends the transaction; its body does not run again",
    arguments: [
      ScriptedHTTP.Answer.failure(OutboundHTTPError(.failed, "broke")),
      ScriptedHTTP.json("<html>", status: 503), ScriptedHTTP.error(504, "DEADLINE_EXCEEDED"),
      ScriptedHTTP.error(500, "INTERNAL"),
    ]
  )
  func uncertainCommit(answer: ScriptedHTTP.Answer) async throws {
    let http = ScriptedHTTP([begun1, answer, done, begun2, committed])
    let runs = WaitLog()
    let error = await #expect(throws: FirestoreError.self) {
      try await store(http).runTransaction { _ in runs.add(.zero) }
    }
    #expect(error?.mayHaveActed == true)
    #expect(runs.all.count == 1)
    #expect(http.calls.filter { $0.hasSuffix(":commit") }.count == 1)
  }

  @Test("A read that fails on the way lets the whole transaction run again")
  func failedRead() async throws {
    let http = ScriptedHTTP([
      begun1, ScriptedHTTP.error(500, "INTERNAL"), done, begun2, read, committed,
    ])
    let runs = WaitLog()
    try await store(http).runTransaction { transaction in
      runs.add(.zero)
      _ = try await transaction.get(firestore(http).document("a/1"))
    }
    #expect(runs.all.count == 2)
  }

  @Test("The body's own error ends the transaction and is thrown")
  func ownError() async throws {
    struct OwnError: Error {}
    let http = ScriptedHTTP([begun1, done])
    await #expect(throws: OwnError.self) {
      try await store(http).runTransaction { _ in throw OwnError() }
    }
    #expect(http.calls.map { $0.hasSuffix(":rollback") } == [false, true])
  }

  @Test("What will not get better is not tried again")
  func final() async throws {
    let http = ScriptedHTTP([begun1, ScriptedHTTP.error(404, "NOT_FOUND"), done])
    let error = await #expect(throws: FirestoreError.self) {
      try await store(http).runTransaction { _ in }
    }
    #expect(error?.code == .notFound)
    #expect(http.calls.count == 3)
  }

  @Test("A read after a write is refused")
  func readAfterWrite() async throws {
    let http = ScriptedHTTP([begun1, done])
    let error = await #expect(throws: FirestoreError.self) {
      try await store(http).runTransaction { transaction in
        let reference = firestore(http).document("a/1")
        try transaction.delete(reference)
        _ = try await transaction.get(reference)
      }
    }
    #expect(error?.code == .invalidArgument)
  }
}

@Suite("A database without an environment")
struct UnavailableTests {
  @Test("The first call says what is missing")
  func missing() async throws {
    let error = await #expect(throws: FirestoreError.self) {
      try await Firestore(environment: [:]).document("a/1").get()
    }
    #expect(error?.code == .failedPrecondition)
    #expect(error?.message.hasPrefix("FIRESTORE_EMULATOR_HOST") == true)
  }
}

@Suite("Production")
struct ProductionTests {
  @Test("Calls carry an access token, and a refused one is replaced once")
  func tokens() async throws {
    let http = ScriptedHTTP([
      ScriptedHTTP.json(#"{"access_token":"one","expires_in":3600}"#), ScriptedHTTP.json("[]"),
      ScriptedHTTP.error(401, "UNAUTHENTICATED"),
      ScriptedHTTP.json(#"{"access_token":"two","expires_in":3600}"#), ScriptedHTTP.json("[]"),
      ScriptedHTTP.error(401, "UNAUTHENTICATED"),
      ScriptedHTTP.json(#"{"access_token":"three"}"#),
      ScriptedHTTP.error(401, "UNAUTHENTICATED", "No."),
    ])
    let store = Firestore(
      environment: ["GCLOUD_PROJECT": "psst-4711", "GCE_METADATA_HOST": "metadata.test"],
      http: http
    )

    _ = try await store.collection("a").get()
    _ = try await store.collection("a").get()
    let error = await #expect(throws: FirestoreError.self) {
      try await store.collection("a").get()
    }

    #expect(error?.code == .unauthenticated)
    #expect(
      http.authorizations == [
        nil, "Bearer one", "Bearer one", nil, "Bearer two", "Bearer two", nil, "Bearer three",
      ]
    )
    #expect(http.calls[1].hasPrefix("POST v1/projects/psst-4711/"))
  }

  @Test("A user's own rights need no access token")
  func userRights() async throws {
    let http = ScriptedHTTP("[]")
    let store = Firestore(
      environment: ["GCLOUD_PROJECT": "psst-4711", "GCE_METADATA_HOST": "metadata.test"],
      http: http
    )

    _ = try await store.acting(as: .idToken("t")).collection("a").get()
    #expect(http.authorizations == ["Bearer t"])
  }
}
