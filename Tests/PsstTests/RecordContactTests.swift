import FunctionsTesting
import PsstFunctions
import PsstModels
import TestSupport
import Testing

@Suite("recordContact")
struct RecordContactTests {
  @Test("A message becomes the last one of its chat, and the contact's last time")
  func message() async throws {
    try await Scene.run { scene in
      try await scene.contact("carl", of: "tina")
      try await scene.write("m1", "See you at nine", by: "tina", minute: 1)
      try await scene.suite.settle()

      let chat = try await scene.fields("chats/c1")
      #expect(chat["lastMessage"] == .string("See you at nine"))
      #expect(chat["lastMessageTimestamp"] == .timestamp(Scene.time(1)))
      #expect(chat["updatedAt"] != .timestamp(Scene.time(0)))
      #expect(chat["members"] == .array([.string("tina"), .string("carl")]))
      let contact = try await scene.fields("contacts/tina/clients/carl")
      #expect(contact["lastContactedAt"] == .timestamp(Scene.time(1)))
      #expect(contact["displayName"] == .string("Carl"))
    }
  }

  @Test("What is older changes nothing, and is no write")
  func older() async throws {
    try await Scene.run { scene in
      try await scene.contact("carl", of: "tina")
      try await scene.write("m2", "Later", minute: 2)
      try await scene.suite.settle()
      let chat = try await scene.suite.firestore.document("chats/c1").get()
      let contact = try await scene.suite.firestore.document("contacts/tina/clients/carl").get()
      try await scene.write("m1", "Earlier", by: "tina", minute: 1)
      try await scene.suite.redeliver(
        scene.functions.recordContact,
        document: "chats/c1/messages/m2"
      )
      try await scene.suite.settle()

      #expect(
        try await scene.suite.firestore.document("chats/c1").get().updateTime == chat.updateTime
      )
      let now = try await scene.suite.firestore.document("contacts/tina/clients/carl").get()
      #expect(now.updateTime == contact.updateTime)
      #expect(scene.suite.runCount(of: scene.functions.recordContact) == 3)
    }
  }

  @Test("Of the messages of one moment the one with the greatest id is the last")
  func sameMoment() async throws {
    try await Scene.run { scene in
      for id in ["m2", "m3", "m1"] {
        try await scene.write(id, "Text of \(id)", minute: 1)
        try await scene.suite.settle()
      }
      #expect(try await scene.fields("chats/c1")["lastMessage"] == .string("Text of m3"))
    }
  }

  @Test("An image without words is shown as a photo")
  func photo() async throws {
    try await Scene.run { scene in
      try await scene.write("m1", "", mediaType: "image")
      try await scene.suite.settle()
      #expect(try await scene.fields("chats/c1")["lastMessage"] == .string("Photo"))
    }
  }

  @Test("A chat that never had a message gets its first")
  func firstMessage() async throws {
    try await Scene.run { scene in
      try await scene.suite.firestore.document("chats/c2")
        .set(["members": .value(["tina", "carl"]), "lastMessageTimestamp": nil])
      try await scene.write("m1", "Hello", in: "c2")
      try await scene.suite.settle()
      #expect(try await scene.fields("chats/c2")["lastMessage"] == .string("Hello"))
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
    try await Scene.run { scene in
      try await scene.contact("carl", of: "tina")
      try await scene.chat("c2", members, isGroup: isGroup)
      try await scene.write("m1", "Hello", by: sender, in: "c2")
      try await scene.suite.settle()

      let contact = try await scene.fields("contacts/tina/clients/carl")
      #expect((contact["lastContactedAt"] != nil) == isContact)
      #expect(try await scene.fields("chats/c2")["lastMessage"] == .string("Hello"))
    }
  }

  @Test("No contact and no chat is ever made")
  func nothingIsMade() async throws {
    try await Scene.run { scene in
      try await scene.write("m1", "Hello")
      try await scene.write("m1", "Hello", in: "nowhere")
      try await scene.suite.settle()

      #expect(try await scene.fields("contacts/tina/clients/carl").isEmpty)
      #expect(try await scene.fields("chats/nowhere").isEmpty)
      #expect(scene.reason(scene.functions.recordContact) == "its chat does not exist")
    }
  }

  @Test("A message that is gone when its event comes was never the last")
  func gone() async throws {
    // With faults, events wait until they are asked for.
    try await Scene.run(faults: DeliveryFaults(seed: 1, duplicates: false)) { scene in
      try await scene.write("m1", "Oops")
      try await scene.message("m1").delete()
      try await scene.suite.settle()

      #expect(try await scene.fields("chats/c1")["lastMessage"] == .string(""))
      #expect(scene.reason(scene.functions.recordContact) == "the message does not exist any more")
    }
  }

  @Test("The chat's own update ends with refreshChatMembers, which has nothing to do")
  func noLoop() async throws {
    try await Scene.run { scene in
      try await scene.write("m1", "Hello")
      try await scene.suite.settle()

      #expect(scene.suite.runCount(of: scene.functions.recordContact) == 1)
      #expect(scene.suite.runCount(of: scene.functions.refreshChatMembers) == 2)
      let lines = scene.suite.logs(of: scene.functions.refreshChatMembers)
      #expect(lines.map(\.metadata["reason"]) == ["it is new", "its members are the same"])
      #expect(scene.suite.http.exchanges.allSatisfy { $0.request.url == Scene.chatCompletions })
    }
  }

  @Test(
    "A document that cannot be read ends the event at once",
    arguments: [
      ("chats/c1", ["members": .value("tina")]),
      ("chats/c1", ["members": .value(["tina", "a/b"])]),
      ("chats/c1/messages/m1", ["timestamp": "today"]),
    ] as [(String, [String: FieldValue])]
  )
  func malformed(path: String, fields: [String: FieldValue]) async throws {
    try await Scene.run(faults: DeliveryFaults(seed: 1, duplicates: false)) { scene in
      try await scene.write("m1", "Hello", by: "tina")
      try await scene.suite.firestore.document(path).update(fields)
      try await scene.suite.settle()

      let delivery = try await scene.suite.deliveries(of: scene.functions.recordContact).first
      #expect(delivery?.state == .dead)
      #expect(delivery?.attempts == 1)
    }
  }

  @Test(
    "Events that come twice and in any order leave the same chats and contacts",
    arguments: UInt64(0)..<10
  )
  func anyOrder(seed: UInt64) async throws {
    func final(_ faults: DeliveryFaults?) async throws -> [MapValue] {
      var documents: [MapValue] = []
      try await Scene.run(withModel: false, faults: faults) { scene in
        try await scene.contact("carl", of: "tina")
        try await scene.contact("cora", of: "tina")
        try await scene.chat("c2", ["tina", "cora"])
        try await scene.chat("g1", ["tina", "carl", "cora"], isGroup: true)
        for number in 0..<12 {
          try await scene.write(
            "m\(number % 5)\(number)",
            "Text \(number)",
            by: number % 2 == 0 ? "tina" : "carl",
            in: ["c1", "c2", "g1"][number % 3],
            // Some of one moment, some written late.
            minute: Int64([3, 1, 4, 1, 5, 5, 2, 5, 3, 5, 5, 1][number])
          )
        }
        try await scene.suite.settle()
        for path in [
          "chats/c1", "chats/c2", "chats/g1", "contacts/tina/clients/carl",
          "contacts/tina/clients/cora",
        ] {
          // When something was written is no part of what was written.
          documents.append(try await scene.fields(path).filter { $0.key != "updatedAt" })
        }
      }
      return documents
    }
    #expect(try await final(DeliveryFaults(seed: seed)) == final(nil))
  }
}
