import FirestoreClient
import FunctionsRuntime
import FunctionsTesting
import OpenAIStub
@testable import PsstFunctions
import PsstModels
@testable import PsstBackend
@testable import PsstServices
import TestSupport
import Testing

@Suite("Questions that are sent again, and answers that get lost")
struct AssistantRetryTests {
  @Test("A question with a request's id that was answered gets the same answer, and acts once")
  func sameAnswer() async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.write("m1", "My knee is sore")
      try fixture.model.reply(
        fixture.reminder("Ask about the sore knee"),
        ScriptedReply(content: "Carl has a sore knee [1].")
      )
      let question = "Remind me to ask about the sore knee"
      let first = try await fixture.ask(question, request: "r1")
      #expect(first.actions.map(\.status) == [.done])
      #expect(try await fixture.ask(question, request: "r1") == first)
      // The conversation's id is known by now.
      #expect(try await fixture.ask(question, request: "r1", in: first.conversationId) == first)
      #expect(fixture.model.repliesLeft == 0)
      #expect(try await fixture.reminders() == ["Ask about the sore knee"])
      #expect(try await fixture.stored(first.conversationId).count == 2)

      // Another id is another question.
      try fixture.model.reply(ScriptedReply(content: "Yes."))
      #expect(try await fixture.ask(question, request: "r2").reply == "Yes.")
    }
  }

  @Test("The tool calls of an answer are stored with it, bounded, and are not sent to a model")
  func toolCalls() async throws {
    try await AssistantFixture.run { fixture in
      let long = String(repeating: "é", count: 3000)
      try fixture.model.reply(
        fixture.reminder("Ask about the sore knee"),
        ScriptedReply(
          toolCalls: [.init(long, .object(["text": .string(long)]))],
          unchecked: true
        ),
        ScriptedReply(content: "I will remind you.")
      )
      let question = "Remind me to ask about the sore knee"
      let first = try await fixture.ask(question, request: "r1")
      let stored = try await fixture.stored("r1").data(as: AIMessage.self)
      let calls = try #require(stored.compactMap(\.answer).first?.toolCalls)
      #expect(calls.map(\.name) == ["setReminder", String(repeating: "é", count: 32)])
      #expect(calls[0].arguments.contains("Ask about the sore knee"))
      #expect(calls[0].arguments.contains("dueDate"))
      #expect((1990...2000).contains(calls[1].arguments.utf8.count))
      #expect(try await fixture.ask(question, request: "r1") == first)

      try fixture.model.reply(ScriptedReply(content: "Yes."))
      _ = try await fixture.ask("Good evening to you", in: "r1")
      let turns = try fixture.requests().last?["messages"]?.items ?? []
      #expect(turns.contains { $0["content"]?.text?.contains("I will remind you.") == true })
      #expect(!turns.contains { $0["content"]?.text?.contains("dueDate") == true })
      #expect(
        try await fixture.stored("r1").data(as: AIMessage.self)
          .compactMap(\.answer).contains { $0.toolCalls == nil }
      )
    }
  }

  @Test("An answer that was stored without its tool calls is still given again")
  func answerWithoutToolCalls() async throws {
    try await AssistantFixture.run { fixture in
      let reminder = fixture.reminder("Ask about the sore knee")
      try fixture.model.reply(reminder, ScriptedReply(content: "I will remind you."))
      let question = "Remind me to ask about the sore knee"
      let first = try await fixture.ask(question, request: "r1")
      try await fixture.suite.firestore
        .document("users/tina/ai_conversations/r1/messages/r1-answer")
        .update(["answer.toolCalls": .delete])
      #expect(try await fixture.ask(question, request: "r1") == first)
      #expect(fixture.model.repliesLeft == 0)
    }
  }

  @Test("An answer that is given again has only the messages that its reader may read now")
  func sourcesNow() async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.write("m1", "My knee is sore")
      try fixture.model.reply(ScriptedReply(content: "Carl has a sore knee [1]."))
      let first = try await fixture.ask("Who has a sore knee?", request: "r1")
      #expect(first.sources.map(\.messageId) == ["m1"])
      try await fixture.profiles.chat("c1", ["carl", "cora"])
      let second = try await fixture.ask("Who has a sore knee?", request: "r1")
      #expect(second.sources.isEmpty && second.reply == first.reply)
    }
  }

  @Test("A request's id stands for one question")
  func otherQuestion() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(ScriptedReply(content: "Hello."))
      _ = try await fixture.ask("Good morning to you", request: "r1")
      let error = await #expect(throws: CallableError.self) {
        try await fixture.ask("Good evening to you", request: "r1")
      }
      #expect(error?.code == .invalidArgument && error?.message.contains("requestId") == true)
    }
  }

  @Test(
    "A request's id is one that a document can have",
    arguments: ["", "a/b", "..", "__a__", String(repeating: "x", count: 129)]
  )
  func badRequestID(id: String) async throws {
    try await AssistantFixture.run { fixture in
      let error = await #expect(throws: CallableError.self) {
        try await fixture.ask("Hello there", request: id)
      }
      #expect(error?.code == .invalidArgument && error?.message.contains("requestId") == true)
    }
  }

  @Test("Another user's request of the same id is another question")
  func otherUser() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(ScriptedReply(content: "Hello Tina."))
      _ = try await fixture.ask("Good morning to you", request: "r1")
      try fixture.model.reply(ScriptedReply(content: "Hello Tom."))
      #expect(
        try await fixture.ask("Good morning to you", request: "r1", as: "tom").reply == "Hello Tom."
      )
    }
  }

  @Test("While a question is being answered, the same one is not answered too", arguments: [0, 1])
  func inProgress(withID: Int) async throws {
    try await AssistantFixture.run { fixture in
      let id = withID == 1 ? "r1" : nil
      let memory = fixture.memory()
      guard
        case .turn(let turn) = try await memory.begin(
          fixture.question("Good morning to you", id)
        )
      else {
        Issue.record("no turn")
        return
      }
      let error = await #expect(throws: CallableError.self) {
        try await fixture.ask("Good morning to you", request: id, in: turn.conversationID)
      }
      #expect(error?.code == .aborted && error?.message.contains("try again in") == true)
      #expect(fixture.model.journal.entries.isEmpty)

      // What answered it was killed.
      try await fixture.suite.clock.advance(by: .seconds(31))
      try fixture.model.reply(ScriptedReply(content: "Hello."))
      let reply = try await fixture.ask(
        "Good morning to you",
        request: id,
        in: turn.conversationID
      )
      #expect(reply.reply == "Hello.")
      #expect(try await fixture.stored(turn.conversationID).count == 2)
    }
  }

  @Test("A question that failed can be sent again at once, and stays one question")
  func failed() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.fail(StubFault(.chat, status: 400))
      await #expect(throws: CallableError.self) {
        try await fixture.ask("Remind me of Carl", request: "r1")
      }
      try fixture.model.reply(ScriptedReply(content: "Yes."))
      let reply = try await fixture.ask("Remind me of Carl", request: "r1")
      #expect(reply.reply == "Yes.")
      #expect(try await fixture.stored(reply.conversationId).count == 2)
    }
  }

  @Test("A question whose answer was lost acts once, in whatever words the model asks for it")
  func otherWords() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(fixture.reminder("Call Carl"), fixture.reminder("Carl: call"))
      try fixture.model.reply(ScriptedReply(content: "I will remind you."))
      let lost = await #expect(throws: LostReply.self) {
        try await fixture.functions.services.assistant.answer(
          .init(uid: "tina", text: "Remind me to call Carl", requestID: "r1")
        ) { event in
          if case .toolEnds = event { throw LostReply() }
        }
      }
      #expect(lost != nil)
      let reply = try await fixture.ask("Remind me to call Carl", request: "r1")
      #expect(try await fixture.reminders() == ["Call Carl"])
      #expect(reply.actions.map(\.status) == [.done])
      #expect(reply.actions.first?.parameters["text"] == "Call Carl")
      let result = try fixture.requests().last?["messages"]?.items?.last
      #expect(result?["content"]?.text?.contains("Call Carl") == true)
    }
  }

  @Test("Of one question that arrives twice at once one is answered")
  func twiceAtOnce() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(ScriptedReply(content: "Hello."))
      let replies = await withTaskGroup(of: ChatWithAIReply?.self) { group in
        for _ in 1...4 {
          group.addTask {
            do {
              return try await fixture.ask("Good morning to you", request: "r1")
            } catch let error as CallableError {
              #expect(error.code == .aborted)
            } catch {
              Issue.record(error)
            }
            return nil
          }
        }
        return await group.reduce(into: []) { $0.append($1) }
      }
      #expect(Set(replies.compactMap { $0?.reply }) == ["Hello."])
      #expect(fixture.model.journal.entries.count == 1)
    }
  }

  @Test("Of two attempts that answer one question, the first answer stands")
  func firstAnswerStands() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(fixture.reminder("Call Carl"), fixture.reminder("Ring Carl up"))
      try fixture.model.reply(ScriptedReply(content: "First."), ScriptedReply(content: "Second."))
      // The first attempt is so slow that a second one begins and ends while its tool runs.
      let slow = try await fixture.functions.services.assistant.answer(
        .init(uid: "tina", text: "Remind me to call Carl", requestID: "r1")
      ) { event in
        guard case .toolEnds = event else { return }
        try await fixture.suite.clock.advance(by: .seconds(31))
        let fast = try await fixture.ask("Remind me to call Carl", request: "r1")
        #expect(fast.reply == "First.")
      }
      #expect(slow.text == "First.")
      #expect(slow.actions.map(\.record.status) == [.done])
      #expect(try await fixture.reminders() == ["Call Carl"])
      #expect(try await fixture.stored("r1").count == 2)
    }
  }

  @Test(
    "Whichever commits fail, a question that is sent until it is answered acts once",
    arguments: 1...20
  )
  func faults(seed: UInt64) async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.add(
        StubScript(rules: [
          .init(contains: "remind", reply: fixture.reminder("Call Carl")),
          .init(contains: "remind", afterTool: true, reply: ScriptedReply(content: "Yes.")),
        ])
      )
      var generator = SeededGenerator(seed: seed)
      let outcomes = (0..<12).map { _ in Int.random(in: 0..<3, using: &generator) }
      let faults = FaultyFirestore(fixture.suite.firestore)
      let assistant = fixture.services(over: faults.firestore).assistant
      faults.decide { number in
        switch number <= outcomes.count ? outcomes[number - 1] : 0 {
        case 1: .refused
        case 2: .unheard
        default: .none()
        }
      }
      var answer: Assistant.Answer?
      for _ in 0..<outcomes.count + 1 where answer == nil {
        do {
          answer = try await assistant.answer(
            .init(uid: "tina", text: "Remind me to call Carl", requestID: "r1")
          )
        } catch is FirestoreError {
        } catch is Assistant.AnswerError {
        }
        // A claim that could not be given up ends.
        try await fixture.suite.clock.advance(by: .seconds(31))
      }
      let actions = try #require(answer).actions
      #expect(actions.map(\.record.status) == [.done])
      #expect(try await fixture.reminders() == ["Call Carl"])
      let recorded = try await fixture.suite.firestore.collection("aiActions").get()
      #expect(recorded.map(\.id) == actions.map(\.id))
    }
  }

  @Test("What was refused to a lost attempt does not stand for what the next one asks for")
  func refusedBefore() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(fixture.reminder(" "), fixture.reminder("Call Carl"))
      try fixture.model.reply(ScriptedReply(content: "I will remind you."))
      await #expect(throws: LostReply.self) {
        try await fixture.functions.services.assistant.answer(
          .init(uid: "tina", text: "Remind me to call Carl", requestID: "r1")
        ) { event in
          if case .toolEnds = event { throw LostReply() }
        }
      }
      let reply = try await fixture.ask("Remind me to call Carl", request: "r1")
      #expect(reply.actions.map(\.status) == [.refused, .done])
      #expect(try await fixture.reminders() == ["Call Carl"])
    }
  }

  @Test("A proposal whose answer was lost can be confirmed for ten minutes after it is shown")
  func renewedProposal() async throws {
    try await AssistantFixture.run { fixture in
      let send = ScriptedReply(toolCalls: [
        .init("sendMessage", .object(["client": "Carl", "chatId": .null, "text": "Hi"]))
      ])
      try fixture.model.reply(send, send, ScriptedReply(content: "I propose it."))
      await #expect(throws: LostReply.self) {
        try await fixture.functions.services.assistant.answer(
          .init(uid: "tina", text: "Say hi to Carl", requestID: "r1")
        ) { event in
          if case .toolEnds = event { throw LostReply() }
        }
      }
      try await fixture.suite.clock.advance(by: .seconds(601))
      let action = try #require(
        try await fixture.ask("Say hi to Carl", request: "r1").actions.first
      )
      #expect(action.status == .proposed)
      try await fixture.suite.clock.advance(by: .seconds(599))
      #expect(try await fixture.confirm(action.id).status == .done)
      #expect(try await fixture.messages().count == 1)
    }
  }

  @Test("A question without an answer is no part of the next one's conversation")
  func unanswered() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(ScriptedReply(content: "Hello."))
      let first = try await fixture.ask("Good morning to you")
      let memory = fixture.memory()
      _ = try await memory.begin(
        fixture.question("Send everything to everyone", in: first.conversationId)
      )
      try fixture.model.reply(ScriptedReply(content: "Fine."))
      _ = try await fixture.ask("How are things?", in: first.conversationId)
      let turns = try fixture.requests().last?["messages"]?.items ?? []
      #expect(turns.map { $0["role"]?.text } == ["system", "user", "assistant", "user"])
      #expect(!turns.contains { $0["content"]?.text?.contains("everything") == true })
    }
  }

  @Test("What was done is reported when the database fails at the next action")
  func databaseFailsAfterAction() async throws {
    try await AssistantFixture.run { fixture in
      let faults = FaultyFirestore(fixture.suite.firestore)
      try fixture.model.reply(
        ScriptedReply(
          toolCalls: (fixture.reminder("Call Carl").toolCalls ?? [])
            + (fixture.reminder("Call Cora").toolCalls ?? [])
        )
      )
      let assistant = fixture.services(over: faults.firestore).assistant
      let answer = try await assistant.answer(
        .init(uid: "tina", text: "Remind me to call Carl")
      ) { event in
        if case .toolEnds = event { faults.decide { $0 == 1 ? .refused : .none() } }
      }
      #expect(answer.actions.map(\.record.status) == [.done])
      #expect(answer.limitation?.contains("unavailable") == true)
      #expect(try await fixture.reminders() == ["Call Carl"])
    }
  }

  @Test("An answer that cannot be stored is given nevertheless, and says so")
  func notStored() async throws {
    try await AssistantFixture.run { fixture in
      let faults = FaultyFirestore(fixture.suite.firestore)
      try fixture.model.reply(ScriptedReply(content: "Hello."))
      let assistant = fixture.services(over: faults.firestore).assistant
      let answer = try await assistant.answer(
        .init(uid: "tina", text: "Good morning to you", requestID: "r1")
      ) { _ in
        faults.decide { _ in .refused }
      }
      #expect(answer.text == "Hello.")
      #expect(answer.limitation == "The answer could not be stored in the conversation.")
    }
  }
}
