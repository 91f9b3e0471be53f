import FirestoreClient
import FunctionsRuntime
import FunctionsTesting
import PsstModels
import StatusCodes
import Testing

@testable import PsstFunctions

/// The functions that a reader of the example meets first.
@Suite("First functions")
struct FirstFunctionsTests {
  @Test(
    "A new user is welcomed once, in words for their role, however often the event comes",
    arguments: [("client", "your trainer has added you"), ("trainer", "your first client")]
  )
  func welcome(role: String, hint: String) async throws {
    try await Self.run(deliveryFaults: DeliveryFaults(seed: 1)) { suite, functions in
      try await suite.firestore.document("users/nina").set([
        "displayName": "Nina", "role": .value(role),
      ])
      try await suite.settle()
      let conversations = try await suite.firestore.collection("users/nina/ai_conversations").get()
      #expect(conversations.map(\.id) == ["welcome"])
      let messages = try await suite.firestore
        .collection("users/nina/ai_conversations/welcome/messages").get()
      let message = try #require(Array(messages).only).data(as: AIMessage.self)
      #expect(message.content.hasPrefix("Welcome to Psst, Nina! "))
      #expect(message.content.contains(hint) && message.role == .assistant)
      try await suite.redeliver(functions.welcomeUser)
      #expect(suite.logs.contains { $0.message == "User welcomed before" })
    }
  }

  @Test("A client cancels a session to come, and the trainer is reminded of it once")
  func cancel() async throws {
    try await Self.run { suite, functions in
      for _ in 0..<2 {
        try await suite.call(
          functions.cancelSession,
          CancelSessionRequest(trainerId: "tina", eventId: "e1"),
          as: .user("carl")
        )
      }
      let event = try await suite.firestore.document("calendar/tina/events/e1").get()
      #expect(event["status"] == .string("cancelled"))
      let reminder = try #require(
        try await Array(suite.firestore.collection("reminders").get()).only
      )
      #expect(reminder["text"] == .string("Carl has cancelled: Knee; work, with\nTina"))
      #expect(reminder["trainerId"] == .string("tina"))
    }
  }

  @Test(
    "Another's session, an unknown one, one that is over and ids that are none are refused",
    arguments: [
      ("cora", "tina", "e1", StatusCode.notFound), ("carl", "tina", "e9", .notFound),
      ("carl", "tina", "past", .failedPrecondition), ("carl", "tina", "held", .failedPrecondition),
      ("carl", "tina", "a/b", .invalidArgument), ("carl", "", "e1", .invalidArgument),
    ]
  )
  func refused(uid: String, trainer: String, event: String, code: StatusCode) async throws {
    try await Self.run { suite, functions in
      let error = await #expect(throws: CallableError.self) {
        try await suite.call(
          functions.cancelSession,
          CancelSessionRequest(trainerId: trainer, eventId: event),
          as: .user(uid)
        )
      }
      let reminders = try await suite.firestore.collection("reminders").get()
      #expect(error?.code == code)
      #expect(reminders.isEmpty)
    }
  }

  @Test("A calendar app reads the sessions with the key of their trainer")
  func feed() async throws {
    try await Self.run { suite, functions in
      let reply = try await functions.calendarFeed.run(
        HTTPFunctionRequest(.get, "/?trainer=tina&key=0123456789abcdef")
      )
      let lines = try #require(reply.body.text).split(separator: "\r\n")
      #expect(reply.headers[.contentType] == "text/calendar; charset=utf-8")
      #expect(lines.first == "BEGIN:VCALENDAR" && lines.last == "END:VCALENDAR")
      #expect(lines.contains(#"SUMMARY:Knee\; work\, with\nTina"#))
      #expect(lines.contains("DTSTART:21000501T090000Z"))
      #expect(lines.count { $0 == "BEGIN:VEVENT" } == 3)
    }
  }

  @Test(
    "Without the right key there is no calendar",
    arguments: [
      ("?trainer=tina&key=0123456789abcdeF", 403), ("?trainer=tina&key=", 403),
      ("?trainer=tom&key=short", 403), ("?trainer=nobody&key=0123456789abcdef", 403),
      ("?trainer=tina", 400), ("?trainer=a%2Fb&key=0123456789abcdef", 400),
    ]
  )
  func noKey(query: String, status: Int) async throws {
    try await Self.run { _, functions in
      let error = await #expect(throws: HTTPFunctionError.self) {
        try await functions.calendarFeed.run(HTTPFunctionRequest(.get, "/" + query))
      }
      #expect(error?.status.code == status)
    }
  }

  /// Runs a test with Tina's calendar of three sessions with Carl.
  private static func run(
    deliveryFaults: DeliveryFaults? = nil,
    _ test: (FunctionsSuite, AppFunctions) async throws -> Void
  ) async throws {
    try await ProactiveFixture.run(
      faults: deliveryFaults,
      of: { functions in
        FunctionsApp {
          functions.welcomeUser
          functions.cancelSession
        }
      }
    ) { fixture in
      let hour: Int64 = 3_600_000_000
      let now = fixture.suite.clock.now.microseconds
      for (id, status, start) in [
        ("e1", "scheduled", ProfileFixture.hour(9).microseconds),
        ("past", "scheduled", now - hour), ("held", "completed", now + hour),
      ] {
        try await fixture.put(
          "calendar/tina/events/\(id)",
          [
            "title": "Knee; work, with\nTina", "clientId": "carl", "trainerId": "tina",
            "status": .value(status), "startTime": .value(Timestamp(microseconds: start)),
            "endTime": .value(Timestamp(microseconds: start + hour)),
          ]
        )
      }
      try await fixture.put("users/tina/preferences/calendar", ["feedKey": "0123456789abcdef"])
      try await fixture.put("users/tom/preferences/calendar", ["feedKey": "short"])
      try await test(fixture.suite, fixture.functions)
    }
  }
}
