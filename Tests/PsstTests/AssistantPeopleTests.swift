import FunctionsRuntime
import FunctionsTesting
import OpenAIStub
import PsstModels
@testable import PsstBackend
import PsstServices
import Testing

@Suite("People whom the assistant's caller names")
struct AssistantPeopleTests {
  /// The people beside Carl who can be meant by a question, and the question.
  struct Case: Sendable, CustomTestStringConvertible {
    var testDescription: String { "\(question) \(contacts) \(prospects) \(ownNames) \(groups)" }
    var question: String
    var contacts: [String] = []
    var prospects: [String] = []
    /// The name that Cora, a contact called "Cora", gave herself.
    var ownNames: [String] = []
    var groups: [String] = []
    var status = AIAction.Status.proposed
  }

  static let cases: [Case] = [
    Case(question: "Write to Carl: Hi", status: .done),
    Case(question: "Write to Carl: Hi", contacts: ["Dana", "Will"], status: .done),
    Case(question: "Write to Carl Smith: Hi", contacts: ["Carl Smith"]),
    Case(question: "Write to Carl: Hi", contacts: ["Carl Smith"]),
    Case(question: "Write to Carl: Hi", contacts: ["Carla"]),
    Case(question: "Write to Carl: Hi", contacts: ["CÁRL Jones"]),
    Case(question: "Write to Carl: Hi", contacts: ["\u{421}arl"]),
    Case(question: "Write to Carl: Hi", contacts: ["Ca\u{200B}rl"]),
    Case(question: "Write to Carl: Hi", contacts: ["Car1"]),
    Case(question: "Write to Carl: Hi", prospects: ["Carl Prospect"]),
    Case(question: "Write to Carl: Hi", ownNames: ["Carl"]),
    Case(question: "Write to Carl: Hi", groups: ["Carl"]),
    Case(question: "Write to Carl and Dana: Hi", contacts: ["Dana"]),
    Case(question: "Write Will that Carl says Hi", contacts: ["Will Smith"]),
    Case(question: "Write to Carl: Hi in May", contacts: ["May"]),
    Case(question: "Write to Carl: Hi", contacts: ["Callum", "Schedule Call"], status: .done),
    Case(question: "Tell Bob that Carl says Hi"),
    Case(question: "Write a message to the wife: Carl says Hi"),
    Case(question: "Tell him Hi about the talk with Carl"),
  ]

