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

  private var answer: some CloudFunction<CallableRequest<Question>, Answer> {
    onCall("answer", Question.self) { request in
      request.logger.info("Asked")
      let uid = try request.requireUser()
      return Answer(uid: uid, text: request.data.text, limit: request.data.limit)
    }
  }

  private var administer: some CloudFunction<CallableRequest<Value>, Void> {
    onCall("administer", Value.self, callers: .administrators) { _ in }
  }

  @Test("A signed-in user's call is answered with the decoded result")
  func signedIn() async throws {
    try await withFunctions(answer) { suite in
      let question = Question(text: "knee", limit: 1 << 60)
      let reply: Answer = try await suite.call("answer", question, as: "tina")

      #expect(reply == Answer(uid: "tina", text: "knee", limit: 1 << 60))
      #expect(suite.calls(of: "answer") == 1)
      #expect(suite.runs(of: "answer").map(\.outcome) == [.succeeded])
      #expect(suite.logs(of: "answer").map(\.message) == ["Asked"])
    }
  }

  @Test(
    "Without a user, and with a bad token, the client's error is thrown",
    arguments: [TestToken.anonymous, .admin, .raw("nonsense")]
  )
  func unauthenticated(token: TestToken) async throws {
    try await withFunctions(answer) { suite in
      let error = await #expect(throws: CallableError.self) {
        let _: Answer = try await suite.call("answer", Question(text: "knee"), as: token)
      }
      #expect(error?.code == .unauthenticated)
    }
  }

  @Test("The administrator is the owner or who has the claim")
  func admin() async throws {
    try await withFunctions(administer) { suite in
      try await suite.call("administer", Value.null, as: .admin)
      let claims: [String: Value] = ["admin": .boolean(true)]
      try await suite.call("administer", Value.null, as: .user("tina", claims: claims))
      let error = await #expect(throws: CallableError.self) {
        try await suite.call("administer", Value.null, as: "tina")
      }
      #expect(error?.code == .permissionDenied)
    }
  }

  @Test("What does not decode is refused with the path at fault, before the function runs")
  func undecodable() async throws {
    try await withFunctions(answer) { suite in
      let error = await #expect(throws: CallableError.self) {
        try await suite.call("answer", ["text": 1], as: "tina")
      }
      #expect(error?.code == .invalidArgument)
      #expect(error?.message.contains("data.text") == true)
      #expect(suite.logs(of: "answer").isEmpty)
    }
  }

  @Test("Errors of the function come with code, message and details; others hide their text")
  func errors() async throws {
    let picky = onCall("picky", Bool.self) { request in
      guard request.data else { throw Sample.Broken() }
      throw CallableError(.failedPrecondition, "Not like this.", details: ["reason": "mood"])
    }
    try await withFunctions(picky) { suite in
      let told = await #expect(throws: CallableError.self) { try await suite.call("picky", true) }
      #expect(told?.code == .failedPrecondition)
      #expect(told?.message == "Not like this.")
      #expect(told?.details as? Value == .map(["reason": .string("mood")]))
      let hidden = await #expect(throws: CallableError.self) {
        try await suite.call("picky", false)
      }
      #expect(hidden?.code == .internal)
      #expect(hidden?.message == "INTERNAL")
      #expect(suite.runs(of: "picky").last?.outcome == .failed("it is broken"))
    }
  }

  @Test("Only callables can be called")
  func notCallable() async throws {
    try await withFunctions(Sample.greet) { suite in
      for name in ["greet", "nobody"] {
        let error = await #expect(throws: CallableError.self) {
          try await suite.call(name, Value.null)
        }
        #expect(error?.code == .notFound)
      }
    }
  }
}
