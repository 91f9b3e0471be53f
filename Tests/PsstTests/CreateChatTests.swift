import FirestoreClient
import FunctionsTesting
import PsstModels
import StatusCodes
import Testing

@testable import PsstFunctions
@testable import PsstServices

/// The callable that creates chats, and the service that calls it.
@Suite("Creating chats")
struct CreateChatTests {
  // MARK: Two people

  @Test("A trainer and a contact get a chat with all its fields, and the same one again")
  func pair() async throws {
    try await PeopleFixture.run { fixture in
      try await fixture.validateRelations()
      let tina = fixture.app("tina")
      try await tina.contacts.addClient(email: "carl@psst.app")
      let id = try await tina.chats.createChat(members: ["carl"])

      let stored = try #require(try await fixture.stored("chats/\(id)"))
      #expect(
        Set(stored.keys) == [
          "id", "members", "isGroupChat", "lastMessage", "lastMessageTimestamp", "createdAt",
          "updatedAt", "createdBy",
        ]
      )
      #expect(stored["createdBy"] == .string("tina"))
      #expect(stored["members"] == .array([.string("tina"), .string("carl")]))
      #expect(try await fixture.app("carl").chats.createChat(members: ["carl", "tina"]) == id)
      #expect(try await tina.chats.createChat(members: ["tina", "carl"]) == id)
      #expect(try await fixture.ids("chats") == [id])
    }
  }

  @Test("When both ask at once, again and again, there is one chat")
  func pairAtOnce() async throws {
    try await PeopleFixture.run { fixture in
      let apps = ["carl", "cora"].map { fixture.app($0) }
      let ids = try await withThrowingTaskGroup(of: String.self) { group in
        for index in 0..<20 {
          group.addTask {
            try await apps[index % 2].chats.createChat(members: ["carl", "cora"])
          }
        }
        return try await group.reduce(into: Set<String>()) { $0.insert($1) }
      }
      #expect(ids.count == 1)
      #expect(try await fixture.ids("chats") == Array(ids))
    }
  }

  @Test("The oldest chat that two people have is found, whoever made it; a group is not theirs")
  func existing() async throws {
    try await PeopleFixture.run { fixture in
      let chats = fixture.suite.firestore.collection("chats")
      try await chats.document("group").set(
        Chat(members: ["carl", "cora"], isGroupChat: true, groupName: "Two")
      )
      try await fixture.suite.clock.advance(by: .seconds(1))
      try await chats.document("z-first").set(Chat(members: ["cora", "carl"]))
      try await fixture.suite.clock.advance(by: .seconds(1))
      try await chats.document("a-second").set(Chat(members: ["carl", "cora"]))
      try await chats.document("broken").set(["members": ["carl", "cora"], "isGroupChat": "no"])
      let reply = try await fixture.suite.call(
        fixture.functions.createChat,
        CreateChatRequest(members: ["carl", "cora"]),
        as: "carl"
      )
      #expect(reply == CreateChatReply(chatId: "z-first", created: false))
    }
  }

  @Test("Without a contact a trainer and a client are refused with the app's text, both ways")
  func noContact() async throws {
    try await PeopleFixture.run { fixture in
      try await fixture.validateRelations()
      for (uid, other) in [("carl", "tina"), ("tina", "carl"), ("olga", "carl")] {
        let error = await #expect(throws: ChatError.self) {
          try await fixture.app(uid).chats.createChat(members: [other])
        }
        #expect(error == .relationshipNotFound)
        #expect(error?.errorDescription == "This trainer hasn't added you yet")
        let refusal = await #expect(throws: CallableError.self) {
          try await fixture.suite.call(
            fixture.functions.createChat,
            CreateChatRequest(members: [uid, other]),
            as: .user(uid)
          )
        }
        #expect(refusal?.code == .failedPrecondition)
        #expect(refusal?.message == "This trainer hasn't added you yet")
      }
      let stored = try await fixture.ids("chats")
      #expect(stored.isEmpty)
    }
  }

  @Test("Two trainers need no contact, and two clients a group")
  func equals() async throws {
    try await PeopleFixture.run { fixture in
      try await fixture.validateRelations()
      try await fixture.app("tina").chats.createChat(members: ["olga"])
      let error = await #expect(throws: ChatError.self) {
        try await fixture.app("carl").chats.createChat(members: ["cora"])
      }
      #expect(error == .groupNotShared)
      #expect(error?.errorDescription == "You can message people you share a group with")
      #expect(try await fixture.ids("chats").count == 1)
    }
  }

  @Test("A contact below a client, or a contact who is a trainer, joins nobody")
  func falseContact() async throws {
    try await PeopleFixture.run { fixture in
      try await fixture.validateRelations()
      let contacts = fixture.suite.firestore.collection("contacts")
      try await contacts.document("carl").collection("clients").document("tina").set(["a": 1])
      await #expect(throws: ChatError.relationshipNotFound) {
        try await fixture.app("carl").chats.createChat(members: ["tina"])
      }
    }
  }

  @Test("The check covers the callers that the flag covers, and none at 0 percent")
  func rollout() async throws {
    try await PeopleFixture.run { fixture in
      // Carl's place among all users is 78.8 percent, Cleo's 10.2.
      for (percent, carl, cleo) in [
        (0, true, true), (10, true, true), (50, true, false), (100, false, false), (0, true, true),
      ] {
        try await fixture.validateRelations(percent: percent)
        for id in try await fixture.ids("chats") {
          try await fixture.suite.firestore.document("chats/\(id)").delete()
        }
        for (uid, isAllowed) in [("carl", carl), ("cleo", cleo)] {
          let chats = fixture.app(uid).chats
          if isAllowed {
            try await chats.createChat(members: ["tina"])
          } else {
            await #expect(throws: ChatError.relationshipNotFound) {
              try await chats.createChat(members: ["tina"])
            }
          }
        }
      }
    }
  }

  @Test("A removed client gets the old chat, and can read it but not write to it")
  func removedClient() async throws {
    try await PeopleFixture.run { fixture in
      try await fixture.validateRelations()
      let tina = fixture.app("tina")
      let carl = fixture.app("carl")
      try await tina.contacts.addClient(email: "carl@psst.app")
      let id = try await carl.chats.createChat(members: ["tina"])
      try await tina.contacts.removeClient(clientId: "carl")
      #expect(try await carl.chats.createChat(members: ["tina"]) == id)
      #expect(try await tina.chats.createChat(members: ["carl"]) == id)
      #expect(try await carl.chats.getChat(id).id == id)
      try await fixture.suite.expectDenied(as: "carl") {
        try await $0.document("chats/\(id)/messages/m").create([
          "id": "m", "text": "Hi", "senderID": "carl", "timestamp": FieldValue.serverTimestamp,
        ])
      }
    }
  }

  @Test("The people with whom one may begin a chat are those of contacts and trainers' groups")
  func people() async throws {
    try await PeopleFixture.run { fixture in
      try await fixture.app("tina").contacts.addClient(email: "cleo@psst.app")
      let chats = fixture.suite.firestore.collection("chats")
      func chat(_ id: String, _ members: [String], by creator: String? = nil) async throws {
        var fields: [String: FieldValue] = [
          "id": .value(id), "members": .value(members),
          "isGroupChat": .value(creator != nil || members.count > 2),
          "lastMessageTimestamp": .serverTimestamp,
        ]
        fields["createdBy"] = creator.map { .value($0) }
        try await chats.document(id).set(fields)
      }
      try await chat("joining", ["tina", "carl", "cora", "olga"], by: "tina")
      try await chat("clients", ["carl", "cleo", "tom"], by: "carl")
      try await chat("old", ["carl", "cleo", "tom"])
      try await chat("pair", ["cora", "tom"])
      func people(_ uid: String) async throws -> [String] {
        try await fixture.app(uid).chats.getPeople().map(\.id)
      }
      #expect(try await people("tina") == ["cleo", "olga"])
      #expect(try await people("carl") == ["cora", "tina"])
      #expect(try await people("cora") == ["carl", "tina", "tom"])
      #expect(try await people("cleo") == [])
      #expect(try await people("tom") == [])
      try await fixture.suite.firestore.document("users/cleo").update(["personalTrainerId": "tina"])
      #expect(try await people("cleo") == ["tina"])
      fixture.line.setOffline(true)
      await #expect(throws: ChatError.networkError) { try await people("carl") }
    }
  }

  @Test(
    "Whoever has removed the other begins no chat with them, at any percentage",
    arguments: [0, 100]
  )
  func removedPair(percent: Int) async throws {
    try await PeopleFixture.run { fixture in
      try await fixture.validateRelations(percent: percent)
      try await fixture.suite.firestore.document("contacts/tina/removed/carl").set(["removedAt": 1])
      try await fixture.suite.firestore.document("contacts/tina/removed/tom").set(["removedAt": 1])
      for (uid, other) in [("carl", "tina"), ("tina", "carl"), ("tom", "tina"), ("tina", "tom")] {
        await #expect(throws: ChatError.relationshipNotFound) {
          try await fixture.app(uid).chats.createChat(members: [other])
        }
        await #expect(throws: ChatError.relationshipNotFound) {
          try await fixture.app(uid).chats.createChat(members: [other], isGroup: true, name: "Door")
        }
      }
      try await fixture.app("tina").contacts.addClient(email: "carl@psst.app")
      try await fixture.app("carl").chats.createChat(members: ["tina"])
      #expect(try await fixture.ids("chats").count == 1)
    }
  }

  @Test("Each chat that exists is returned at 100 percent, too, and its members write to it")
  func oldChat() async throws {
    try await PeopleFixture.run { fixture in
      let carl = fixture.app("carl")
      let id = try await carl.chats.createChat(members: ["tina"])
      try await fixture.validateRelations()
      #expect(try await carl.chats.createChat(members: ["tina"]) == id)
      try await fixture.suite.expectAllowed(as: "carl") {
        try await $0.document("chats/\(id)/messages/m").create(Self.message("m", by: "carl"))
      }
    }
  }

  @Test("A user who does not exist is named, at any percentage", arguments: [0, 100])
  func unknownUser(percent: Int) async throws {
    try await PeopleFixture.run { fixture in
      try await fixture.validateRelations(percent: percent)
      for isGroup in [false, true] {
        let error = await #expect(throws: CallableError.self) {
          try await fixture.suite.call(
            fixture.functions.createChat,
            CreateChatRequest(members: ["tina", "ghost"], isGroupChat: isGroup),
            as: "tina"
          )
        }
        #expect(error?.code == .notFound)
        #expect(error?.message == "There is no user with the uid ghost.")
      }
    }
  }

  // MARK: Groups

  @Test("A trainer's group joins the clients who are the trainer's contacts, and nobody else")
  func groupPeers() async throws {
    try await PeopleFixture.run { fixture in
      try await fixture.validateRelations()
      let tina = fixture.app("tina")
      try await tina.contacts.addClient(email: "carl@psst.app")
      try await tina.contacts.addClient(email: "cora@psst.app")
      let group = try await tina.chats.createChat(
        members: ["tina", "carl", "cora", "tom"],
        isGroup: true,
        name: " Runners "
      )
      let stored = try await fixture.stored("chats/\(group)")
      #expect(stored?["groupName"] == .string("Runners"))
      #expect(stored?["createdBy"] == .string("tina"))

      let carl = fixture.app("carl")
      let pair = try await carl.chats.createChat(members: ["cora"])
      try await fixture.suite.expectAllowed(as: "cora") {
        try await $0.document("chats/\(pair)/messages/m1").create(Self.message("m1", by: "cora"))
      }
      // Tom is a trainer in the group, which is not his.
      await #expect(throws: ChatError.relationshipNotFound) {
        try await carl.chats.createChat(members: ["tom"])
      }
      // Nor does the group join those who came in without being contacts.
      try await fixture.suite.firestore.document("chats/\(group)")
        .update(["members": .arrayUnion("cleo")])
      await #expect(throws: ChatError.groupNotShared) {
        try await carl.chats.createChat(members: ["cleo"])
      }
      // The removed are contacts no more.
      try await tina.contacts.removeClient(clientId: "carl")
      try await tina.contacts.addClient(email: "cleo@psst.app")
      await #expect(throws: ChatError.groupNotShared) {
        try await fixture.app("cleo").chats.createChat(members: ["carl"])
      }
      try await fixture.app("cleo").chats.createChat(members: ["cora"])
    }
  }

  @Test("A trainer's own group joins them with a client, until it is left or the client removed")
  func groupOfTrainer() async throws {
    try await PeopleFixture.run { fixture in
      let group = try await fixture.app("tom").chats.createChat(members: ["carl"], isGroup: true)
      let second = try await fixture.app("tom").chats.createChat(members: ["cora"], isGroup: true)
      try await fixture.validateRelations()
      try await fixture.app("carl").chats.createChat(members: ["tom"])
      try await fixture.app("cora").chats.leaveGroup(second)
      try await fixture.suite.firestore.document("contacts/tom/removed/carl").set(["removedAt": 1])
      for (pair, id) in [("cora", second), ("cleo", group)] {
        await #expect(throws: ChatError.relationshipNotFound, "\(id)") {
          try await fixture.app(pair).chats.createChat(members: ["tom"])
        }
      }
    }
  }

  @Test("A group that a client made at 0 percent, or that is older, opens no door at 100")
  func groupOfClient() async throws {
    try await PeopleFixture.run { fixture in
      let carl = fixture.app("carl").chats
      try await carl.createChat(members: ["tina"], isGroup: true)
      try await carl.createChat(members: ["cora", "tina", "tom"], isGroup: true)
      // Older groups do not say who made them.
      try await fixture.suite.firestore.document("chats/old").set(
        Chat(members: ["carl", "cora", "tina"], isGroupChat: true)
      )
      try await fixture.app("tina").contacts.addClient(email: "cora@psst.app")
      try await fixture.validateRelations()
      for (uid, other, error) in [
        ("carl", "tina", ChatError.relationshipNotFound), ("tina", "carl", .relationshipNotFound),
        ("carl", "cora", .groupNotShared), ("cora", "carl", .groupNotShared),
      ] {
        await #expect(throws: error) {
          try await fixture.app(uid).chats.createChat(members: [other])
        }
      }
      #expect(try await fixture.ids("chats").count == 3)
    }
  }

  @Test("A group is no way around the check")
  func groupChecked() async throws {
    try await PeopleFixture.run { fixture in
      try await fixture.validateRelations()
      let carl = fixture.app("carl").chats
      let tina = fixture.app("tina")
      for (members, error) in [
        (["carl", "tina"], ChatError.relationshipNotFound), (["carl", "cora"], .groupNotShared),
      ] {
        await #expect(throws: error) { try await carl.createChat(members: members, isGroup: true) }
      }
      // A trainer brings contacts and other trainers.
      await #expect(throws: ChatError.relationshipNotFound) {
        try await tina.chats.createChat(members: ["tom", "carl"], isGroup: true)
      }
      for uid in ["carl", "cora"] {
        try await tina.contacts.addClient(email: "\(uid)@psst.app")
      }
      let trainers = try await tina.chats.createChat(
        members: ["tom", "carl", "cora"],
        isGroup: true
      )
      // A client brings their trainers and those with whom a group joins them.
      let own = try await carl.createChat(members: ["cora", "tina"], isGroup: true)
      await #expect(throws: ChatError.relationshipNotFound) {
        try await carl.createChat(members: ["cora", "tom"], isGroup: true)
      }
      // Nor is adding people afterwards.
      for (group, uid) in [(trainers, "cleo"), (trainers, "olga"), (own, "tom")] {
        try await fixture.suite.expectDenied(as: "carl") {
          try await $0.document("chats/\(group)").update(["members": .arrayUnion(uid)])
        }
      }
      #expect(try await fixture.ids("chats").count == 2)
    }
  }

  @Test("A client's group has at most 100 other clients, while the check covers the client")
  func largeGroupOfClient() async throws {
    try await PeopleFixture.run { fixture in
      var batch = fixture.suite.firestore.batch()
      let ids = (0...100).map { "client-\($0)" }
      for id in ids {
        try batch.set(
          fixture.suite.firestore.document("users/\(id)"),
          User(id: id, displayName: id, role: .client)
        )
      }
      try await batch.commit()
      try await fixture.validateRelations()
      let error = await #expect(throws: ChatError.self) {
        try await fixture.app("carl").chats.createChat(members: ids, isGroup: true)
      }
      #expect(error == .invalid("A client's group has at most 100 other clients."))
    }
  }

  @Test("Each request makes a group of its own, and a repeated one finds it")
  func groupRepeated() async throws {
    try await PeopleFixture.run { fixture in
      let chats = fixture.app("carl").chats
      let first = try await chats.createChat(members: ["cora"], isGroup: true, requestID: "r1")
      let second = try await chats.createChat(members: ["cora"], isGroup: true)
      #expect(first != second)
      #expect(
        try await chats.createChat(members: ["cora"], isGroup: true, requestID: "r1") == first
      )
      // Another's request with the same id is another group.
      let other = try await fixture.app("cora").chats.createChat(
        members: ["carl"],
        isGroup: true,
        requestID: "r1"
      )
      #expect(other != first)
      #expect(try await fixture.ids("chats").count == 3)
    }
  }

  @Test("A group of 1 500 is created, and checked, in one call")
  func largeGroup() async throws {
    try await PeopleFixture.run { fixture in
      let ids = (0..<1499).map { "client-\($0)" }
      for part in stride(from: 0, to: ids.count, by: 250) {
        var batch = fixture.suite.firestore.batch()
        for id in ids[part..<min(part + 250, ids.count)] {
          try batch.set(
            fixture.suite.firestore.document("users/\(id)"),
            User(id: id, displayName: id, role: .client)
          )
          try batch.set(
            fixture.suite.firestore.document("contacts/tina/clients/\(id)"),
            ["clientId": .value(id)]
          )
        }
        try await batch.commit()
      }
      try await fixture.validateRelations()
      let chats = fixture.app("tina").chats
      let id = try await chats.createChat(members: ids, isGroup: true, name: "All")
      #expect(try await chats.getChat(id).members.count == 1500)
      await #expect(throws: ChatError.userNotFound) {
        try await fixture.app("tina").chats.createChat(members: ids + ["ghost"], isGroup: true)
      }
    }
  }

  @Test("Groups of the same two people, however many, do not hide their chat")
  func manyGroups() async throws {
    try await PeopleFixture.run { fixture in
      let chats = fixture.suite.firestore.collection("chats")
      try await chats.document("zzz").set(Chat(id: "zzz", members: ["carl", "cora"]))
      for number in 0..<120 {
        try await chats.document("a\(number)").set(
          Chat(members: ["carl", "cora"], isGroupChat: true)
        )
      }
      #expect(try await fixture.app("cora").chats.createChat(members: ["carl"]) == "zzz")
      // A chat of an old app lacks the field.
      try await chats.document("old").set(["members": ["cleo", "cora"]])
      #expect(try await fixture.app("cora").chats.createChat(members: ["cleo"]) == "old")
    }
  }

  @Test("A shared group is found among many, and its members can write meanwhile")
  func manyMemberships() async throws {
    try await PeopleFixture.run { fixture in
      try await fixture.validateRelations()
      let chats = fixture.suite.firestore.collection("chats")
      let many = ["carl"] + (0..<1000).map { "member-\($0)" }
      for number in 0..<40 {
        try await chats.document("a\(number)").set(Chat(members: many, isGroupChat: true))
      }
      for number in 0..<300 {
        try await chats.document("b\(number)").set(Chat(members: ["carl"], isGroupChat: true))
      }
      var group = Chat(members: ["carl", "cora"], isGroupChat: true)
      group.createdBy = "tom"
      try await chats.document("z").set(group)
      for uid in ["carl", "cora"] {
        try await fixture.app("tom").contacts.addClient(email: "\(uid)@psst.app")
      }
      try await fixture.app("carl").chats.createChat(members: ["cora"])
    }
  }

  // MARK: Bad input

  @Test(
    "A request that makes no sense is refused, and nothing is created",
    arguments: [
      (["members": ["carl"]], .invalidArgument), (["members": []], .permissionDenied),
      (["members": ["carl", "carl"]], .invalidArgument),
      (["members": ["tina", "cora"]], .permissionDenied),
      (["members": ["tina"]], .permissionDenied),
      (["members": ["carl", "cora", "cleo"]], .invalidArgument),
      (["members": ["carl", "a/b"]], .invalidArgument),
      (["members": ["carl", ""]], .invalidArgument),
      (["members": ["carl", ".."]], .invalidArgument),
      (["members": ["carl", 7]], .invalidArgument), (["members": "carl"], .invalidArgument),
      ([:], .invalidArgument), (["members": nil], .invalidArgument),
      (["members": ["carl", "cora"], "isGroupChat": "yes"], .invalidArgument),
      (["members": ["carl", "cora"], "groupName": "Two"], .invalidArgument),
      (["members": ["carl", "cora"], "isGroupChat": true, "groupName": " "], .invalidArgument),
      (["members": ["carl", "cora"], "isGroupChat": true, "groupName": 7], .invalidArgument),
      (["members": ["carl", "cora"], "isGroupChat": true, "requestId": ""], .invalidArgument),
      (["members": ["carl"], "isGroupChat": true], .invalidArgument),
    ] as [([String: FieldValue], StatusCode)]
  )
  func invalid(data: [String: FieldValue], code: StatusCode) async throws {
    try await PeopleFixture.run { fixture in
      let error = await #expect(throws: CallableError.self) {
        try await fixture.suite.call(fixture.functions.createChat, json: data, as: "carl")
      }
      #expect(error?.code == code, "\(String(describing: error))")
      #expect(error?.message.isEmpty == false)
      let stored = try await fixture.ids("chats")
      #expect(stored.isEmpty)
    }
  }

  @Test("A group with too many members, or too long a name, is refused")
  func tooLarge() async throws {
    try await PeopleFixture.run { fixture in
      let chats = fixture.app("carl").chats
      let many = (0..<2001).map { "u\($0)" }
      for (members, name) in [
        (many, "Many"), (["cora", "e\u{301}", "\u{e9}"], "Equal"),
        ((0..<1000).map { "\($0)" + String(repeating: "x", count: 100) }, "Large"),
        (["cora", String(repeating: "x", count: 600)], "Long"),
      ] {
        let error = await #expect(throws: ChatError.self) {
          try await chats.createChat(members: members, isGroup: true, name: name)
        }
        guard case .invalid = error else {
          Issue.record("\(String(describing: error))")
          continue
        }
      }
    }
  }

  @Test("Only who is signed in creates chats, and a null name is none")
  func signedOut() async throws {
    try await PeopleFixture.run { fixture in
      let error = await #expect(throws: CallableError.self) {
        try await fixture.suite.call(
          fixture.functions.createChat,
          CreateChatRequest(members: ["carl", "cora"])
        )
      }
      #expect(error?.code == .unauthenticated)
      try await fixture.suite.call(
        fixture.functions.createChat,
        json: [
          "members": ["carl", "cora"], "isGroupChat": nil, "groupName": nil, "more": 1,
        ] as [String: FieldValue],
        as: "carl"
      )
    }
  }

  static func message(_ id: String, by sender: String) throws -> [String: FieldValue] {
    [
      "id": .value(id), "text": "Hi", "senderID": .value(sender), "timestamp": .serverTimestamp,
      "readBy": .value([sender]),
    ]
  }
}

