import FunctionsTesting
import PsstFunctions
import PsstModels
import TestSupport
import Testing

@Suite("recordContact")
struct RecordContactTests {
  @Test("A message becomes the last one of its chat, and the contact's last time")
  func message() async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.write("m1", "See you at nine", by: "tina", minute: 1)
      try await fixture.suite.settle()

      let chat = try await fixture.fields("chats/c1")
      #expect(chat["lastMessage"] == .string("See you at nine"))
      #expect(chat["lastMessageTimestamp"] == .timestamp(ProfileFixture.time(1)))
      #expect(chat["updatedAt"] != .timestamp(ProfileFixture.time(0)))
      #expect(chat["members"] == .array([.string("tina"), .string("carl")]))
      let contact = try await fixture.fields("contacts/tina/clients/carl")
      #expect(contact["lastContactedAt"] == .timestamp(ProfileFixture.time(1)))
      #expect(contact["displayName"] == .string("Carl"))
    }
  }

  @Test("What is older changes nothing, and is no write")
  func older() async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.write("m2", "Later", minute: 2)
      try await fixture.suite.settle()
      let chat = try await fixture.suite.firestore.document("chats/c1").get()
      let contact = try await fixture.suite.firestore.document("contacts/tina/clients/carl").get()
      try await fixture.write("m1", "Earlier", by: "tina", minute: 1)
      try await fixture.suite.redeliver(
        fixture.functions.recordContact,
        document: "chats/c1/messages/m2"
      )
      try await fixture.suite.settle()

      #expect(
        try await fixture.suite.firestore.document("chats/c1").get().updateTime == chat.updateTime
      )
      let now = try await fixture.suite.firestore.document("contacts/tina/clients/carl").get()
      #expect(now.updateTime == contact.updateTime)
      #expect(fixture.suite.runCount(of: fixture.functions.recordContact) == 3)
    }
  }

  @Test("Of the messages of one moment the one with the greatest id is the last")
  func sameMoment() async throws {
    try await ProfileFixture.run { fixture in
      for id in ["m2", "m3", "m1"] {
        try await fixture.write(id, "Text of \(id)", minute: 1)
        try await fixture.suite.settle()
      }
      #expect(try await fixture.fields("chats/c1")["lastMessage"] == .string("Text of m3"))
    }
  }

  @Test("An image without words is shown as a photo")
  func photo() async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.write("m1", "", mediaType: "image")
      try await fixture.suite.settle()
      #expect(try await fixture.fields("chats/c1")["lastMessage"] == .string("Photo"))
    }
  }

  @Test("A chat that never had a message gets its first")
  func firstMessage() async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.suite.firestore.document("chats/c2")
        .set(["members": .value(["tina", "carl"]), "lastMessageTimestamp": nil])
      try await fixture.write("m1", "Hello", in: "c2")
      try await fixture.suite.settle()
      #expect(try await fixture.fields("chats/c2")["lastMessage"] == .string("Hello"))
    }
  }

  @Test(
    "Only two who are alone with each other are in contact",
    arguments: [
      (["tina", "carl"], false, "carl", true), (["tina", "carl"], true, "carl", false),
      (["tina", "carl", "cora"], false, "carl", false), (["tina", "carl"], false, "tom", false),
      (["tina", "cora"], false, "cora", false),
    ]
  )
  func contacts(members: [String], isGroup: Bool, sender: String, isContact: Bool) async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.chat("c2", members, isGroup: isGroup)
      try await fixture.write("m1", "Hello", by: sender, in: "c2")
      try await fixture.suite.settle()

      let contact = try await fixture.fields("contacts/tina/clients/carl")
      #expect((contact["lastContactedAt"] != nil) == isContact)
      #expect(try await fixture.fields("chats/c2")["lastMessage"] == .string("Hello"))
    }
  }

  @Test("No contact and no chat is ever made")
  func nothingIsMade() async throws {
    try await ProfileFixture.run(contacts: false) { fixture in
      try await fixture.write("m1", "Hello")
      try await fixture.write("m1", "Hello", in: "nowhere")
      try await fixture.suite.settle()

      #expect(try await fixture.fields("contacts/tina/clients/carl").isEmpty)
      #expect(try await fixture.fields("chats/nowhere").isEmpty)
      #expect(fixture.reason(fixture.functions.recordContact) == "its chat does not exist")
    }
  }

  @Test("A message that is gone when its event comes was never the last")
  func gone() async throws {
    // With faults, events wait until the suite settles.
    try await ProfileFixture.run(faults: DeliveryFaults(seed: 1, duplicates: false)) { fixture in
      try await fixture.write("m1", "Oops")
      try await fixture.message("m1").delete()
      try await fixture.suite.settle()

      #expect(try await fixture.fields("chats/c1")["lastMessage"] == .string(""))
      #expect(
        fixture.reason(fixture.functions.recordContact) == "the message does not exist any more"
      )
    }
  }

  @Test("The chat's own update ends with refreshChatMembers, which has nothing to do")
  func noLoop() async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.write("m1", "Hello")
      try await fixture.suite.settle()

      #expect(fixture.suite.runCount(of: fixture.functions.recordContact) == 1)
      #expect(fixture.suite.runCount(of: fixture.functions.refreshChatMembers) == 2)
      let lines = fixture.suite.logs(of: fixture.functions.refreshChatMembers)
      #expect(lines.map(\.metadata["reason"]) == ["it is new", "its members are the same"])
      #expect(
        fixture.suite.http.exchanges.allSatisfy { $0.request.url == ProfileFixture.chatCompletions }
      )
    }
  }

  @Test(
    "A message or a chat that cannot be read is skipped with the reason, and changes nothing",
    arguments: [
      ("chats/c1", ["members": .value("tina")], "its chat cannot be read: 'members' is a string"),
      (
        "chats/c1/messages/m1", ["timestamp": "today"],
        "it cannot be read: 'timestamp' is a string"
      ),
    ] as [(String, [String: FieldValue], String)]
  )
  func malformed(path: String, fields: [String: FieldValue], reason: String) async throws {
    try await ProfileFixture.run(faults: .inOrder) { fixture in
      try await fixture.write("m1", "Hello", by: "tina")
      try await fixture.suite.firestore.document(path).update(fields)
      try await fixture.suite.settle()

      #expect(fixture.reason(fixture.functions.recordContact)?.hasPrefix(reason) == true)
      #expect(try await fixture.suite.deliveries().allSatisfy { $0.state == .succeeded })
      #expect(try await fixture.fields("chats/c1")["lastMessage"] == .string(""))
    }
  }

  @Test("A member who cannot be read is no reason to lose the chat's last message")
  func unreadableMember() async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.chat("c2", ["tina", "carl", "a/b"])
      try await fixture.write("m1", "Hello", in: "c2")
      try await fixture.suite.settle()

      #expect(try await fixture.fields("chats/c2")["lastMessage"] == .string("Hello"))
      // There may be a third member, so the chat does not count as one of two people.
      let contact = try await fixture.fields("contacts/tina/clients/carl")
      #expect(contact["lastContactedAt"] == nil)
    }
  }

  // MARK: Edits and deletions

  @Test("The last message's new text is shown, and an earlier one's changes nothing")
  func edited() async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.write("m1", "Earlier", minute: 1)
      try await fixture.write("m2", "Later", minute: 2)
      try await fixture.suite.settle()
      try await fixture.message("m2").update(["text": "Later, corrected"])
      try await fixture.suite.settle()
      #expect(try await fixture.fields("chats/c1")["lastMessage"] == .string("Later, corrected"))

      let chat = try await fixture.suite.firestore.document("chats/c1").get()
      try await fixture.message("m1").update(["text": "Earlier, corrected"])
      try await fixture.message("m2").update(["readBy": .value(["tina"])])
      try await fixture.suite.settle()
      let after = try await fixture.suite.firestore.document("chats/c1").get()
      #expect(after.updateTime == chat.updateTime)
      #expect(fixture.reason(fixture.functions.recordContact) == "it says the same as before")
    }
  }

  @Test(
    "The one before takes the place of a last message that is deleted, made older or unreadable",
    arguments: ["delete", "older", "unreadable"]
  )
  func lastOneGoes(how: String) async throws {
    try await ProfileFixture.run { fixture in
      for minute in 1...3 as ClosedRange<Int64> {
        try await fixture.write("m\(minute)", "Text \(minute)", minute: minute)
      }
      try await fixture.suite.settle()
      switch how {
      case "delete": try await fixture.message("m3").delete()
      case "older":
        try await fixture.message("m3").update(["timestamp": .value(ProfileFixture.time(1))])
      default: try await fixture.message("m3").update(["text": 5])
      }
      try await fixture.suite.settle()

      let chat = try await fixture.fields("chats/c1")
      #expect(chat["lastMessage"] == .string("Text 2"))
      #expect(chat["lastMessageTimestamp"] == .timestamp(ProfileFixture.time(2)))
      let contact = try await fixture.fields("contacts/tina/clients/carl")
      #expect(contact["lastContactedAt"] == .timestamp(ProfileFixture.time(2)))
    }
  }

  @Test("A chat whose only message is deleted shows none and records no contact")
  func onlyOneGoes() async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.write("m1", "Oops")
      try await fixture.suite.settle()
      try await fixture.message("m1").delete()
      try await fixture.suite.settle()

      let chat = try await fixture.suite.firestore.document("chats/c1").get()
      #expect(chat["lastMessage"] == .string(""))
      #expect(chat["lastMessageTimestamp"] == chat.createTime.map { .timestamp($0) })
      let contact = try await fixture.fields("contacts/tina/clients/carl")
      #expect(contact["lastContactedAt"] == nil && contact["displayName"] == .string("Carl"))
    }
  }

  @Test("A deletion in one chat leaves a contact's later time of another chat")
  func otherChat() async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.chat("c2", ["carl", "tina"])
      try await fixture.write("m1", "First", minute: 1)
      try await fixture.write("m2", "Second", minute: 2)
      try await fixture.write("m1", "Elsewhere", in: "c2", minute: 5)
      try await fixture.suite.settle()
      try await fixture.message("m2").delete()
      try await fixture.suite.settle()

      #expect(try await fixture.fields("chats/c1")["lastMessage"] == .string("First"))
      let contact = try await fixture.fields("contacts/tina/clients/carl")
      #expect(contact["lastContactedAt"] == .timestamp(ProfileFixture.time(5)))
    }
  }

  @Test("Messages that cannot be read are skipped, however many they are")
  func skipped() async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.write("m0", "The one to show", minute: 0)
      for number in 1...25 {
        try await fixture.message("m\(number)").set([
          "text": .value(number), "senderID": "carl", "timestamp": .value(ProfileFixture.time(1)),
        ])
        try await fixture.message("n\(number)").set([
          "text": "No time", "senderID": "carl", "timestamp": "zzz",
        ])
      }
      try await fixture.write("x1", "Deleted soon", minute: 2)
      try await fixture.suite.settle()
      try await fixture.message("x1").delete()
      try await fixture.suite.settle()
      #expect(try await fixture.fields("chats/c1")["lastMessage"] == .string("The one to show"))
    }
  }

  // MARK: Times in the future

  private static let year9999 = Timestamp("9999-12-31T23:59:59Z") ?? Timestamp(microseconds: 0)

  @Test("A message dated in the future counts from now, and the next one follows it")
  func future() async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.message("m1").set(
        Message(text: "From 9999", senderID: "carl", timestamp: Self.year9999)
      )
      try await fixture.suite.settle()
      let stored = try await fixture.message("m1").get().createTime
      var chat = try await fixture.fields("chats/c1")
      #expect(chat["lastMessage"] == .string("From 9999"))
      #expect(chat["lastMessageTimestamp"] == stored.map { .timestamp($0) })
      var contact = try await fixture.fields("contacts/tina/clients/carl")
      #expect(contact["lastContactedAt"] == chat["lastMessageTimestamp"])

      try await fixture.suite.clock.advance(by: .seconds(60))
      let now = fixture.suite.clock.now
      try await fixture.message("m2").set(Message(text: "Now", senderID: "tina", timestamp: now))
      try await fixture.suite.settle()
      // Redelivering the earlier message does not make it the last one.
      try await fixture.suite.redeliver(
        fixture.functions.recordContact,
        document: "chats/c1/messages/m1"
      )
      try await fixture.suite.settle()
      chat = try await fixture.fields("chats/c1")
      #expect(chat["lastMessage"] == .string("Now"))
      #expect(chat["lastMessageTimestamp"] == .timestamp(now))
      contact = try await fixture.fields("contacts/tina/clients/carl")
      #expect(contact["lastContactedAt"] == .timestamp(now))

      try await fixture.message("m2").delete()
      try await fixture.suite.settle()
      #expect(try await fixture.fields("chats/c1")["lastMessage"] == .string("From 9999"))
    }
  }

  @Test("A chat and a contact that hold a time of the future are put right by the next message")
  func frozen() async throws {
    try await ProfileFixture.run { fixture in
      let frozen: [String: FieldValue] = [
        "lastMessage": "From 9999", "lastMessageTimestamp": .value(Self.year9999),
      ]
      try await fixture.suite.firestore.document("chats/c1").update(frozen)
      try await fixture.suite.firestore.document("contacts/tina/clients/carl")
        .update(["lastContactedAt": .value(Self.year9999)])
      try await fixture.write("m1", "Hello")
      try await fixture.suite.settle()

      let chat = try await fixture.fields("chats/c1")
      #expect(chat["lastMessage"] == .string("Hello"))
      #expect(chat["lastMessageTimestamp"] == .timestamp(ProfileFixture.time(1)))
      let contact = try await fixture.fields("contacts/tina/clients/carl")
      #expect(contact["lastContactedAt"] == .timestamp(ProfileFixture.time(1)))
    }
  }

  @Test("Times of 1970 and before are times like others")
  func past() async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.suite.firestore.document("chats/c1").update([
        "lastMessageTimestamp": .delete
      ])
      for (id, time) in [("a", 0), ("b", -1)] as [(String, Int64)] {
        try await fixture.message(id).set(
          Message(text: id, senderID: "carl", timestamp: Timestamp(microseconds: time))
        )
      }
      try await fixture.suite.settle()
      #expect(try await fixture.fields("chats/c1")["lastMessage"] == .string("a"))
    }
  }

  // MARK: Order

  @Test(
    "Events that come twice and in any order leave the same chats and contacts",
    arguments: UInt64(0)..<20
  )
  func anyOrder(seed: UInt64) async throws {
    func final(_ faults: DeliveryFaults?) async throws -> [MapValue] {
      var documents: [MapValue] = []
      try await ProfileFixture.run(withModel: false, faults: faults) { fixture in
        try await fixture.contact("cora", of: "tina")
        try await fixture.chat("c2", ["tina", "cora"])
        try await fixture.chat("g1", ["tina", "carl", "cora"], isGroup: true)
        for number in 0..<12 {
          try await fixture.write(
            "m\(number % 5)\(number)",
            "Text \(number)",
            by: number % 2 == 0 ? "tina" : "carl",
            in: ["c1", "c2", "g1"][number % 3],
            // Some messages have the same time, and some are written late.
            minute: Int64([3, 1, 4, 1, 5, 5, 2, 5, 3, 5, 5, 1][number])
          )
        }
        try await fixture.suite.settle()
        // Last messages of their chats are changed or deleted.
        try await fixture.message("m49").delete()
        try await fixture.message("m44", in: "c2").update(["text": "Edited"])
        try await fixture.message("m00").update(["text": 5])
        try await fixture.message("m2").set(
          Message(text: "Gone again", senderID: "carl", timestamp: ProfileFixture.time(9))
        )
        try await fixture.message("m2").delete()
        try await fixture.suite.settle()
        for path in [
          "chats/c1", "chats/c2", "chats/g1", "contacts/tina/clients/carl",
          "contacts/tina/clients/cora",
        ] {
          // The times of the writes may differ.
          documents.append(try await fixture.fields(path).filter { $0.key != "updatedAt" })
        }
      }
      return documents
    }
    #expect(try await final(DeliveryFaults(seed: seed)) == final(.inOrder))
  }
}