  @Test("A message goes at once to the only person who can be meant", arguments: cases)
  func message(of test: Case) async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.put("users/tina/preferences/assistant", ["autoSend": true])
      try await fixture.meet(test)
      try fixture.model.reply(
        ScriptedReply(toolCalls: [
          .init("findClients", .object(["name": "Carl"]))
        ]),
        ScriptedReply(toolCalls: [
          .init("sendMessage", .object(["client": "carl", "chatId": .null, "text": "Hi"]))
        ]),
        ScriptedReply(content: "Yes.")
      )
      let action = try #require(try await fixture.ask(test.question).actions.first)
      #expect(action.status == test.status && action.targetName == "Carl")
      #expect(try await fixture.messages().count == (test.status == .done ? 1 : 0))
    }
  }

  @Test("A call with somebody who shares the name with another one is only proposed")
  func call() async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.meet(Case(question: "", contacts: ["Carl Smith"]))
      try fixture.model.reply(fixture.call("Carl"), ScriptedReply(content: "Yes."))
      let reply = try await fixture.ask("Schedule a call with Carl Smith")
      #expect(reply.actions.map(\.status) == [.proposed])
    }
  }

  @Test("A name that fits several clients does nothing, and gives the clients to choose from")
  func several() async throws {
    try await AssistantFixture.run { fixture in
      try await fixture.meet(Case(question: "", contacts: ["Dana Smith", "Dana Jones"]))
      try fixture.model.reply(
        fixture.call("Dana"),
        fixture.call("other1"),
        ScriptedReply(content: "Yes.")
      )
      let reply = try await fixture.ask("Schedule a call with Dana")
      #expect(reply.actions.map(\.targetName) == ["Dana Jones"])
      #expect(reply.actions.map(\.status) == [.proposed])
      let results = try fixture.toolResults()
      #expect(results.first?.contains("Dana Smith") == true)
      #expect(results.first?.contains("several clients fit") == true)
    }
  }

  @Test("A model that has only the question schedules a call, and writes to a client")
  func closedBook() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(fixture.call("Carl"), ScriptedReply(content: "Yes."))
      let reply = try await fixture.ask("Schedule a call with Carl")
      #expect(reply.actions.map(\.status) == [.done])
      // The script may not know what no prompt has.
      try fixture.model.reply(fixture.call("carl"))
      await #expect(throws: CallableError.self) { try await fixture.ask("Schedule a call") }
    }
  }

  @Test("The tools that read give the caller's clients, profile, calendar and reminders alone")
  func reading() async throws {
    try await AssistantFixture.run { fixture in
      let due = FieldValue.value(fixture.suite.clock.now)
      for (trainer, title) in [("tina", "Squats"), ("tom", "Secret")] {
        try await fixture.profiles.event("e1", title, hours: 9...10, of: trainer)
        try await fixture.put(
          "reminders/\(trainer)",
          [
            "trainerId": .value(trainer), "text": .value(title), "dueDate": due,
            "completed": false, "createdBy": "trainer",
          ]
        )
      }
      try await fixture.profiles.event("e2", "Cancelled", hours: 9...10, status: "cancelled")
      try await fixture.put(
        "reminders/a-done",
        [
          "trainerId": "tina", "text": "Completed", "dueDate": due, "completed": true,
          "createdBy": "trainer",
        ]
      )
      try await fixture.profiles.contact("cora", of: "tom")
      let calls: [ScriptedReply.ToolCall] = [
        .init("findClients", .object(["name": .null])),
        .init("getProfile", .object(["client": "Carl"])),
        .init("getCalendar", .object(["from": .null])),
        .init("getReminders", .object(["about": .null])),
        .init("getCalendar", .object(["from": "soon"])),
        .init("getCalendar", .object(["from": .string(fixture.text(hours: -9))])),
      ]
      try fixture.model.reply(ScriptedReply(toolCalls: calls), ScriptedReply(content: "Yes."))
      _ = try await fixture.ask("What is next with Carl?")
      let results = try fixture.toolResults()
      #expect(results.count == 6 && !results.joined().contains("Secret"))
      #expect(!results.joined().contains("Cancelled") && !results[3].contains("Completed"))
      #expect(results[0] == #"{"clients":[{"chatId":"c1","clientId":"carl","name":"Carl"}]}"#)
      #expect(results[1].contains("facts"))
      #expect(results[2].contains("Squats") && results[3].contains("Squats"))
      #expect(results[4].contains("error") && results[5].contains("Squats"))
    }
  }

  @Test("A client gets instructions of their own, and can only search")
  func client() async throws {
    try await AssistantFixture.run { fixture in
      try fixture.model.reply(
        ScriptedReply(
          toolCalls: [
            .init("findClients", .object(["name": .null])),
            .init(
              "setReminder",
              .object(["text": "x", "dueDate": .string(fixture.text(hours: 1))])
            ),
          ],
          unchecked: true
        ),
        ScriptedReply(content: "I cannot.")
      )
      let reply = try await fixture.ask("Remind me of x", as: "carl")
      #expect(reply.actions.isEmpty)
      let request = try #require(try fixture.requests().first)
      let tools = request["tools"]?.items ?? []
      #expect(tools.map { $0["function"]?["name"]?.text } == ["searchMessages"])
      let instructions = request["messages"]?.items?.first?["content"]?.text ?? ""
      #expect(instructions.contains("client of a personal trainer"))
      #expect(try fixture.toolResults().allSatisfy { $0.contains("no tool of this name") })
    }
  }

  @Test(
    "Names that look alike have the same words",
    arguments: [
      ("Dána  SMITH", "dana smith"), ("\u{414}ana", "\u{434}ana"), ("D\u{430}na", "Dana"),
      ("Ｄａｎａ", "Dana"), ("Da\u{AD}na", "Dana"), ("Da\u{2060}na", "Dana"), ("Anna", "Ａｎｎａ"),
      ("Arne", "Ame"), ("Łukasz", "Lukasz"), ("Bi11", "Bill"), ("B0b", "Bob"), ("Dana.", "Dana"),
    ]
  )
  func lookalikes(name: String, other: String) {
    #expect(NameWords.of(name) == NameWords.of(other))
  }

  @Test("Different names have different words")
  func different() {
    #expect(NameWords.of("Dana") != NameWords.of("Dora"))
    #expect(NameWords.of("\u{200B} .").isEmpty)
  }
}

extension AssistantFixture {
  /// A call of `scheduleCall` that a model makes.
  func call(_ client: String) -> ScriptedReply {
    ScriptedReply(toolCalls: [
      .init(
        "scheduleCall",
        .object([
          "client": .string(client), "title": "Call", "startTime": .string(text(hours: 24)),
          "endTime": .string(text(hours: 25)),
        ])
      )
    ])
  }

  /// The results of tools in the last request to the model.
  func toolResults() throws -> [String] {
    (try requests().last?["messages"]?.items ?? []).filter { $0["role"] == "tool" }
      .compactMap { $0["content"]?.text }
  }

  /// Stores the people of a case.
  fileprivate func meet(_ test: AssistantPeopleTests.Case) async throws {
    let time = FieldValue.value(suite.clock.now)
    for (index, name) in test.contacts.enumerated() {
      try await put(
        "contacts/tina/clients/other\(index)",
        ["clientId": .value("other\(index)"), "displayName": .value(name), "addedAt": time]
      )
    }
    for (index, name) in test.prospects.enumerated() {
      try await put(
        "contacts/tina/prospects/p\(index)",
        ["displayName": .value(name), "addedAt": time]
      )
    }
    for name in test.ownNames {
      try await profiles.contact("cora", of: "tina")
      try await put("users/cora", ["displayName": .value(name), "role": "client"])
    }
    for name in test.groups {
      try await put(
        "chats/g1",
        ["members": ["tina", "cora", "tom"], "isGroupChat": true, "groupName": .value(name)]
      )
    }
  }
}
