import FunctionsTesting
import FirestoreClient
import Foundation
import OutboundHTTP
import PsstModels
import StatusCodes
import Synchronization
import TestSupport
import Testing

@testable import PsstBackend
@testable import PsstServices

/// The assistant and the callables, as the app uses them over HTTP.
@Suite("Assistant service")
struct AIServiceTests {
  /// Returns the answer of a callable that streams.
  private static func events(_ text: String) -> ScriptedHTTP.Answer {
    .success(
      OutboundResponse(
        status: 200,
        headers: ["content-type": "text/event-stream; charset=utf-8"],
        body: Array(text.utf8)
      )
    )
  }

  /// Tokens that are renewed when the server refuses them.
  private struct Tokens: IDTokenSource {
    func idToken(replacing rejected: String?) async throws -> String {
      rejected == nil ? "old" : "new"
    }
  }

  private static func service(_ functions: ScriptedHTTP) -> AIService {
    AIService(
      firestore: Firestore(FirestoreSettings(project: "p", endpoint: "http://none.test")),
      uid: "tina",
      functions: CallableClient(
        origin: "http://functions.test",
        http: functions,
        tokens: Tokens()
      )
    )
  }

  private static let reply = #"""
    {"conversationId":"c1","reply":"Carl did.","sources":[],"actions":[{"id":"a1","action":
    "sendMessage","parameters":{"text":"Hi"},"status":"proposed","expiresAt":17}],"usage":
    {"promptTokens":1,"completionTokens":2,"totalTokens":3},"model":null,"degraded":false,
    "note":null}
    """#

  @Test("A question has an id of its own, and its answer is read whole")
  func ask() async throws {
    let functions = ScriptedHTTP([
      ScriptedHTTP.json(#"{"result":\#(Self.reply)}"#),
      ScriptedHTTP.json(#"{"result":\#(Self.reply)}"#),
      ScriptedHTTP.json(#"{"result":\#(Self.reply)}"#),
    ])
    let service = Self.service(functions)
    let reply = try await service.chatWithAI("Who?", conversationID: "c1")
    #expect(reply.reply == "Carl did.")
    #expect(reply.actions.map(\.status) == [.proposed])
    #expect(reply.usage.totalTokens == 3)
    _ = try await service.chatWithAI("Who?")
    _ = try await service.chatWithAI("Who?", requestID: "again")

    struct Body: Decodable { var data: ChatWithAIRequest }
    let bodies = try functions.requests.map {
      try JSONDecoder().decode(Body.self, from: Data($0.body)).data
    }
    #expect(bodies.map(\.conversationId) == ["c1", nil, nil])
    #expect(Set(bodies.map(\.requestId)).count == 3)
    #expect(bodies[2].requestId == "again")
    #expect(functions.requests[0].url == "http://functions.test/chatWithAI")
    #expect(functions.requests[0].headers["Authorization"] == "Bearer old")
    _ = try? await service.confirmAction("a1", accept: true)
    #expect(functions.requests.map(\.timeout) == [150, 150, 150, 10].map { .seconds($0) })
  }

  @Test("Words are passed on as they come, then the answer is returned")
  func stream() async throws {
    let flat = Self.reply.replacing("\n", with: " ")
    let functions = ScriptedHTTP([
      Self.events(
        """
        data: {"message":{"type":"text","text":"Carl "}}

        : keep alive

        data: {"message":{"type":"toolBegins","tool":"searchMessages"}}

        data: {"message":{"type":"text","text":"did."}}

        data: {"result":\(flat)}


        """
      )
    ])
    let words = Mutex<[String]>([])
    let reply = try await Self.service(functions).chatWithAI("Who?") { chunk in
      words.withLock { $0.append(chunk.text ?? chunk.tool ?? "") }
    }
    #expect(words.withLock { $0 } == ["Carl ", "searchMessages", "did."])
    #expect(reply.reply == "Carl did.")
    #expect(functions.requests[0].headers["Accept"] == "text/event-stream")
  }

  @Test("A stream that breaks off, or ends with an error, is an error")
  func brokenStream() async throws {
    let functions = ScriptedHTTP([
      Self.events("data: {\"message\":{\"type\":\"text\",\"text\":\"Carl\"}}\n\n"),
      Self.events(
        """
        data: {"message":{"type":"text","text":"Carl"}}