/// The chats of a user, as the app lists and changes them.
@Suite("Chat service")
struct ChatServiceTests {
  private func chat(
    _ id: String,
    _ members: [String],
    minute: Int64,
    isGroup: Bool = false,
    in fixture: PeopleFixture
  ) async throws {
    var chat = Chat(
      id: id,
      members: members,
      isGroupChat: isGroup,
      createdAt: Timestamp(microseconds: 1_700_000_000_000_000 + minute * 60_000_000)
    )
    if isGroup { chat.groupName = "Group \(id)" }
    try await fixture.suite.firestore.document("chats/\(id)").set(chat)
  }

  @Test("Only the user's chats are listed, those with the newest message first, in pages")
  func fetch() async throws {
    try await PeopleFixture.run { fixture in
      for (id, members, minute) in [
        ("c1", ["carl", "tina"], 1), ("c2", ["carl", "cora"], 5), ("c3", ["cora", "tina"], 6),
        ("c4", ["carl", "cleo"], 3), ("c5", ["carl", "tom"], 3),
      ] {
        try await chat(id, members, minute: Int64(minute), in: fixture)
      }
      let chats = fixture.app("carl").chats
      #expect(try await chats.fetchChats().map(\.id) == ["c2", "c5", "c4", "c1"])
      let first = try await chats.fetchChats(limit: 2)
      #expect(first.map(\.id) == ["c2", "c5"])
      #expect(try await chats.fetchChats(limit: 2, before: first.last).map(\.id) == ["c4", "c1"])
    }
  }

