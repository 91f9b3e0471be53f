import FunctionsRuntime
import FunctionsTesting
import OpenAIStub
import OutboundHTTP
@testable import PsstFunctions
import PsstModels
@testable import PsstBackend
@testable import PsstServices
import TestSupport
import Testing

@Suite("chatWithAI and confirmAction")
struct AssistantTests {
  // MARK: Answers

  @Test("A question is answered from the caller's messages, which are its sources")
  func sources() async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.write("m1", "My knee is sore")
      try await fixture.write("m2", "I bought a bicycle")
      try fixture.model.reply(ScriptedReply(content: "Carl has a sore knee [1]."))
      let reply = try await fixture.ask("Who has a sore knee?")

      #expect(reply.reply == "Carl has a sore knee [1].")
      #expect(reply.sources.map(\.messageId) == ["m1"])
      #expect(reply.sources.first?.senderName == "Carl")
      #expect(reply.usage.totalTokens > 0 && reply.actions.isEmpty)
      #expect(reply.model == "gpt-4o-mini" && !reply.degraded)
      let turns = try fixture.requests().last?["messages"]?.items ?? []
      #expect(turns.last?["content"]?.text?.contains("My knee is sore") == true)
      #expect(turns.first?["content"]?.text?.contains("My knee") == false)
    }
  }

  @Test("A question about one client comes with their presence, and no other does")
  func presence() async throws {
    try await AssistantFixture.run { fixture in
      let presence = fixture.suite.firestore.document("presence/carl")
      try await presence.set(["online": false, "lastSeen": Timestamp(microseconds: 0)])
      var prompts: [String] = []
      for question in ["Is Carl online?", "Is anybody online?", "Who has a sore knee?"] {
        try fixture.model.reply(ScriptedReply(content: "No."))
        _ = try await fixture.ask(question)
        let turns = try fixture.requests().last?["messages"]?.items ?? []
        prompts.append(turns.last?["content"]?.text ?? "")
      }
      #expect(prompts[0].contains(#""client":"Carl""#) && prompts[0].contains(#""online":false"#))
      #expect(!prompts[1].contains("presence") && !prompts[2].contains("presence"))
    }
  }

  @Test("Nobody's answer rests on messages of chats that they are not in")
  func others() async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.profiles.chat("c9", ["tom", "cora"])
      try await fixture.write("m9", "My knee is sore", by: "cora", in: "c9")
      try fixture.model.reply(ScriptedReply(content: "Nobody."))
      let reply = try await fixture.ask("Who has a sore knee?")
      #expect(reply.sources.isEmpty)
      #expect(!fixture.model.journal.entries.contains { "\($0)".contains("c9") })
    }
  }

  @Test("A conversation goes on, and is its owner's alone")
  func conversation() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(
        ScriptedReply(content: "Hello Tina."),
        ScriptedReply(content: "Tina.")
      )
      let first = try await fixture.ask("My name is Tina, good morning")
      let second = try await fixture.ask("What is my name?", in: first.conversationId)
      #expect(second.conversationId == first.conversationId)
      let turns = try fixture.requests().last?["messages"]?.items ?? []
      #expect(turns.map { $0["role"]?.text } == ["system", "user", "assistant", "user"])

      let stored = try await fixture.suite.firestore.collection("users").document("tina")
        .collection("ai_conversations").document(first.conversationId).collection("messages").get()
      #expect(stored.count == 4)
      for (uid, id) in [("tom", first.conversationId), ("tina", "none"), ("tina", "a/b")] {
        let error = await #expect(throws: CallableError.self) {
          try await fixture.ask("What is my name?", in: id, as: uid)
        }
        #expect(error?.code == .notFound)
      }
    }
  }

  @Test("What was said long ago is summed up once, and the summary goes on with the conversation")
  func summary() async throws {
    try await AssistantFixture.run { fixture in
      let long = String(repeating: "knees and squats, ", count: 200)
      var conversation: String?
      for _ in 1...3 {
        try fixture.model.reply(ScriptedReply(content: long))
        conversation = try await fixture.ask("Tell me of \(long)", in: conversation).conversationId
        try await fixture.suite.clock.advance(by: .seconds(60))
      }
      try fixture.model.reply(
        ScriptedReply(content: "They spoke of knees."),
        ScriptedReply(content: "Yes.")
      )
      #expect(try await fixture.ask("And now?", in: conversation).reply == "Yes.")
      #expect(try fixture.requests().count == 5)
      try await fixture.suite.clock.advance(by: .seconds(60))
      try fixture.model.reply(ScriptedReply(content: "Still."))
      #expect(try await fixture.ask("And later?", in: conversation).reply == "Still.")

      let turns = try fixture.requests().last?["messages"]?.items ?? []
      #expect(turns[1]["content"]?.text?.contains("They spoke of knees.") == true)
      #expect(turns[0]["content"]?.text?.contains("They spoke of knees.") == false)
      // The instructions, the summary, the four latest messages, the fourth question with its
      // answer, and the current question.
      #expect(turns.count == 9)
      #expect(fixture.model.repliesLeft == 0)
    }
  }

  @Test("Of many short messages none is left out unless a summary covers it")
  func manyMessages() async throws {
    try await AssistantFixture.run { fixture in
      var conversation: String?
      for number in 1...30 {
        try fixture.model.reply(ScriptedReply(content: "Answer \(number)."))
        if number == 22 {
          try fixture.model.reply(ScriptedReply(content: "Answer \(number)."))
        }
        conversation = try await fixture.ask("Question \(number).", in: conversation)
          .conversationId
        try await fixture.suite.clock.advance(by: .seconds(10))
      }
      let asked = try fixture.requests().map { request in
        (request["messages"]?.items ?? []).compactMap { $0["content"]?.text }.joined()
      }
      // Each question was sent to the model verbatim or was part of a summary.
      let last = try #require(asked.last)
      for number in 20...30 { #expect(last.contains("Question \(number).")) }
      let summed = try #require(asked.first { $0.contains("Sum up this conversation") })
      for number in 1...19 { #expect(summed.contains("Question \(number).")) }
      #expect(fixture.model.repliesLeft == 0)
    }
  }

  @Test("What does not fit into one summary stays for the next")
  func longHistory() async throws {
    try await AssistantFixture.run { fixture in
      let long = String(repeating: "knees and squats, ", count: 3300)
      var conversation: String?
      for number in 1...5 {
        // A failed summary changes nothing.
        if number >= 4 { try fixture.model.reply(ScriptedReply(refusal: "No.")) }
        try fixture.model.reply(ScriptedReply(content: "\(number): \(long)"))
        conversation = try await fixture.ask("Tell me more, \(number).", in: conversation)
          .conversationId
        // A new day, because of the daily limit for each user.
        try await fixture.suite.clock.advance(by: .seconds(86_400))
      }
      for number in 6...7 {
        try fixture.model.reply(
          ScriptedReply(content: "Summary \(number)."),
          ScriptedReply(content: "Yes.")
        )
        _ = try await fixture.ask("Tell me more, \(number).", in: conversation)
        try await fixture.suite.clock.advance(by: .seconds(86_400))
      }
      let summed = try fixture.requests().map { request in
        (request["messages"]?.items ?? []).compactMap { $0["content"]?.text }.joined()
      }
      .filter { $0.contains("Sum up this conversation") }.suffix(2)
      #expect(summed.map { $0.contains("Tell me more, 1.") } == [true, false])
      #expect(summed.map { $0.contains("Tell me more, 2.") } == [true, false])
      #expect(summed.map { $0.contains("3: knees") } == [false, true])
      #expect(summed.last?.contains("Summary 6.") == true)
    }
  }

  @Test("Messages keep the numbers by which an answer cites them, also those that a tool found")
  func citedSources() async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.write("m1", "My knee is sore")
      try await fixture.write("m2", "The knee is sore again after squats")
      try await fixture.write("m3", "Tomorrow I travel to Rome")
      try fixture.model.reply(
        ScriptedReply(toolCalls: [.init("searchMessages", .object(["query": "travel to Rome"]))]),
        ScriptedReply(content: "A knee [2], and Rome [3].")
      )
      let reply = try await fixture.ask("Who has a sore knee?")
      #expect(reply.sources.map(\.number) == [2, 3])
      #expect(reply.sources.last?.messageId == "m3")
    }
  }

  @Test("A citation of no message is left out of the answer")
  func unknownCitation() async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.write("m1", "My knee is sore")
      try fixture.model.reply(ScriptedReply(content: "A knee [1], a hip [99], both [1, 7]."))
      let reply = try await fixture.ask("Who has a sore knee?")
      #expect(reply.reply == "A knee [1], a hip, both [1].")
      #expect(reply.sources.map(\.number) == [1])
    }
  }

  @Test("An answer that rests on a search by words is degraded", arguments: [true, false])
  func searchedByWords(inTool: Bool) async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.write("m1", "My knee is sore")
      fixture.vectors.breakDown("/query", .success(OutboundResponse(status: 503)))
      if inTool {
        try fixture.model.reply(
          ScriptedReply(toolCalls: [.init("searchMessages", .object(["query": "knee"]))])
        )
      }
      try fixture.model.reply(ScriptedReply(content: "Carl [1]."))
      // Small talk is not searched for.
      let reply = try await fixture.ask(inTool ? "Hello" : "Who has a sore knee?")
      #expect(reply.reply == "Carl [1]." && reply.sources.map(\.messageId) == ["m1"])
      #expect(reply.degraded && reply.note?.contains("words") == true)
    }
  }

  @Test("Who waits sees the words and the tools as they come")
  func streamed() async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.write("m1", "My knee is sore")
      try fixture.model.reply(
        ScriptedReply(toolCalls: [.init("searchMessages", .object(["query": "knee"]))]),
        ScriptedReply(content: "Carl has a sore knee.")
      )
      let request = CallableRequest(
        data: ChatWithAIRequest(message: "Who has a sore knee?"),
        auth: .user("tina")
      )
      let collected = ChunkCollector<ChatWithAIChunk>()
      let reply = try await fixture.functions.chatWithAI.run(request, stream: collected.stream)
      let chunks = collected.all
      #expect(chunks.prefix(2).map(\.type) == [.toolBegins, .toolEnds])
      #expect(chunks.compactMap(\.text).joined() == reply.reply)
      #expect(chunks.count > 4)
    }
  }

  // MARK: Actions

  @Test("A reminder that the question asks for is written once, and recorded")
  func reminder() async throws {
    try await AssistantFixture.run { fixture in
      let due = fixture.text(hours: 24)
      let call = ScriptedReply.ToolCall(
        "setReminder",
        .object(["text": "Call Carl", "dueDate": .string(due)])
      )
      try fixture.model.reply(
        ScriptedReply(toolCalls: [call, call]),
        ScriptedReply(content: "I will remind you.")
      )
      let reply = try await fixture.ask("Remind me to call Carl tomorrow")
      #expect(reply.actions.map(\.status) == [.done])
      let reminders = try await fixture.suite.firestore.collection("reminders").get()
      #expect(reminders.count == 1)
      #expect(reminders.first?["text"] == .string("Call Carl"))
      #expect(reminders.first?["createdBy"] == .string("ai"))
      #expect(reply.actions.first?.result == "reminders/\(reminders.first?.id ?? "")")
      let actions = try await fixture.suite.firestore.collection("aiActions").get()
      #expect(actions.map { $0["status"] } == [.string("done")])
    }
  }

  @Test("A call with a contact is put into the calendar; with anybody else it is refused")
  func scheduledCall() async throws {
    try await AssistantFixture.run { fixture in
      func call(_ client: String) -> ScriptedReply {
        ScriptedReply(toolCalls: [
          .init(
            "scheduleCall",
            .object([
              "client": .string(client), "title": "Check-in",
              "startTime": .string(fixture.text(hours: 5)),
              "endTime": .string(fixture.text(hours: 6)),
            ])
          )
        ])
      }
      try fixture.model.reply(call("Carl"), ScriptedReply(content: "Done."))
      #expect(try await fixture.ask("Schedule a call with Carl").actions.map(\.status) == [.done])
      try fixture.model.reply(call("Cora"), ScriptedReply(content: "I cannot."))
      #expect(try await fixture.ask("Schedule a call with Cora").actions.isEmpty)
      let result = try fixture.requests().last?["messages"]?.items?.last?["content"]?.text
      #expect(result?.contains("no such client") == true)
      let events = try await fixture.suite.firestore.collectionGroup("events").get()
      #expect(events.map { $0["clientId"] } == [.string("carl")])
      #expect(try await fixture.suite.firestore.collection("aiActions").get().count == 1)
    }
  }

  @Test("A message is only proposed, and sent once when its owner says so")
  func proposal() async throws {
    try await AssistantFixture.run { fixture in
      let action = try await fixture.proposed("How is the knee?")
      #expect(action.status == .proposed && action.expiresAt != nil)
      #expect(try await fixture.messages().isEmpty)

      for uid in ["tom", "carl"] {
        let error = await #expect(throws: CallableError.self) {
          try await fixture.confirm(action.id, as: uid)
        }
        #expect(error?.code == .notFound)
      }
      #expect(try await fixture.confirm(action.id).status == .done)
      #expect(try await fixture.confirm(action.id).status == .done)
      let messages = try await fixture.messages()
      #expect(messages.map { $0["text"] } == [.string("How is the knee?")])
      #expect(messages.map { $0["senderID"] } == [.string("tina")])
      let late = await #expect(throws: CallableError.self) {
        try await fixture.confirm(action.id, accept: false)
      }
      #expect(late?.code == .failedPrecondition)
    }
  }

  @Test("A proposal names the person or the group that it is for, as the server knows them")
  func targets() async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.put(
        "contacts/tina/clients/carl",
        ["clientId": "carl", "displayName": "Carlo, Tuesdays"]
      )
      #expect(try await fixture.proposed("Hi").targetName == "Carlo, Tuesdays")

      try await fixture.profiles.chat("g1", ["tina", "carl", "cora"], isGroup: true)
      #expect(
        try await fixture.proposed("Hi", to: "g1").targetName == "Carlo, Tuesdays, Cora"
      )
      // Members can name a group like a person.
      try await fixture.put(
        "chats/g1",
        [
          "members": .value(["tina", "carl", "cora"]), "isGroupChat": true,
          "groupName": "Carlo,\nTuesdays",
        ]
      )
      let group = try await fixture.proposed("Hi", to: "g1")
      #expect(group.targetName == "Carlo, Tuesdays (group of 3)")
      let stored = try await fixture.suite.firestore.document("aiActions/\(group.id)").get()
      #expect(stored["targetName"] == .string("Carlo, Tuesdays (group of 3)"))
    }
  }

  @Test("Questions count among a user's calls of a minute, and another user's do not")
  func questionsCounted() async throws {
    try await AssistantFixture.run(withModel: false) { fixture in
      for number in 1...31 {
        let error = await #expect(throws: CallableError.self) {
          try await fixture.ask("Remind me to call Carl, number \(number)")
        }
        #expect(error?.code == (number <= 30 ? .unavailable : .resourceExhausted))
      }
      let other = await #expect(throws: CallableError.self) {
        try await fixture.ask("Remind me to call Carl", as: "tom")
      }
      #expect(other?.code == .unavailable)
    }
  }

  @Test("Confirmations count among a user's calls of a minute")
  func confirmationsCounted() async throws {
    try await AssistantFixture.run { fixture in
      for number in 1...31 {
        let error = await #expect(throws: CallableError.self) {
          try await fixture.confirm("unknown")
        }
        #expect(error?.code == (number <= 30 ? .notFound : .resourceExhausted))
      }
    }
  }

  @Test("A proposal that is declined, late or not allowed any more sends nothing")
  func notSent() async throws {
    try await AssistantFixture.run { fixture in
      let declined = try await fixture.proposed("One")
      #expect(try await fixture.confirm(declined.id, accept: false).status == .refused)
      await #expect(throws: CallableError.self) { try await fixture.confirm(declined.id) }

      let late = try await fixture.proposed("Two")
      try await fixture.suite.clock.advance(by: .seconds(601))
      let expired = await #expect(throws: CallableError.self) { try await fixture.confirm(late.id) }
      #expect(expired?.code == .failedPrecondition)

      let removed = try await fixture.proposed("Three")
      try await fixture.put("contacts/tina/removed/carl", ["removedAt": .serverTimestamp])
      #expect(try await fixture.confirm(removed.id).status == .refused)

      try await fixture.suite.firestore.document("contacts/tina/removed/carl").delete()
      let gone = try await fixture.proposed("Four")
      try await fixture.suite.firestore.document("chats/c1").delete()
      #expect(try await fixture.confirm(gone.id).status == .refused)
      #expect(try await fixture.messages().isEmpty)
    }
  }

  @Test("A message can go to each chat in which the caller may write, with or without a contact")
  func withoutContact() async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.suite.firestore.document("contacts/tina/clients/carl").delete()
      let action = try await fixture.proposed("Hi", to: "c1")
      #expect(try await fixture.confirm(action.id).status == .done)
      try await fixture.put("contacts/carl/removed/tina", ["removedAt": .serverTimestamp])
      #expect(try await fixture.proposed("Ho", to: "c1").status == .refused)
    }
  }

  @Test("With autoSend a message to a chat that the question names is sent, to others proposed")
  func autoSend() async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.put("users/tina/preferences/assistant", ["autoSend": true])
      #expect(try await fixture.proposed("Hi", question: "Write to Carl: Hi").status == .done)
      #expect(try await fixture.messages().count == 1)
      #expect(
        try await fixture.proposed("Ho", question: "Write Ho to everyone").status == .proposed
      )
      #expect(try await fixture.messages().count == 1)
    }
  }

  // MARK: Misbehaving models

  @Test(
    "Calls that make no sense are errors for the model, and do nothing",
    arguments: [
      ("deleteEverything", "{}"), ("setReminder", "{"), ("setReminder", "[]"), ("setReminder", "7"),
      ("setReminder", #"{"text": "x"}"#), ("setReminder", #"{"text": 7, "dueDate": "x"}"#),
      ("sendMessage", #"{"chatId": "c1"}"#), ("searchMessages", #"{"query": "  "}"#),
    ]
  )
  func wrongCalls(tool: String, arguments: String) async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(
        ScriptedReply(
          toolCalls: [.init(tool, .string(arguments))],
          unchecked: true
        ),
        ScriptedReply(content: "I cannot.")
      )
      let reply = try await fixture.ask("Do something")
      #expect(reply.reply == "I cannot." && reply.actions.isEmpty)
      let results = try fixture.requests().last?["messages"]?.items ?? []
      #expect(results.last?["role"]?.text == "tool")
      #expect(results.last?["content"]?.text?.contains("error") == true)
    }
  }

  @Test("Arguments that no caller could use are refused, and recorded")
  func refusedArguments() async throws {
    try await AssistantFixture.run { fixture in
      let long = String(repeating: "x", count: 20_000)
      for (text, due) in [
        (" ", fixture.text(hours: 1)), (long, fixture.text(hours: 1)), ("x", "tomorrow"),
        ("x", fixture.text(hours: -1)), ("x", "9999-01-01T00:00"), ("x", "2026-02-31T09:00"),
      ] {
        try fixture.model.reply(
          ScriptedReply(toolCalls: [
            .init("setReminder", .object(["text": .string(text), "dueDate": .string(due)]))
          ]),
          ScriptedReply(content: "I cannot.")
        )
        let reply = try await fixture.ask("Remind me")
        #expect(reply.actions.map(\.status) == [.refused], "\(text.prefix(3)) \(due)")
      }
      #expect(try await fixture.suite.firestore.collection("reminders").get().isEmpty)
    }
  }

  @Test("When the time of a question is over, no further tool acts, and the answer says so")
  func deadline() async throws {
    try await AssistantFixture.run { fixture in
      let clock = ManualClock()
      func remind(_ text: String) -> ScriptedReply.ToolCall {
        .init(
          "setReminder",
          .object(["text": .string(text), "dueDate": .string(fixture.text(hours: 1))])
        )
      }
      try fixture.model.reply(ScriptedReply(toolCalls: [remind("Call Carl"), remind("Call Cora")]))
      let answer = try await fixture.services(over: fixture.suite.firestore, clock: clock).assistant
        .answer(.init(uid: "tina", text: "Remind me to call Carl")) { event in
          if case .toolEnds = event { clock.advance(by: .seconds(90)) }
        }
      #expect(answer.actions.map(\.record.parameters["text"]) == ["Call Carl"])
      #expect(answer.limitation?.contains("took too long") == true)
      #expect(fixture.model.journal.entries.count == 1)
    }
  }

  @Test("An answer that the model could not end says so")
  func cutOff() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(ScriptedReply(content: "Carl has a", finishReason: "length"))
      let reply = try await fixture.ask("Who has a sore knee?")
      #expect(reply.reply == "Carl has a" && reply.degraded)
      #expect(reply.note?.contains("cut off") == true)
    }
  }

  @Test("A model that calls tools for ever is stopped, and the answer says so")
  func endless() async throws {
    try await AssistantFixture.run { fixture in
      let search = ScriptedReply(toolCalls: [.init("searchMessages", .object(["query": "knee"]))])
      try fixture.model.reply(search, search, search, search, search)
      try fixture.model.reply(ScriptedReply(toolCalls: search.toolCalls, unchecked: true))
      let reply = try await fixture.ask("Who has a sore knee?")
      #expect(reply.degraded && reply.note != nil)
      #expect(fixture.model.repliesLeft == 0)
    }
  }

  // MARK: Failures

  @Test("Without a model the answer says what is missing, and shows the messages with the words")
  func noModel() async throws {
    try await AssistantFixture.run(withModel: false) { fixture in
      try await fixture.write("m1", "My knee is sore")
      let reply = try await fixture.ask("Who has a sore knee?")
      #expect(reply.degraded && reply.model == nil)
      #expect(reply.reply.contains("no chat model is configured"))
      #expect(reply.sources.map(\.messageId) == ["m1"])
      let error = await #expect(throws: CallableError.self) {
        try await fixture.ask("Remind me to call Carl")
      }
      #expect(error?.code == .unavailable && error?.message.contains("PSST_CHAT_MODEL") == true)
    }
  }

  @Test(
    "A model that cannot be asked is an error with a hint, or the messages with the words",
    arguments: [(401, nil), (429, nil), (429, "insufficient_quota"), (500, nil), (503, nil)]
      as [(Int, String?)]
  )
  func outage(status: Int, code: String?) async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.write("m1", "My knee is sore")
      let body = code.map { JSON.object(["error": .object(["code": .string($0)])]) }
      try fixture.model.fail(StubFault(.chat, times: 9, status: status, body: body))
      let error = await #expect(throws: CallableError.self) {
        try await fixture.ask("Remind me to call Carl")
      }
      #expect(error?.code == (status == 429 ? .resourceExhausted : .unavailable))
      #expect(error?.message.contains("try again in") == true)
      let reply = try await fixture.ask("Who has a sore knee?")
      #expect(reply.degraded && reply.sources.map(\.messageId) == ["m1"])
      #expect(reply.reply.contains("unavailable"))
    }
  }

  @Test("What was done is reported, even when the model then fails")
  func failureAfterAction() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.fail(StubFault(.chat, call: 2, times: 9, status: 503))
      try fixture.model.reply(
        ScriptedReply(toolCalls: [
          .init(
            "setReminder",
            .object(["text": "Call Carl", "dueDate": .string(fixture.text(hours: 1))])
          )
        ])
      )
      let reply = try await fixture.ask("Remind me to call Carl")
      #expect(reply.actions.map(\.status) == [.done] && reply.degraded)
    }
  }

  @Test("Questions that make no sense are refused before anything is paid", arguments: ["", " \n"])
  func blank(question: String) async throws {
    try await AssistantFixture.run { fixture in
      let error = await #expect(throws: CallableError.self) { try await fixture.ask(question) }
      #expect(error?.code == .invalidArgument)
      await #expect(throws: CallableError.self) {
        try await fixture.ask(String(repeating: "x", count: 5000))
      }
      #expect(fixture.model.journal.entries.isEmpty)
    }
  }
}

