import FunctionsTesting
import Testing

@Suite("Calls")
struct CallTests {
  struct Question: Codable, Sendable {
    var text: String
    var limit: Int64?
  }

  struct Answer: Codable, Sendable, Equatable {
    var uid: String
    var text: String
    var limit: Int64?
  }

  private var answer: OnCall<Question, Answer> {
    .init("answer") { request in
      request.logger.info("Asked")
      let uid = try request.requireUser()
      return Answer(uid: uid, text: request.data.text, limit: request.data.limit)
    }
  }

  private var administer: OnCall<FirestoreValue, Void> {
    .init("administer", callers: .claim("admin")) { _ in }
  }

  @Test("A signed-in user's call is answered with the decoded result")
  func signedIn() async throws {
    try await withFunctions(answer) { suite in
      let question = Question(text: "knee", limit: 1 << 60)
      let reply = try await suite.call(answer, question, as: "tina")

      #expect(reply == Answer(uid: "tina", text: "knee", limit: 1 << 60))
      #expect(suite.runCount(of: answer) == 1)
      #expect(suite.runs(of: answer).map(\.outcome) == [.succeeded])
      #expect(suite.logs(of: answer).map(\.message) == ["Asked"])
    }
  }

  @Test(
    "Without a user, and with a bad token, the client's error is thrown",
    arguments: [TestToken.anonymous, .admin, .raw("nonsense")]
  )
  func unauthenticated(token: TestToken) async throws {
    try await withFunctions(answer) { suite in
      let error = await #expect(throws: CallableError.self) {
        try await suite.call(answer, Question(text: "knee"), as: token)
      }
      #expect(error?.code == .unauthenticated)
    }
  }

  @Test("The administrator is the owner or who has the claim")
  func admin() async throws {
    try await withFunctions(administer) { suite in
      try await suite.call(administer, .null, as: .admin)
      let claims: MapValue = ["admin": .boolean(true)]
      try await suite.call(administer, .null, as: .user("tina", claims: claims))
      let error = await #expect(throws: CallableError.self) {
        try await suite.call(administer, .null, as: "tina")
      }
      #expect(error?.code == .permissionDenied)
    }
  }

  @Test("What does not decode is refused with the path at fault, before the function runs")
  func undecodable() async throws {
    try await withFunctions(answer) { suite in
      let error = await #expect(throws: CallableError.self) {
        try await suite.call(answer, json: ["text": 1], as: "tina")
      }
      #expect(error?.code == .invalidArgument)
      #expect(error?.message.contains("data.text") == true)
      #expect(suite.logs(of: answer).isEmpty)
    }
  }

  @Test("Errors of the function come with code, message and details; others hide their text")
  func errors() async throws {
    let picky = OnCall<Bool, Void>("picky") { request in
      guard request.data else { throw Sample.Broken() }
      throw CallableError(.failedPrecondition, "Not like this.", details: ["reason": "mood"])
    }
    try await withFunctions(picky) { suite in
      let reported = await #expect(throws: CallableError.self) { try await suite.call(picky, true) }
      #expect(reported?.code == .failedPrecondition)
      #expect(reported?.message == "Not like this.")
      #expect(reported?.details as? FirestoreValue == .map(["reason": .string("mood")]))
      let hidden = await #expect(throws: CallableError.self) {
        try await suite.call(picky, false)
      }
      #expect(hidden?.code == .internal)
      #expect(hidden?.message == "INTERNAL")
      #expect(suite.runs(of: picky).last?.outcome == .failed("it is broken"))
    }
  }

  @Test("Only callables of the suite can be called")
  func notCallable() async throws {
    try await withFunctions(Sample.greet) { suite in
      let trigger = await #expect(throws: FunctionsTestingError.self) {
        try await suite.call(Sample.greet, json: FirestoreValue.null)
      }
      #expect(trigger?.kind == .noSuchFunction)
      #expect(trigger?.message == "greet is not a function that clients call.")
      let stranger = await #expect(throws: FunctionsTestingError.self) {
        try await suite.call(administer, .null)
      }
      #expect(stranger?.kind == .noSuchFunction)
      #expect(stranger?.message.contains("no function administer in this suite") == true)
    }
  }

  @Test("Who calls as another version of the client gets what that version decodes")
  func otherTypes() async throws {
    struct NewQuestion: Encodable {
      var text: String
      var tone: String
    }
    try await withFunctions(answer) { suite in
      let question = NewQuestion(text: "knee", tone: "kind")
      let reply = try await suite.call(answer, json: question, as: "tina")
      #expect(reply == .map(["uid": .string("tina"), "text": .string("knee")]))
    }
  }
}
