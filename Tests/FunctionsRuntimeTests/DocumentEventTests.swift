import DocumentModel
import Events
import FunctionsRuntime
import HTTPMessages
import HTTPTypes
import Invocation
import Synchronization
import Testing
import TestSupport

@Suite("Document events")
struct DocumentEventTests {
  struct Message: Codable, Sendable, Equatable {
    var text: String
    var sentAt: Timestamp?
  }

  /// Values that the handlers received.
  private final class Seen<Element: Sendable>: Sendable {
    private let elements = Mutex<[Element]>([])

    func add(_ element: Element) { elements.withLock { $0.append(element) } }
    var all: [Element] { elements.withLock { $0 } }
  }

  struct Failure: Error {}

  private let pattern = "chats/{chatId}/messages/{messageId}"
  private let hello: MapValue = [
    "text": .string("hello"), "sentAt": .timestamp(Timestamp(microseconds: 7)),
  ]

  @Test("A created document arrives decoded, with its place, parameters and ids")
  func created() async throws {
    let seen = Seen<DocumentEvent<Message>>()
    let harness = try HostHarness {
      OnDocumentCreated<Message>("f", at: pattern) { event in
        event.logger.info("seen")
        seen.add(event)
      }
    }
    let reply = try await harness.deliver(.created, to: "f", after: hello) {
      $0.headerFields[fieldName("x-hearth-attempt")] = "3"
    }

    #expect(reply.status == 204)
    let event = try #require(seen.all.first)
    #expect(seen.all.count == 1)
    #expect(event.data == Message(text: "hello", sentAt: Timestamp(microseconds: 7)))
    #expect(try event.params.chatId == "c1")
    #expect(try event.params["messageId"] == "m1")
    #expect(event.path.description == "chats/c1/messages/m1")
    #expect(
      event.documentName.description
        == "projects/demo-test/databases/(default)/documents/chats/c1/messages/m1"
    )
    #expect(event.id == "event-1")
    #expect(event.invocationID == "invocation-1")
    #expect(event.attempt == 3)
    #expect(event.time?.description == "2026-07-01T12:00:00Z")
    #expect(harness.log.entries.map(\.message) == ["seen"])
  }

  @Test("An update has both versions and the fields that differ, a deletion the old one")
  func updatedAndDeleted() async throws {
    let updates = Seen<DocumentUpdate<Message>>()
    let deletions = Seen<Message>()
    let harness = try HostHarness {
      OnDocumentUpdated<Message>("u", at: pattern) { updates.add($0.data) }
      OnDocumentDeleted<Message>("d", at: pattern) { deletions.add($0.data) }
    }
    let changed: MapValue = ["text": .string("bye")]

    #expect(
      try await harness.deliver(.updated, to: "u", before: hello, after: changed).status == 204
    )
    #expect(try await harness.deliver(.deleted, to: "d", before: hello).status == 204)
    let update = DocumentUpdate(
      before: Message(text: "hello", sentAt: Timestamp(microseconds: 7)),
      after: Message(text: "bye"),
      changedFields: [FieldPath(["sentAt"]), FieldPath(["text"])]
    )
    #expect(updates.all == [update])
    #expect(deletions.all == [update.before])
  }

  @Test("The case of a written event says what happened")
  func written() async throws {
    let seen = Seen<DocumentWrite<Message>>()
    let harness = try HostHarness {
      OnDocumentWritten<Message>("w", at: pattern) { seen.add($0.data) }
    }
    let bye: MapValue = ["text": .string("bye")]
    _ = try await harness.deliver(.written, to: "w", after: bye)
    _ = try await harness.deliver(.written, to: "w", before: bye, after: ["text": .string("!")])
    _ = try await harness.deliver(.written, to: "w", before: bye)

    #expect(
      seen.all == [
        .created(Message(text: "bye")),
        .updated(
          before: Message(text: "bye"),
          after: Message(text: "!"),
          fields: [FieldPath(["text"])]
        ),
        .deleted(Message(text: "bye")),
      ]
    )
    #expect(seen.all.map { $0.before?.text } == [nil, "bye", "bye"])
    #expect(seen.all.map { $0.after?.text } == ["bye", "!", nil])
  }

  @Test("As FirestoreDocument the stored document arrives with fields and times")
  func raw() async throws {
    let seen = Seen<FirestoreDocument?>()
    let harness = try HostHarness {
      OnDocumentCreated<FirestoreDocument>("c", at: pattern) { seen.add($0.data) }
      OnDocumentUpdated<FirestoreDocument>("u", at: pattern) { seen.add($0.data.after) }
      OnDocumentDeleted<FirestoreDocument>("d", at: pattern) { seen.add($0.data) }
      OnDocumentWritten<FirestoreDocument>("w", at: pattern) { seen.add($0.data.after) }
    }
    let odd: MapValue = ["n": .vector([1]), "m": .map(["k": .null])]
    let created = try await harness.deliver(.created, to: "c", after: odd)
    #expect(created.status == 204, "\(created.body)")
    _ = try await harness.deliver(.updated, to: "u", before: [:], after: odd)
    _ = try await harness.deliver(.deleted, to: "d", before: odd)
    _ = try await harness.deliver(.written, to: "w", after: odd)

    #expect(seen.all.map { $0?.fields } == [odd, odd, odd, odd])
    #expect(seen.all.first??.updateTime == Timestamp(microseconds: 2))
  }

  @Test("A lenient payload reaches the handler in all kinds, with the reason or the document")
  func lenient() async throws {
    let seen = Seen<Lenient<Message>?>()
    let harness = try HostHarness {
      OnDocumentCreated<Lenient<Message>>("c", at: pattern) { seen.add($0.data) }
      OnDocumentUpdated<Lenient<Message>>("u", at: pattern) { event in
        seen.add(event.data.before)
        seen.add(event.data.after)
      }
      OnDocumentDeleted<Lenient<Message>>("d", at: pattern) { seen.add($0.data) }
      OnDocumentWritten<Lenient<Message>>("w", at: pattern) { seen.add($0.data.after) }
    }
    let odd: MapValue = ["text": .integer(5)]
    let statuses = [
      try await harness.deliver(.created, to: "c", after: odd).status,
      try await harness.deliver(.updated, to: "u", before: odd, after: hello).status,
      try await harness.deliver(.deleted, to: "d", before: odd).status,
      try await harness.deliver(.written, to: "w", before: hello, after: odd).status,
    ]

    let unreadable = Lenient<Message>.unreadable(
      ValueCodingError(path: "text", reason: "is an integer, not a string")
    )
    let readable = Lenient.readable(Message(text: "hello", sentAt: Timestamp(microseconds: 7)))
    #expect(statuses == [204, 204, 204, 204])
    #expect(seen.all == [unreadable, unreadable, readable, unreadable, unreadable])
  }

  struct MessagePath: DocumentPath, Equatable {
    var chatID = ""
    var number = 0

    static let pattern: Pattern = "chats/\(\.chatID)/messages/\(\.number)"
  }

  @Test("Functions of every kind receive the ids of their documents with their types")
  func typedPaths() async throws {
    let seen = Seen<MessagePath>()
    let harness = try HostHarness {
      OnDocumentCreated<Message>("c", path: MessagePath.self) { seen.add($1) }
      OnDocumentUpdated<Message>("u", path: MessagePath.self) { seen.add($1) }
      OnDocumentDeleted<Message>("d", path: MessagePath.self) { seen.add($1) }
      OnDocumentWritten<Message>("w", path: MessagePath.self) { seen.add($1) }
      OnDocumentCreated<FirestoreDocument>("rc", path: MessagePath.self) { seen.add($1) }
      OnDocumentUpdated<FirestoreDocument>("ru", path: MessagePath.self) { seen.add($1) }
      OnDocumentDeleted<FirestoreDocument>("rd", path: MessagePath.self) { seen.add($1) }
      OnDocumentWritten<FirestoreDocument>("rw", path: MessagePath.self) { event, path in
        let chatID = try event.params.chatID
        #expect(chatID == path.chatID)
        seen.add(path)
      }
    }
    let path = "chats/c1/messages/8"
    for raw in ["", "r"] {
      for (kind, name) in [
        (ChangeKind.created, "c"), (.updated, "u"), (.deleted, "d"), (.written, "w"),
      ] {
        let reply = try await harness.deliver(
          kind,
          to: raw + name,
          before: kind == .created ? nil : hello,
          after: kind == .deleted ? nil : ["text": .string("bye")],
          path: path
        )
        #expect(reply.status == 204, "\(raw)\(name): \(reply.body)")
      }
    }

    #expect(seen.all == Array(repeating: MessagePath(chatID: "c1", number: 8), count: 8))
  }

  @Test("A document whose id is of another type is a permanent failure that names the id")
  func idOfAnotherType() async throws {
    let harness = try HostHarness {
      OnDocumentCreated<Message>("c", path: MessagePath.self) { _, _ in
        Issue.record("was called")
      }
    }
    let reply = try await harness.deliver(.created, to: "c", after: hello)

    #expect(reply.headers[RetryAdvice.header] == "never")
    let error = harness.log.entries.compactMap { $0.metadata["error"]?.description }.first
    #expect(error?.contains("'m1' at {number} of") == true, "\(harness.log.entries)")
  }

  @Test("A handler that is run directly gets its path from the event's")
  func typedPathOfTest() async throws {
    let seen = Seen<MessagePath>()
    let function = OnDocumentCreated<Message>("c", path: MessagePath.self) { seen.add($1) }
    try await function.run(.init(path: "chats/c9/messages/3", data: Message(text: "hi")))

    #expect(seen.all == [MessagePath(chatID: "c9", number: 3)])
    await #expect(throws: EventError.self) {
      try await function.run(.init(path: "chats/c9", data: Message(text: "hi")))
    }
    await #expect(throws: EventError.self) {
      try await function.run(.init(path: "chats/c9/messages/x", data: Message(text: "hi")))
    }
  }

  @Test("An update and a written event say which properties and fields have changed")
  func changed() throws {
    let old = Message(text: "hello", sentAt: Timestamp(microseconds: 7))
    let new = Message(text: "hello", sentAt: nil)
    let update = DocumentUpdate(before: old, after: new, changedFields: ["sentAt", "place.city"])
    #expect(!update.changed(\.text) && update.changed(\.sentAt))
    #expect(
      update.changedField("sentAt") && update.changedField("place")
        && update.changedField("place.city.x")
    )
    #expect(
      !update.changedField("text") && !update.changedField("place.zip")
        && !update.changedField("plac")
    )

    let updated = DocumentWrite.updated(before: old, after: new, fields: ["sentAt"])
    #expect(!updated.changed(\.text) && updated.changed(\.sentAt))
    // A missing document has no value, so a nil property of a new one has not changed.
    for write in [DocumentWrite.created(new), .deleted(new)] {
      #expect(write.changed(\.text) && !write.changed(\.sentAt))
    }
    #expect(DocumentWrite.created(old).changed(\.sentAt))
  }

  @Test("A written event with a stored document says which fields have changed")
  func changedFieldsOfStored() {
    func document(_ fields: MapValue) -> FirestoreDocument {
      FirestoreDocument(
        name: DocumentName(
          database: DatabaseName(project: "demo-test"),
          path: ResourcePath(["a", "b"])
        ),
        fields: fields,
        createTime: Timestamp(microseconds: 1),
        updateTime: Timestamp(microseconds: 2)
      )
    }
    let place = document(["place": .map(["city": .string("Bonn")])])
    for write in [DocumentWrite.created(place), .deleted(place)] {
      #expect(write.changedField("place.city") && write.changedField("place"))
      #expect(!write.changedField("place.zip") && !write.changedField("name"))
    }
    let updated = DocumentWrite.updated(before: place, after: place, fields: ["place.city"])
    #expect(updated.changedField("place") && !updated.changedField("name"))
  }

  @Test("The current logger of a handler, and of all it calls, is its event's")
  func currentLogger() async throws {
    let harness = try HostHarness {
      OnDocumentCreated<Message>("f", at: pattern) { _ in
        await withTaskGroup { group in group.addTask { Logger.current.info("from below") } }
      }
    }
    _ = try await harness.deliver(.created, to: "f", after: hello)
    #expect(harness.log.entries.map(\.message) == ["from below"])
  }

  @Test("An event that cannot reach the handler is 400, never to be tried again, and logged")
  func refused() async throws {
    let harness = try HostHarness {
      OnDocumentCreated<Message>("f", at: pattern) { _ in Issue.record("was called") }
    }
    func replies() async throws -> [(HostHarness.Reply, String)] {
      [
        (
          try await harness.deliver(.created, to: "f", after: ["text": .integer(1)]),
          "chats/c1/messages/m1 does not decode as Message: 'text' is an integer, not a string."
        ),
        (try await harness.deliver(.created, to: "f", body: [0xFF]), "not a DocumentEventData"),
        (try await harness.deliver(.created, to: "f", body: []), "neither a value nor"),
        (try await harness.deliver(.created, to: "f", before: hello), "lacks a document"),
        (try await harness.deliver(.deleted, to: "f", before: hello), "The function wants google"),
        (
          try await harness.deliver(.created, to: "f", after: hello, path: "other/o1"),
          "does not match the pattern"
        ),
        (
          try await harness.deliver(.created, to: "f", after: hello) {
            $0.headerFields[fieldName("ce-type")] = "google.cloud.storage.object.v1.finalized"
          }, "is not one of a Firestore document"
        ),
        (
          try await harness.deliver(.created, to: "f", after: hello) {
            $0.headerFields[fieldName("ce-id")] = nil
          }, "The header ce-id is missing"
        ),
        (
          try await harness.deliver(.created, to: "f", after: hello) {
            $0.headerFields[fieldName("ce-specversion")] = "0.3"
          }, "ce-specversion must be 1.0"
        ),
        (
          try await harness.deliver(.created, to: "f", after: hello) {
            $0.headerFields[.contentType] = "text/plain"
          }, "is not application/protobuf"
        ),
        (
          try await harness.deliver(.created, to: "f", after: hello) { $0.method = .get },
          "comes by POST"
        ),
      ]
    }
    for (reply, message) in try await replies() {
      #expect(reply.status == 400)
      #expect(reply.headers[RetryAdvice.header] == "never")
      #expect(reply.body.contains(message), "\(reply.body)")
    }
    #expect(harness.log.entries(atLeast: .error).count == 11)
  }

  @Test("A failing handler is 500; its error may advise on trying again, and stays in the log")
  func failures() async throws {
    let harness = try HostHarness {
      OnDocumentCreated<FirestoreDocument>("plain", at: pattern) { _ in throw Failure() }
      OnDocumentCreated<FirestoreDocument>("permanent", at: pattern) { _ in
        throw EventError.permanent("hopeless", cause: Failure())
      }
      OnDocumentCreated<FirestoreDocument>("later", at: pattern) { _ in
        throw EventError.retry(after: .milliseconds(2500), "busy")
      }
      OnDocumentCreated<FirestoreDocument>("named", at: pattern) { _ in
        throw EventError.retry(exactlyAfter: .seconds(40), "busy until then")
      }
      OnDocumentCreated<FirestoreDocument>("waits", at: pattern, options: .init(retry: true)) { _ in
        throw EventError.retry(after: .seconds(1), "not yet")
      }
      OnDocumentCreated<FirestoreDocument>("noParam", at: pattern) { event in
        _ = try event.params.chatID
      }
    }
    func advice(_ name: String) async throws -> String? {
      let reply = try await harness.deliver(.created, to: name, after: hello)
      #expect(reply.status == 500)
      #expect(!reply.body.contains("hopeless"))
      return reply.headers[RetryAdvice.header]
    }

    #expect(try await advice("plain") == nil)
    #expect(try await advice("permanent") == "never")
    #expect(try await advice("later") == "after=2.5")
    #expect(try await advice("named") == "exactly-after=40.0")
    #expect(try await advice("waits") == "after=1.0")
    #expect(try await advice("noParam") == "never")
    #expect(
      harness.log.entries(atLeast: .error).map { $0.metadata["error"] } == [
        "Failure()", "hopeless (Failure())", "busy", "busy until then",
        "The trigger's pattern captures no 'chatID'; it captures: chatId, messageId.",
      ]
    )
    // Only a wait that is followed by a retry is not logged as an error.
    let waits = harness.log.entries(atLeast: .warning).filter { $0.level == .warning }
    #expect(waits.map { $0.metadata["error"] } == ["not yet"])
  }

  @Test("The documents may come as JSON, too")
  func jsonData() async throws {
    let seen = Seen<Message>()
    let harness = try HostHarness {
      OnDocumentCreated<Message>("f", at: pattern) { seen.add($0.data) }
    }
    let name = "projects/p/databases/(default)/documents/chats/c1/messages/m1"
    let json = #"""
      {"value": {"name": "\#(name)", "fields": {"text": {"stringValue": "x"}},
      "createTime": "2026-07-01T12:00:00Z", "updateTime": "2026-07-01T12:00:00Z"}, "oldValue": {}}
      """#
    let reply = try await harness.deliver(
      .created,
      to: "f",
      change: { $0.headerFields[.contentType] = "application/json; charset=utf-8" },
      body: Array(json.utf8)
    )

    #expect(reply.status == 204, "\(reply.body)")
    #expect(seen.all == [Message(text: "x")])
  }
}

@Suite("Functions as values")
struct CloudFunctionTests {
  struct ChatFunctions: Sendable {
    let greeting: String
    let record: @Sendable (String) -> Void

    var greet: OnCall<String, String> {
      .init("greet") { request in
        "\(greeting), \(request.data) (\(try request.requireUser()))"
      }
    }

    var audit: OnDocumentWritten<MapValue> {
      .init("audit", at: "chats/{chatId}") { event in
        record(try event.params.chatId)
      }
    }
  }

  @Test("A declaration is called like any function, and reads its parameters from the path")
  func directCalls() async throws {
    let recorded = Mutex<[String]>([])
    let functions = ChatFunctions(greeting: "Hello") { chat in
      recorded.withLock { $0.append(chat) }
    }
    let greet = functions.greet
    let audit = functions.audit

    #expect(greet.name == "greet")
    #expect(try await greet.run(CallableRequest(data: "A", auth: .user("u1"))) == "Hello, A (u1)")
    await #expect(throws: CallableError.self) { try await greet.run(CallableRequest(data: "A")) }
    try await audit.run(DocumentEvent(path: "chats/c9", data: .created([:])))
    #expect(recorded.withLock { $0 } == ["c9"])
    await #expect(throws: EventError.self) {
      try await audit.run(DocumentEvent(path: "users/u1", data: .created([:])))
    }
  }
}