/// Psst's functions with a chat model and keyword search, without triggers on profiles.
struct AssistantFixture: Sendable {
  let profiles: ProfileFixture
  let vectors: ProviderStub
  var suite: FunctionsSuite { profiles.suite }
  var functions: AppFunctions { profiles.functions }
  var model: OpenAIModelStub { profiles.model }

  static func run(
    withModel: Bool = true,
    _ test: (AssistantFixture) async throws -> Void
  ) async throws {
    let model = OpenAIModelStub()
    let vectors = ProviderStub()
    try await withFunctions(Self.app, startTime: ProfileFixture.morning) { environment in
      environment.http.mount(model, at: OpenAIModelStub.baseURL)
      environment.http.mount(vectors, at: ProviderStub.host)
      return AppFunctions(
        services: BackendServices(
          firestore: environment.firestore,
          settings: PsstSettings(
            embedding: .lexical,
            vectors: VectorSettings(host: ProviderStub.host),
            chat: withModel
              ? .openAI(baseURL: OpenAIModelStub.baseURL, key: "key", model: "gpt-4o-mini") : .none
          ),
          http: environment.http,
          retries: ServiceRetries(attemptsMax: 1, now: { environment.now.date }),
          clock: WakingClock(wakes: 0)
        )
      )
    } test: { suite, functions in
      let profiles = ProfileFixture(suite: suite, functions: functions, model: model)
      try await profiles.populate()
      try await profiles.contact("carl", of: "tina")
      try await suite.settle()
      try model.add(StubScript(ownWords: ownWords))
      try await test(AssistantFixture(profiles: profiles, vectors: vectors))
    }
  }