        data: {"error":{"status":"RESOURCE_EXHAUSTED","message":"m","details":
        """ + #"{"retryAfterSeconds":7}}}"# + "\n\n"
      ),
      ScriptedHTTP.json(#"{"error":{"status":"UNAVAILABLE","message":"no model"}}"#, status: 503),
    ])
    let service = Self.service(functions)
    for expected in [
      AIError.unavailable(retryAfter: nil), .rateLimitExceeded(retryAfter: .seconds(7)),
      .unavailable(retryAfter: nil),
    ] {
      await #expect(throws: expected) { try await service.chatWithAI("Who?") { _ in } }
    }
  }

  @Test(
    "Each failure is the error that the app can switch on, with its text",
    arguments: [
      (
        429, #"{"status":"RESOURCE_EXHAUSTED","message":"m","details":{"retryAfterSeconds":3}}"#,
        AIError.rateLimitExceeded(retryAfter: .seconds(3)),
        "Too many questions. Please try again in 3 s"
      ),
      (
        429, #"{"status":"RESOURCE_EXHAUSTED","message":"m","details":"odd"}"#,
        .rateLimitExceeded(retryAfter: nil), "Too many questions. Please try again later"
      ),
      (
        503, #"{"status":"UNAVAILABLE","message":"m"}"#, .unavailable(retryAfter: nil),
        "The assistant is unavailable at the moment"
      ),
      (
        429,
        #"{"status":"RESOURCE_EXHAUSTED","message":"m","details":{"retryAfterSeconds":1e300}}"#,
        .rateLimitExceeded(retryAfter: nil), "Too many questions. Please try again later"
      ),
      (
        429,
        #"{"status":"RESOURCE_EXHAUSTED","message":"m","details":{"retryAfterSeconds":-1e19}}"#,
        .rateLimitExceeded(retryAfter: nil), "Too many questions. Please try again later"
      ),
      (
        400, #"{"status":"INVALID_ARGUMENT","message":"message must not be blank."}"#,
        .openAIError("message must not be blank."),
        "The assistant could not answer. Please try again"
      ),
      (
        404, #"{"status":"NOT_FOUND","message":"None."}"#, .notFound("None."),
        "This does not exist any more"
      ),
      (
        403, #"{"status":"PERMISSION_DENIED","message":"m"}"#, .permissionDenied,
        "You are not authorized to perform this action"
      ),
      (
        500, #"{"status":"INTERNAL","message":"INTERNAL"}"#, .openAIError("INTERNAL"),
        "The assistant could not answer. Please try again"
      ),
    ]
  )
  func failures(status: Int, error: String, expected: AIError, text: String) async throws {
    let functions = ScriptedHTTP([ScriptedHTTP.json(#"{"error":\#(error)}"#, status: status)])
    let thrown = await #expect(throws: AIError.self) {
      try await Self.service(functions).summarizeChat("c1")
    }
    #expect(thrown == expected)
    #expect(thrown?.errorDescription == text)
    if case .openAIError = expected { #expect(thrown?.serverMessage != nil) }
  }

  @Test("A refused token is renewed once; after that the user must sign in")
  func tokens() async throws {
    let refusal = ScriptedHTTP.json(
      #"{"error":{"status":"UNAUTHENTICATED","message":"Unauthenticated"}}"#,
      status: 401
    )
    let functions = ScriptedHTTP([
      refusal,
      ScriptedHTTP.json(
        #"{"result":{"results":[],"provider":"p","model":"m","degraded":false}}"#
      ), refusal, refusal,
    ])
    let service = Self.service(functions)
    #expect(try await service.semanticSearch("knee").results == [])
    await #expect(throws: AIError.notAuthenticated) {
      try await service.confirmAction("a1", accept: true)
    }
    #expect(
      functions.requests.map { $0.headers["Authorization"] } == [
        "Bearer old", "Bearer new", "Bearer old", "Bearer new",
      ]
    )
  }

  @Test("Without a connection, and behind a proxy's page, the assistant is unavailable")
  func unreachable() async throws {
    let functions = ScriptedHTTP([
      .failure(OutboundHTTPError(.cannotConnect, "refused")),
      ScriptedHTTP.json("<html>Sign in to the hotel</html>"), ScriptedHTTP.json("", status: 502),
    ])
    let service = Self.service(functions)
    for _ in 0..<3 {
      await #expect(throws: AIError.unavailable(retryAfter: nil)) {
        try await service.suggestReminder(for: "m1", in: "c1")
      }
    }
  }

  @Test("An answer in an unknown form is no lost connection")
  func unknownForm() async throws {
    let functions = ScriptedHTTP([
      ScriptedHTTP.json("[]"), ScriptedHTTP.json(#"{"result":{"odd":true}}"#),
      ScriptedHTTP.json("<html>There is no such function</html>", status: 404),
    ])
    let service = Self.service(functions)
    for _ in 0..<3 {
      let error = await #expect(throws: AIError.self) {
        try await service.suggestReminder(for: "m1", in: "c1")
      }
      guard case .openAIError = error else {
        Issue.record("\(String(describing: error))")
        continue
      }
    }
  }

  @Test("Proposals that wait for the user are found again, the newest first")
  func proposals() async throws {
    try await PeopleFixture.run { fixture in
      let actions = fixture.suite.firestore.collection("aiActions")
      @Sendable func minute(_ minute: Int64) -> Timestamp {
        Timestamp(microseconds: minute * 60_000_000)
      }
      for (id, trainer, status, ends) in [
        ("old", "tina", AIAction.Status.proposed, 11), ("new", "tina", .proposed, 19),
        ("expired", "tina", .proposed, 10), ("done", "tina", .done, 19),
        ("other", "tom", .proposed, 19),
      ] as [(String, String, AIAction.Status, Int64)] {
        try await actions.document(id).set(
          AIAction(
            trainerId: trainer,
            conversationId: "c",
            action: "sendMessage",
            parameters: ["text": "Hi"],
            status: status,
            timestamp: minute(ends - 10),
            expiresAt: minute(ends)
          )
        )
      }
      try await actions.document("broken").set([
        "trainerId": "tina", "status": "proposed", "expiresAt": .value(minute(19)), "action": 7,
      ])
      func service(_ uid: String, as other: String? = nil) -> AIService {
        AIService(
          firestore: fixture.line.firestore.acting(as: UnsignedTokens(uid: other ?? uid)),
          uid: uid,
          functions: CallableClient(
            origin: "http://functions.test",
            http: ScriptedHTTP(),
            tokens: Tokens()
          ),
          now: { minute(10).date }
        )
      }
      let proposals = try await service("tina").proposals()
      #expect(proposals.map(\.id) == ["new", "old"])
      #expect(proposals.first?.parameters == ["text": "Hi"])
      #expect(proposals.first?.expiresAt == 1_140_000)
      #expect(try await service("carl").proposals() == [])
      await #expect(throws: AIError.permissionDenied) {
        try await service("tina", as: "tom").proposals()
      }
    }
  }

  @Test("A proposal of the server is found by its trainer's app until it is settled")
  func proposalOfServer() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.suite.loadRules(file: PeopleFixture.rulesPath)
      func service(_ uid: String) -> AIService {
        AIService(
          firestore: fixture.suite.firestore.acting(as: UnsignedTokens(uid: uid)),
          uid: uid,
          functions: CallableClient(
            origin: "http://functions.test",
            http: ScriptedHTTP(),
            tokens: Tokens()
          ),
          now: { fixture.suite.clock.now.date }
        )
      }
      let message = try await fixture.proposed("How is the knee?")
      try await fixture.suite.clock.advance(by: .seconds(1))
      try await fixture.write("m1", "Please send me the plan")
      try fixture.suggest("Send Carl the plan", nil)
      let reminder = try #require(try await fixture.suggestion("m1").reminder?.actionId)
      let proposals = try await service("tina").proposals()
      #expect(proposals.map(\.id) == [reminder, message.id])
      #expect(proposals.last == message)
      #expect(try await service("carl").proposals() == [])

      _ = try await fixture.confirm(reminder)
      #expect(try await service("tina").proposals() == [message])
      try await fixture.suite.clock.advance(by: .seconds(601))
      #expect(try await service("tina").proposals() == [])
    }
  }

  @Test("The user's conversations are listed and observed, and nobody else's")
  func conversations() async throws {
    try await PeopleFixture.run { fixture in
      let conversations = fixture.suite.firestore.collection("users/tina/ai_conversations")
      for (id, minute) in [("old", 1), ("new", 2)] {
        let time = Timestamp(microseconds: Int64(minute) * 60_000_000)
        try await conversations.document(id).set(AIConversation(createdAt: time, updatedAt: time))
      }
      try await conversations.document("broken").set(["updatedAt": 5])
      let tina = fixture.app("tina").assistant
      #expect(try await tina.conversations().map(\.id) == ["new", "old"])

      var observed = tina.observeMessages(in: "new").makeAsyncIterator()
      #expect(try await observed.next() == [])
      let question = AIMessage(
        role: .user,
        content: "Who?",
        timestamp: Timestamp(microseconds: 1),
        turnId: "t1"
      )
      try await conversations.document("new").collection("messages").document("t1-question")
        .set(question)
      #expect(try await observed.next() == [question])

      let carl = AIService(
        firestore: fixture.line.firestore.acting(as: UnsignedTokens(uid: "carl")),
        uid: "tina",
        functions: CallableClient(
          origin: "http://functions.test",
          http: ScriptedHTTP(),
          tokens: Tokens()
        )
      )
      await #expect(throws: AIError.permissionDenied) { try await carl.conversations() }
      var other = carl.observeMessages(in: "new").makeAsyncIterator()
      await #expect(throws: AIError.permissionDenied) { try await other.next() }
    }
  }
}
