import EventLog
import StorageEngine
import TestSupport
import Testing

@testable import FunctionsTesting

@Suite("A suite")
struct SuiteTests {
  @Test("Written documents reach their triggers, others do not")
  func triggers() async throws {
    try await withFunctions(Sample.greet) { suite in
      try await suite.firestore.document("users/tina").set(["displayName": "Tina"])
      try await suite.firestore.document("users/tina").update(["displayName": "Tina T."])
      try await suite.firestore.document("chats/c1").set(["members": ["tina"]])
      try await suite.settle()

      #expect(suite.runCount(of: Sample.greet) == 1)
      #expect(suite.logs(of: Sample.greet).map(\.metadata) == [["user": "tina"]])
      let run = try #require(suite.runs.first)
      #expect(run.outcome == .succeeded)
      #expect(run.document == "users/tina")
      #expect(suite.logs.first?.invocationID == run.invocationID)
    }
  }

  @Test("Functions are built over the suite's database, HTTP and environment")
  func testEnvironment() async throws {
    let greeting = try await withFunctions(
      { function in FunctionsApp { function } },
      project: "demo-x",
      environment: ["GREETING": "Hi"]
    ) { environment in
      OnCall<FirestoreValue, String?>("greet") { _ in
        try await environment.firestore.document("greetings/last").set([
          "text": .value(environment.variables["GREETING"])
        ])
        return environment.variables["GCLOUD_PROJECT"]
      }
    } test: { suite, greet in
      #expect(try await suite.call(greet, .null) == "demo-x")
      return try await suite.firestore.document("greetings/last").get().fields["text"]
    }
    #expect(greeting == .string("Hi"))
  }

  @Test("Suites side by side see nothing of each other", arguments: 0..<40)
  func sideBySide(number: Int) async throws {
    try await Sample.withChain { suite, chain in
      for id in 0...number { try await suite.firestore.document("a/\(id)").set([:]) }
      try await suite.settle()

      #expect(try await suite.firestore.collection("d").get().count == number + 1)
      #expect(suite.runCount(of: chain.cTod) == number + 1)
    }
  }

  @Test("A test on the main actor keeps its isolation")
  @MainActor
  func mainActor() async throws {
    var seen: [String] = []
    try await withFunctions(Sample.greet) { suite in
      try await suite.firestore.document("users/tina").set([:])
      try await suite.settle()
      seen = suite.runs.map(\.function)
    }
    #expect(seen == ["greet"])
  }

  @Test("Nothing survives the closure: what still runs is cancelled and waited for")
  func structured() async throws {
    let ended = Counter()
    let hanging = Sample.hanging { ended.next() }
    try await withFunctions(hanging) { suite in
      try await suite.firestore.document("users/tina").set([:])
      await started(hanging, in: suite)
    }
    #expect(ended.value == 1)
  }

  @Test("An error of the test comes out, and ends the suite")
  func testError() async throws {
    await #expect(throws: Sample.Broken.self) {
      try await withFunctions(Sample.greet) { _ in throw Sample.Broken() }
    }
  }

  @Test("Functions that cannot be deployed are refused, each with what to change")
  func invalid() async throws {
    let bad = OnDocumentCreated<FirestoreDocument>("bad name", at: "users") { _ in }
    let error = await #expect(throws: FunctionsTestingError.self) {
      try await withFunctions(bad) { _ in }
    }
    #expect(error?.kind == .invalidFunctions)
    #expect(error?.message.contains("\"bad name\"") == true)
  }

  @Test("A service that fails ends the settling with its error")
  func serviceFails() async throws {
    let storage = FaultyStorage()
    let parts = try await SuiteParts(project: "demo-test", environment: [:], storage: storage)
    let core = try SuiteCore(
      app: FunctionsApp { Sample.greet },
      parts: parts,
      faults: nil
    )
    try await core.deploy()
    let error = await #expect(throws: FunctionsTestingError.self) {
      try await core.run {
        let suite = FunctionsSuite(core: core)
        try await suite.firestore.document("users/tina").set([:])
        try await suite.settle()
        storage.failReads(1, with: StorageError(.failed, "the disk is gone"))
        parts.tailer.wake()
        await core.failed.fired(after: 0)
        try await suite.settle()
      }
    }
    #expect(error?.kind == .suiteFailed)
    #expect(error?.message.contains("the disk is gone") == true)
  }

  @Test("The database refuses with the statuses and texts of the wire")
  func refusals() async throws {
    try await withFunctions(Sample.greet) { suite in
      let tina = suite.firestore.document("users/tina")
      try await tina.set([:])
      let exists = await #expect(throws: FirestoreError.self) { try await tina.create([:]) }
      #expect(exists?.code == .alreadyExists)
      #expect(exists?.message.contains("users/tina") == true)
      let missing = await #expect(throws: FirestoreError.self) {
        try await suite.firestore.document("users/tom").update(["a": 1])
      }
      #expect(missing?.code == .notFound)
      let stranger = await #expect(throws: FirestoreError.self) {
        try await suite.firestore(as: .raw("nonsense")).document("users/tina").get()
      }
      #expect(stranger?.code == .unauthenticated)
    }
  }

  @Test("A user's client writes like the administrator's, as that user")
  func actsAsUser() async throws {
    try await withFunctions(Sample.greet) { suite in
      try await suite.firestore(as: "tina").document("users/tina").set(["a": 1])
      #expect(try await suite.firestore(as: .anonymous).document("users/tina").get().exists)
      let count = try await suite.firestore.runTransaction { transaction in
        let user = try await transaction.get(suite.firestore.document("users/tina"))
        try transaction.set(user.reference, ["a": 2])
        return user.fields["a"]
      }
      #expect(count == .integer(1))
      #expect(
        try await suite.firestore.collection("users").where("a", .equal, 2).count() == 1
      )
    }
  }
}

/// Returns once a run of a function has begun.
func started(_ function: some CloudFunction, in suite: FunctionsSuite) async {
  await eventually("a run has begun") { suite.runCount(of: function) > 0 }
}