  /// The arguments that a model words itself; it takes people and chats from what it was told.
  private static let ownWords = [
    "title", "text", "query", "startTime", "endTime", "dueDate", "from", "about",
  ]

  private static func app(_ functions: AppFunctions) -> FunctionsApp {
    FunctionsApp {
      functions.embedMessage
      functions.chatWithAI
      functions.confirmAction
      functions.summarizeChat
      functions.surfaceContext
      functions.suggestReminder
    }
  }

  func write(_ id: String, _ text: String, by sender: String = "carl", in chat: String = "c1")
    async throws
  {
    try await profiles.write(id, text, by: sender, in: chat)
    try await suite.settle()
  }

  func put(_ path: String, _ fields: [String: FieldValue]) async throws {
    try await suite.firestore.document(path).set(fields)
  }

  func ask(
    _ question: String,
    in conversation: String? = nil,
    as uid: String = "tina"
  ) async throws -> ChatWithAIReply {
    try await suite.call(
      functions.chatWithAI,
      ChatWithAIRequest(message: question, conversationId: conversation),
      as: .user(uid)
    )
  }

  func confirm(
    _ action: String,
    accept: Bool = true,
    as uid: String = "tina"
  ) async throws -> ChatWithAIReply.Action {
    try await suite.call(
      functions.confirmAction,
      ConfirmActionRequest(actionId: action, accept: accept),
      as: .user(uid)
    )
  }