  @Test("A chat is observed from its creation on, and moves to the front with a message")
  func observe() async throws {
    try await PeopleFixture.run { fixture in
      try await chat("c1", ["carl", "tina"], minute: 1, in: fixture)
      try await chat("c2", ["carl", "cora"], minute: 2, in: fixture)
      var observed = fixture.app("carl").chats.observeChats().makeAsyncIterator()
      #expect(try await observed.next()?.map(\.id) == ["c2", "c1"])
      try await fixture.suite.firestore.document("chats/c1/messages/m1").create(
        CreateChatTests.message("m1", by: "tina")
      )
      try await fixture.suite.settle()
      let chats = try #require(try await observed.next())
      #expect(chats.map(\.id) == ["c1", "c2"])
      #expect(chats.first?.lastMessage == "Hi")
      // Who is removed from the chat does not see it any more.
      try await fixture.suite.firestore.document("chats/c2").update(["members": ["cora"]])
      #expect(try await observed.next()?.map(\.id) == ["c1"])
    }
  }

  @Test("A chat's title is the group's name, or the names of the others as they are now")
  func titles() async throws {
    try await PeopleFixture.run { fixture in
      try await chat("c1", ["carl", "tina"], minute: 3, in: fixture)
      try await chat("c2", ["carl", "cora", "tom"], minute: 2, isGroup: true, in: fixture)
      try await chat("c3", ["carl", "ghost"], minute: 1, in: fixture)
      try await fixture.suite.firestore.document("users/tina").update(["displayName": "Tina T."])
      let service = fixture.app("carl").chats
      let chats = try await service.fetchChats()
      let names = try await service.memberNames(of: chats)
      #expect(names == ["carl": "Carl", "tina": "Tina T.", "cora": "Cora", "tom": "Tom"])
      #expect(
        chats.map { service.title(of: $0, names: names) } == ["Tina T.", "Group c2", "Unknown"]
      )
      var group = chats[1]
      group.groupName = " "
      #expect(service.title(of: group, names: names) == "Cora, Tom")
    }
  }

  @Test("A member names a group and leaves it; others, and chats of two, cannot be changed")
  func groups() async throws {
    try await PeopleFixture.run { fixture in
      try await chat("g", ["carl", "cora"], minute: 1, isGroup: true, in: fixture)
      try await chat("c", ["carl", "cora"], minute: 1, in: fixture)
      let carl = fixture.app("carl").chats
      try await carl.setGroupName(" Runners ", of: "g")
      #expect(try await carl.getChat("g").groupName == "Runners")
      await #expect(throws: ChatError.invalidName) {
        try await carl.setGroupName(" ", of: "g")
      }
      for (uid, id) in [("tina", "g"), ("carl", "c"), ("carl", "unknown")] {
        await #expect(throws: ChatError.self) {
          try await fixture.app(uid).chats.setGroupName("X", of: id)
        }
        await #expect(throws: ChatError.self) { try await fixture.app(uid).chats.leaveGroup(id) }
      }
      try await carl.leaveGroup("g")
      #expect(try await fixture.stored("chats/g")?["members"] == .array([.string("cora")]))
    }
  }

  @Test("Another's chat, and one that does not exist, cannot be read")
  func wrongUser() async throws {
    try await PeopleFixture.run { fixture in
      try await chat("c", ["carl", "cora"], minute: 1, in: fixture)
      for id in ["c", "unknown"] {
        let error = await #expect(throws: ChatError.self) {
          try await fixture.app("tina").chats.getChat(id)
        }
        #expect(error == .permissionDenied)
        #expect(error?.errorDescription == "You are not authorized to perform this action")
      }
      await #expect(throws: ChatError.chatNotFound) {
        try await fixture.app("tina").chats.getChat("a/b")
      }
      #expect(try await fixture.app("tina").chats.fetchChats() == [])
    }
  }

  @Test("Without a connection every call says so")
  func offline() async throws {
    try await PeopleFixture.run { fixture in
      fixture.line.setOffline(true)
      let chats = fixture.app("carl").chats
      for call in [
        { try await chats.fetchChats() }, { try await chats.getChat("c") },
        { try await chats.setGroupName("X", of: "c") },
        { try await chats.memberNames(of: [Chat(members: ["carl"])]) },
      ] as [() async throws -> Any] {
        await #expect(throws: ChatError.networkError) { _ = try await call() }
      }
    }
  }
}
