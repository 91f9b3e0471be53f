import FirestoreClient
import FunctionsRuntime
import FunctionsTesting
import OpenAIStub
@testable import PsstFunctions
import PsstModels
@testable import PsstBackend
import PsstServices
import Testing

@Suite("Several attempts at one question, and several questions in one conversation")
struct AssistantTurnTests {
  // MARK: Attempts

  @Test("What a lost attempt did is in the answer, although the model does not ask for it again")
  func actionOfLostAttempt() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(fixture.reminder("Call Carl"))
      try await fixture.lose("Remind me to call Carl", request: "r1")
      try fixture.model.reply(ScriptedReply(content: "Anything else?"))
      let reply = try await fixture.ask("Remind me to call Carl", request: "r1")
      #expect(reply.actions.map(\.status) == [.done])
      #expect(try await fixture.ask("Remind me to call Carl", request: "r1") == reply)
      let asked = try fixture.requests().last?["messages"]?.items?.last?["content"]?.text ?? ""
      #expect(asked.contains("alreadyDone") && asked.contains("Call Carl"))
    }
  }

  @Test("An attempt that is too late does nothing more, and gives the answer that stands")
  func tooLate() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(fixture.reminder("Call Carl"), ScriptedReply(content: "Which Carl?"))
      let late = try await fixture.functions.services.assistant.answer(
        .init(uid: "tina", text: "Remind me to call Carl", requestID: "r1")
      ) { event in
        guard case .toolBegins = event else { return }
        try await fixture.suite.clock.advance(by: .seconds(31))
        _ = try await fixture.ask("Remind me to call Carl", request: "r1")
      }
      #expect(late.text == "Which Carl?" && late.actions.isEmpty)
      #expect(try await fixture.reminders().isEmpty)
      #expect(fixture.model.repliesLeft == 0)
    }
  }

  @Test("An attempt that renews its claim is alone, however long the model takes")
  func renewed() async throws {
    try await AssistantFixture.run { fixture in
      let memory = fixture.memory(clock: WakingClock(wakes: 1))
      guard case .turn(let turn) = try await memory.begin(fixture.question("Hello there", "r1"))
      else {
        Issue.record("no turn")
        return
      }
      let path = "users/tina/ai_conversations/r1/messages/r1-question"
      let first = try await fixture.suite.firestore.document(path).get().data(as: AIMessage.self)
      try await fixture.suite.clock.advance(by: .seconds(20))
      try await memory.holding(turn) {
        for try await snapshot in fixture.suite.firestore.document(path).snapshots() {
          if try snapshot.data(as: AIMessage.self).claim != first.claim { break }
        }
      }
      try await fixture.suite.clock.advance(by: .seconds(20))
      guard case .inProgress = try await memory.begin(fixture.question("Hello there", "r1")) else {
        Issue.record("the claim ended")
        return
      }
    }
  }

  @Test("An attempt that has lost its claim is cancelled")
  func cancelled() async throws {
    try await AssistantFixture.run { fixture in
      let memory = fixture.memory(clock: WakingClock(wakes: 1))
      guard case .turn(let turn) = try await memory.begin(fixture.question("Hello there", "r1"))
      else {
        Issue.record("no turn")
        return
      }
      try await fixture.suite.clock.advance(by: .seconds(31))
      _ = try await memory.begin(fixture.question("Hello there", "r1"))
      await #expect(throws: AssistantMemory.ClaimLostError.self) {
        // Work that ends only when it is cancelled.
        try await memory.holding(turn) { try await WakingClock(wakes: 0).sleep(for: .seconds(1)) }
      }
    }
  }

  @Test("An action whose commit was not heard of is in the answer")
  func unheard() async throws {
    try await AssistantFixture.run { fixture in
      let faults = FaultyFirestore(fixture.suite.firestore)
      try fixture.model.reply(
        ScriptedReply(
          toolCalls: [
            .init("sendMessage", .object(["client": "Carl", "chatId": .null, "text": "Hi"]))
          ]
            + (fixture.reminder("Call Carl").toolCalls ?? [])
        )
      )
      let question = "Remind me to call Carl, and write to him"
      let assistant = fixture.services(over: faults.firestore).assistant
      let answer = try await assistant.answer(
        .init(uid: "tina", text: question, requestID: "r1")
      ) { event in
        if event == .toolBegins("setReminder") { faults.decide { $0 == 1 ? .unheard : .none() } }
      }
      #expect(try await fixture.reminders() == ["Call Carl"])
      #expect(answer.actions.map(\.record.action) == ["sendMessage", "setReminder"])
    }
  }

  @Test("A search that is answered without the model says what a lost attempt did")
  func degradedSearch() async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.write("m1", "My knee is sore")
      let question = "Find what Carl said of his knee and remind me to call Carl"
      try fixture.model.reply(fixture.reminder("Call Carl"))
      try await fixture.lose(question, request: "r1")
      try fixture.model.fail(StubFault(.chat, status: 500))
      let reply = try await fixture.ask(question, request: "r1")
      #expect(reply.actions.map(\.status) == [.proposed])
      #expect(reply.model == nil && reply.sources.map(\.messageId) == ["m1"])
    }
  }

  @Test("An answer that no model gave is replaced when its question is sent again")
  func replaced() async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.write("m1", "My knee is sore")
      try fixture.model.fail(StubFault(.chat, status: 500))
      #expect(try await fixture.ask("Who has a sore knee?", request: "r1").model == nil)
      try fixture.model.reply(ScriptedReply(content: "Carl [1]."))
      #expect(try await fixture.ask("Who has a sore knee?", request: "r1").reply == "Carl [1].")
      try fixture.model.reply(ScriptedReply(content: "Yes."))
      _ = try await fixture.ask("Are you sure of it?", in: "r1")
      #expect(try fixture.requests().last?["messages"]?.items?.count == 4)
    }
  }

  @Test("A proposal that was never shown does not replace another one")
  func unseenProposal() async throws {
    try await AssistantFixture.run { fixture in
      func send(_ text: String) -> ScriptedReply {
        ScriptedReply(toolCalls: [
          .init("sendMessage", .object(["client": "Carl", "chatId": .null, "text": .string(text)]))
        ])
      }
      try fixture.model.reply(send("Carl, I quit"))
      try await fixture.lose("Write to Carl that we skip squats", request: "r1")
      try fixture.model.reply(send("We skip squats"), ScriptedReply(content: "I propose it."))
      let actions = try await fixture.ask("Write to Carl that we skip squats", request: "r1")
        .actions
      #expect(actions.map(\.parameters["text"]) == ["We skip squats"])
      _ = try await fixture.confirm(try #require(actions.first).id)
      #expect(try await fixture.messages().map { $0["text"] } == [.string("We skip squats")])
    }
  }

  @Test("What a lost attempt did is not done by another tool too, but proposed")
  func otherTool() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(fixture.reminder("Call Carl"))
      try await fixture.lose("Remind me to call Carl", request: "r1")
      let again = ScriptedReply(toolCalls: [
        .init(
          "setReminder",
          .object(["text": "Ring Carl", "dueDate": .string(fixture.text(hours: 24))])
        ),
        .init(
          "setReminder",
          .object(["text": "Carl: call", "dueDate": .string(fixture.text(hours: 25))])
        ),
      ])
      try fixture.model.reply(again, ScriptedReply(content: "I will."))
      let actions = try await fixture.ask("Remind me to call Carl", request: "r1").actions
      #expect(actions.map(\.status) == [.done, .proposed])
      #expect(try await fixture.reminders() == ["Call Carl"])
    }
  }

  @Test("What was said is the answer when the database fails at a tool")
  func saidBeforeTool() async throws {
    try await AssistantFixture.run { fixture in
      let faults = FaultyFirestore(fixture.suite.firestore)
      try fixture.model.reply(
        ScriptedReply(
          content: "Let me note that.",
          toolCalls: fixture.reminder("Call Carl").toolCalls
        )
      )
      let assistant = fixture.services(over: faults.firestore).assistant
      let answer = try await assistant.answer(
        .init(uid: "tina", text: "Remind me to call Carl", requestID: "r1")
      ) { event in
        if case .toolBegins = event { faults.decide { $0 == 1 ? .refused : .none() } }
      }
      #expect(answer.text == "Let me note that." && answer.limitation != nil)
    }
  }

  @Test("A claim written by a clock that is ahead blocks no other attempt")
  func clockSetBack() async throws {
    try await AssistantFixture.run { fixture in
      _ = try await fixture.memory(ahead: .seconds(86_400))
        .begin(fixture.question("Good morning to you", "r1"))
      try fixture.model.reply(ScriptedReply(content: "Hello."))
      #expect(try await fixture.ask("Good morning to you", request: "r1").reply == "Hello.")
    }
  }

  // MARK: Conversations

  @Test("Questions without an answer do not push others out of the conversation")
  func manyUnanswered() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(ScriptedReply(content: "Hello."))
      let first = try await fixture.ask("My favorite color is green, note it")
      let memory = fixture.memory()
      for number in 0..<60 {
        try await fixture.suite.clock.advance(by: .seconds(1))
        _ = try await memory.begin(
          fixture.question("Question \(number)", "u\(number)", in: first.conversationId)
        )
      }
      guard
        case .turn(let turn) = try await memory.begin(
          fixture.question("Last", "last", in: first.conversationId)
        )
      else {
        Issue.record("no turn")
        return
      }
      #expect(turn.history.map(\.content) == ["My favorite color is green, note it", "Hello."])
    }
  }

  @Test("A summary hides only the turns that it covers, in whatever order they ended")
  func summaryOfSlowTurn() async throws {
    try await AssistantFixture.run { fixture in
      let memory = fixture.memory()
      func begin(_ text: String, _ id: String) async throws -> AssistantMemory.Turn {
        let question = fixture.question(text, id, in: id == "a" ? nil : "a")
        guard case .turn(let turn) = try await memory.begin(question) else { throw LostReply() }
        try await fixture.suite.clock.advance(by: .seconds(1))
        return turn
      }
      func end(_ turn: AssistantMemory.Turn) async throws {
        let answer = AIAnswer(
          sources: [],
          actionIds: [],
          promptTokens: 0,
          completionTokens: 0,
          model: "m"
        )
        _ = try await memory.end(
          turn,
          with: AIMessage(
            role: .assistant,
            content: "Answer",
            timestamp: fixture.suite.clock.now,
            turnId: turn.id,
            answer: answer
          )
        )
        try await fixture.suite.clock.advance(by: .seconds(1))
      }
      let slow = try await begin("Slow", "a")
      let fast = try await begin("Fast", "b")
      try await end(fast)
      try await end(slow)
      let third = try await begin("Third", "c")
      #expect(third.history.map(\.turnId) == ["a", "a", "b", "b"])
      try await memory.summarize(third, as: "Of the first", until: third.history[0].timestamp)
      #expect(try await begin("Fourth", "d").history.map(\.turnId) == ["b", "b"])

      // A summary that covers less, and comes later, does not take its place.
      try await memory.summarize(third, as: "Old", until: Timestamp(microseconds: 0))
      #expect(try await begin("Fifth", "e").conversation.summary == "Of the first")
    }
  }

  @Test("A summary of the future hides nothing")
  func summaryOfFuture() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(ScriptedReply(content: "First."), ScriptedReply(content: "Second."))
      let first = try await fixture.ask("My favorite color is green, note it")
      let future = Timestamp(microseconds: fixture.suite.clock.now.microseconds + 86_400_000_000)
      try await fixture.suite.firestore
        .document("users/tina/ai_conversations/\(first.conversationId)")
        .update(["summary": "s", "summarizedUntil": .value(future)])
      _ = try await fixture.ask("What is my favorite color?", in: first.conversationId)
      let turns = try fixture.requests().last?["messages"]?.items ?? []
      #expect(turns.contains { $0["content"]?.text?.contains("green") == true })
    }
  }

  @Test("A long answer is shortened, and hides neither its question nor what was said before")
  func longAnswer() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(
        ScriptedReply(content: "Noted."),
        ScriptedReply(content: String(repeating: "long ", count: 3300)),
        ScriptedReply(content: "Yes.")
      )
      let first = try await fixture.ask("My favorite color is green, note it")
      for question in ["Make me a long plan", "And now to something else"] {
        try await fixture.suite.clock.advance(by: .seconds(1))
        _ = try await fixture.ask(question, in: first.conversationId)
      }
      let turns = try fixture.requests().last?["messages"]?.items ?? []
      let roles = ["system", "user", "assistant", "user", "assistant", "user"]
      #expect(turns.map { $0["role"]?.text } == roles)
      #expect(turns[1]["content"]?.text?.contains("green") == true)
    }
  }

  @Test("Numbers by which an earlier answer cited messages are not those of the next question")
  func earlierNumbers() async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.write("m1", "My knee is sore")
      try fixture.model.reply(
        ScriptedReply(content: "Carl has a sore knee [1], as you know."),
        ScriptedReply(content: "Yes.")
      )
      let first = try await fixture.ask("Who has a sore knee?")
      _ = try await fixture.ask("Are you sure of it?", in: first.conversationId)
      let answer = try fixture.requests().last?["messages"]?.items?[2]["content"]?.text
      #expect(answer == "Carl has a sore knee, as you know.")
    }
  }

  @Test("A summary that failed is not paid for again at the next question, but minutes later")
  func failedSummary() async throws {
    try await AssistantFixture.run { fixture in
      let long = String(repeating: "knees and squats, ", count: 200)
      var conversation: String?
      for _ in 1...3 {
        try fixture.model.reply(ScriptedReply(content: long))
        conversation = try await fixture.ask("Tell me of \(long)", in: conversation).conversationId
        try await fixture.suite.clock.advance(by: .seconds(60))
      }
      try fixture.model.reply(ScriptedReply(refusal: "No."), ScriptedReply(content: "Yes."))
      _ = try await fixture.ask("And now?", in: conversation)
      try fixture.model.reply(ScriptedReply(content: "Yes."))
      _ = try await fixture.ask("And then?", in: conversation)
      #expect(try fixture.requests().count == 6)
      try await fixture.suite.clock.advance(by: .seconds(601))
      try fixture.model.reply(ScriptedReply(content: "A summary."), ScriptedReply(content: "Yes."))
      _ = try await fixture.ask("And later?", in: conversation)
      #expect(try fixture.requests().count == 8)
    }
  }

  // MARK: Documents that make no sense

  @Test("An unreadable conversation is rewritten and keeps its summary")
  func malformedConversation() async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.put("users/tina/ai_conversations/c9", ["createdAt": "yesterday"])
      try fixture.model.reply(ScriptedReply(content: "Hello."))
      _ = try await fixture.ask("Good morning to you", in: "c9")
      let stored = try await fixture.suite.firestore.document("users/tina/ai_conversations/c9")
        .get()
      #expect(try stored.data(as: AIConversation.self).summary == nil)
    }
  }

  @Test(
    "Ids in stored messages that no document can have are passed over",
    arguments: [
      "", "a/b", "..", "__x__",
    ]
  )
  func oddIDs(id: String) async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(ScriptedReply(content: "First."), ScriptedReply(content: "Second."))
      _ = try await fixture.ask("Good morning to you", request: "r1")
      let messages = "users/tina/ai_conversations/r1/messages"
      try await fixture.suite.firestore.document("\(messages)/r1-answer").update([
        "answer.sources": .value([AIAnswer.Source(number: 1, chatId: id, messageId: id, score: 1)]),
        "answer.actionIds": .value([id]),
      ])
      #expect(try await fixture.ask("Good morning to you", request: "r1").reply == "First.")
      try await fixture.put(
        "\(messages)/odd-question",
        [
          "role": "user", "content": "Good evening", "turnId": .value(id),
          "timestamp": .value(fixture.suite.clock.now),
        ]
      )
      #expect(try await fixture.ask("Good evening", in: "r1").reply == "Second.")
    }
  }

  @Test("A question that cannot be read any more gives its answer to no other question")
  func unreadableQuestion() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(ScriptedReply(content: "First."))
      _ = try await fixture.ask("Good morning to you", request: "r1")
      try await fixture.put("users/tina/ai_conversations/r1/messages/r1-question", ["role": 1])
      let error = await #expect(throws: CallableError.self) {
        try await fixture.ask("Good evening to you", request: "r1")
      }
      #expect(error?.code == .invalidArgument)
    }
  }

  // MARK: Ids that are equal as text, and different

  @Test("A chat that was left is not read through an id that is equal but for its bytes")
  func equivalentChat() async throws {
    try await AssistantFixture.run { fixture in
      // The Kelvin sign is canonically equivalent to the letter K.
      for chat in ["aKb", "a\u{212A}b"] {
        try await fixture.profiles.chat(chat, ["tina", "carl"], isGroup: true)
      }
      try await fixture.write("m1", "The knee is sore", in: "a\u{212A}b")
      try await fixture.write("m2", "The knee is sore too", in: "aKb")
      try fixture.model.reply(ScriptedReply(content: "It is sore [1] [2]."))
      #expect(try await fixture.ask("Who has a sore knee?", request: "r1").sources.count == 2)
      try await fixture.profiles.chat("aKb", ["carl", "cora"], isGroup: true)
      for _ in 1...6 {
        let again = try await fixture.ask("Who has a sore knee?", request: "r1")
        #expect(again.sources.map(\.messageId) == ["m1"])
      }
    }
  }

  @Test("With autoSend a chat whose id is equal but for its bytes is not the one that is named")
  func equivalentOpenChat() async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.put("users/tina/preferences/assistant", ["autoSend": true])
      try await fixture.profiles.contact("cora", of: "tina")
      try await fixture.profiles.chat("xK", ["tina", "carl"])
      try await fixture.profiles.chat("x\u{212A}", ["tina", "cora"])
      for (chat, status) in [("x\u{212A}", AIAction.Status.proposed), ("xK", .done)] {
        let action = try await fixture.proposed(
          "skip squats",
          to: chat,
          question: "Tell Carl to skip squats"
        )
        #expect(action.status == status, "\(chat)")
      }
    }
  }

  // MARK: Requests

  @Test("A call is scheduled at once only with the one client whom the question names")
  func oneClient() async throws {
    try await AssistantFixture.run { fixture in
      func statuses(_ client: String) async throws -> [AIAction.Status] {
        try fixture.model.reply(
          ScriptedReply(
            toolCalls: [
              .init(
                "scheduleCall",
                .object([
                  "client": .string(client), "title": "Call",
                  "startTime": .string(fixture.text(hours: 24)),
                  "endTime": .string(fixture.text(hours: 25)),
                ])
              )
            ],
            unchecked: true
          ),
          ScriptedReply(content: "Yes.")
        )
        return try await fixture.ask("Schedule a call with Carl tomorrow").actions.map(\.status)
      }
      try await fixture.put(
        "contacts/tina/clients/cora",
        ["clientId": "cora", "displayName": "Schedule Call"]
      )
      #expect(try await statuses("cora") == [.proposed])
      #expect(try await statuses("carl") == [.done])
      try await fixture.put(
        "contacts/tina/clients/cora",
        ["clientId": "cora", "displayName": "Carl"]
      )
      #expect(try await statuses("cora") == [.proposed])
      #expect(try await statuses("carl") == [.proposed])
    }
  }

  // MARK: Confirmations

  @Test("A proposal for a group that has changed since is confirmed once more, by what it is now")
  func changedGroup() async throws {
    try await AssistantFixture.run { fixture in
      func group(_ name: FieldValue, _ members: [String]) async throws {
        try await fixture.put(
          "chats/g1",
          ["members": .value(members), "isGroupChat": true, "groupName": name]
        )
      }
      try await group("Team", ["tina", "carl"])
      let action = try await fixture.proposed("Carl, your knee", to: "g1")
      try await group("Everybody", ["tina", "carl", "tom", "cora"])
      let error = await #expect(throws: CallableError.self) { try await fixture.confirm(action.id) }
      #expect(error?.code == .failedPrecondition)
      #expect(error?.message.contains("Everybody (group of 4)") == true)
      #expect(try await fixture.confirm(action.id).targetName == "Everybody (group of 4)")
      let messages = try await fixture.suite.firestore.collection("chats/g1/messages").get()
      #expect(messages.count == 1)
    }
  }

  @Test(
    "A proposal of another version's form is refused",
    arguments: ["sendMessage", "setReminder", "scheduleCall", "noSuchTool"]
  )
  func oldProposal(tool: FieldValue) async throws {
    try await AssistantFixture.run { fixture in
      let time = fixture.suite.clock.now
      try await fixture.put(
        "aiActions/old",
        [
          "trainerId": "tina", "conversationId": "x", "action": tool,
          "parameters": .value(["to": "carl"]), "status": "proposed", "timestamp": .value(time),
          "expiresAt": .value(Timestamp(microseconds: time.microseconds + 60_000_000)),
        ]
      )
      #expect(try await fixture.confirm("old").status == .refused)
    }
  }

  @Test("Names show their text in one direction")
  func directions() {
    #expect("Carl\u{202E}lrac\u{202C} \u{2066}x\u{2069}".asName == "Carllrac x")
    #expect("👩‍👩‍👧 Family".asName == "👩‍👩‍👧 Family")
  }
}