  /// Returns the action for a message that the model wants to send.
  ///
  /// Without a chat the model looks up its caller's only client. With one it takes it from nowhere.
  func proposed(
    _ text: String,
    to chat: String? = nil,
    question: String = "Write to my client"
  ) async throws -> ChatWithAIReply.Action {
    if chat == nil {
      try model.reply(
        ScriptedReply(toolCalls: [.init("findClients", .object(["name": .null]))])
      )
    }
    try model.reply(
      ScriptedReply(
        toolCalls: [
          .init(
            "sendMessage",
            .object([
              "client": .null, "chatId": .string(chat ?? "c1"), "text": .string(text),
            ])
          )
        ],
        unchecked: chat != nil
      ),
      ScriptedReply(content: "I have written it.")
    )
    return try #require(try await ask(question).actions.first)
  }

  /// Returns the messages in the chat of Tina and Carl.
  func messages() async throws -> [DocumentSnapshot] {
    Array(try await suite.firestore.collection("chats").document("c1").collection("messages").get())
  }

  /// Creates services with the suite's settings over another database.
  func services(
    over firestore: Firestore,
    clock: any Clock<Duration> = WakingClock(wakes: 0)
  ) -> BackendServices {
    BackendServices(
      firestore: firestore,
      settings: PsstSettings(
        embedding: .lexical,
        vectors: VectorSettings(host: ProviderStub.host),
        chat: .openAI(baseURL: OpenAIModelStub.baseURL, key: "key", model: "gpt-4o-mini")
      ),
      http: suite.http,
      retries: ServiceRetries(attemptsMax: 1, now: { suite.clock.now.date }),
      clock: clock
    )
  }

  /// Returns the requests that the chat model received.
  func requests() throws -> [JSON] { model.journal.entries.map(\.request) }

  /// Returns a future time in the format that a model uses.
  func text(hours: Int64) -> String {
    let time = Timestamp(microseconds: suite.clock.now.microseconds + hours * 3_600_000_000)
    return String("\(time)".prefix(16))
  }
}
