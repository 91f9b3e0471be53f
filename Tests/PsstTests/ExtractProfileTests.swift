import FunctionsTesting
import OpenAIStub
@testable import PsstFunctions
import PsstModels
@testable import PsstBackend
import TestSupport
import Testing

@Suite("extractProfileInfoOnMessage")
struct ExtractProfileTests {
  @Test("What a client says becomes their profile, with its message")
  func client() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find((.injuries, "Sore left knee"), (.goals, "Run ten miles"), in: "knee")
      try await fixture.write("m1", "My left knee is sore, but I want to run ten miles")
      try await fixture.suite.settle()

      let fields = try await fixture.fields("clientProfiles/tina/clients/carl")
      #expect(
        Set(fields.keys)
          == Set(ProfileCategory.allCases.map(\.rawValue))
          .union(["clientId", "trainerId", "totalItems", "createdAt", "updatedAt"])
      )
      let profile = try #require(try await fixture.profile())
      #expect((profile.clientId, profile.trainerId) == ("carl", "tina"))
      #expect(profile.totalItems == 2)
      let injury = try #require(profile.injuries.first)
      #expect(
        injury
          == ProfileItem(
            id: injury.id,
            text: "Sore left knee",
            category: .injuries,
            confidence: .high,
            timestamp: ProfileFixture.time(1),
            sourceMessageId: "m1",
            sourceChatId: "c1"
          )
      )
      #expect(profile.goals.map(\.text) == ["Run ten miles"])
    }
  }

  @Test("What a trainer says of the client counts too, and without a role one is a trainer")
  func trainer() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find((.travel, "Away in June"), in: "June")
      try await fixture.chat("c2", ["cora", "old"])
      try await fixture.write("m1", "As you are away in June", by: "old", in: "c2")
      try await fixture.suite.settle()

      let profile = try await fixture.profile("cora", of: "old")
      #expect(profile?.trainerId == "old")
      #expect(profile?.travel.map(\.text) == ["Away in June"])
    }
  }

  @Test("A known fact becomes younger, and only that")
  func known() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find((.injuries, "Sore left knee after squats"), in: "first")
      try fixture.find((.injuries, "sore knee after squats!"), in: "second")
      try await fixture.write("m1", "first words", minute: 1)
      try await fixture.suite.settle()
      var expected = try #require(try await fixture.profile()).injuries
      try await fixture.write("m2", "second words", minute: 2)
      try await fixture.suite.settle()

      expected[0].timestamp = ProfileFixture.time(2)
      let profile = try #require(try await fixture.profile())
      #expect(profile.injuries == expected)
      #expect(profile.totalItems == 1)
    }
  }

  @Test("A profile that is there keeps what it has, and gets the right count")
  func existing() async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.suite.firestore.document("clientProfiles/tina/clients/carl").set([
        "clientId": "carl", "trainerId": "tina", "totalItems": 9, "note": "mine",
        "createdAt": .value(ProfileFixture.time(0)),
        "lastReviewedAt": .value(ProfileFixture.time(0)),
        "goals": .value([
          ProfileItem(
            id: "manual",
            text: "Sleep more",
            category: .goals,
            confidence: .high,
            timestamp: ProfileFixture.time(0),
            sourceMessageId: "",
            sourceChatId: ""
          )
        ]),
      ])
      try fixture.find((.goals, "Sleep more"), (.equipment, "A kettlebell"), in: "kettlebell")
      try await fixture.write("m1", "I have a kettlebell")
      try await fixture.suite.settle()

      let fields = try await fixture.fields("clientProfiles/tina/clients/carl")
      #expect(fields["note"] == .string("mine"))
      #expect(fields["createdAt"] == .timestamp(ProfileFixture.time(0)))
      #expect(fields["lastReviewedAt"] == .timestamp(ProfileFixture.time(0)))
      let profile = try #require(try await fixture.profile())
      #expect(profile.goals.map(\.id) == ["manual"])
      #expect(profile.goals.map(\.timestamp) == [ProfileFixture.time(1)])
      #expect(profile.totalItems == 2)
    }
  }

  @Test("A message without facts makes no profile")
  func nothing() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find(in: "Hello")
      try await fixture.write("m1", "Hello")
      try await fixture.suite.settle()
      #expect(try await fixture.profile() == nil)
    }
  }

  @Test(
    "Chats that are not of one trainer and one client are skipped, with the reason",
    arguments: [
      (["tina", "carl"], true, "it is in a group chat"),
      (["tina", "carl", "cora"], true, "it is in a group chat"),
      (["tina", "carl", "cora"], false, "its chat is not one of two people"),
      (["carl"], false, "its chat is not one of two people"),
      (["carl", "cora"], false, "its chat is one of two clients"),
      (["carl", "ghost"], false, "a member of the chat has no user"),
      (["tina", "cora"], false, "its sender is not in the chat"),
    ]
  )
  func skipped(members: [String], isGroup: Bool, reason: String) async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.chat("c2", members, isGroup: isGroup)
      try await fixture.write("m1", "My knee is sore", in: "c2")
      try await fixture.suite.settle()
      #expect(fixture.reason(fixture.extraction) == reason)
      #expect(fixture.suite.http.exchanges.isEmpty)
    }
  }

  @Test("Two trainers among themselves are skipped, without a role too", arguments: ["tom", "old"])
  func trainers(other: String) async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.chat("c2", ["tina", other])
      try await fixture.write("m1", "My knee is sore", by: "tina", in: "c2")
      try await fixture.suite.settle()
      #expect(fixture.reason(fixture.extraction) == "its chat is one of two trainers")
      #expect(fixture.suite.http.exchanges.isEmpty)
    }
  }

  @Test("Messages without words, and of no chat, are skipped with the reason")
  func noWords() async throws {
    try await ProfileFixture.run { fixture in
      for (chat, text, media, reason) in [
        ("c1", " \n", nil, "its text is blank"),
        ("c1", "", "image", "it is media without text"),
        ("nowhere", "My knee is sore", nil, "its chat does not exist"),
      ] {
        try await fixture.write("m-\(reason.count)", text, in: chat, mediaType: media)
        try await fixture.suite.settle()
        #expect(fixture.reason(fixture.extraction) == reason)
      }
      #expect(fixture.suite.http.exchanges.isEmpty)
    }
  }

  @Test("Each trainer has a profile of their own of a client")
  func otherTrainer() async throws {
    try await ProfileFixture.run { fixture in
      let other = fixture.suite.firestore.document("clientProfiles/tom/clients/carl")
      try await other.set(["clientId": "carl", "trainerId": "tom", "totalItems": 3])
      let before = try await other.get().updateTime
      try fixture.find((.injuries, "Sore knee"), in: "knee")
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.settle()

      #expect(try await other.get().updateTime == before)
      let profile = try #require(try await fixture.profile())
      #expect(profile.trainerId == "tina" && profile.injuries.map(\.text) == ["Sore knee"])
    }
  }

  @Test("Without a chat model the event ends well, and the log says so")
  func noModel() async throws {
    try await ProfileFixture.run(withModel: false) { fixture in
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.settle()

      #expect(fixture.reason(fixture.extraction)?.hasPrefix("no chat model is configured") == true)
      #expect(
        try await fixture.suite.deliveries(of: fixture.extraction).map(\.state) == [.succeeded]
      )
      #expect(try await fixture.profile() == nil)
    }
  }

  // MARK: Messages that change

  @Test("A message that changes while the model reads it is read again")
  func changedMeanwhile() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find((.injuries, "Sore knee"), in: "knee")
      try fixture.find((.injuries, "Sore elbow"), in: "elbow")
      fixture.suite.http.on("POST", ProfileFixture.chatCompletions)
        .respond { request in
          try await fixture.message("m1").update(["text": "My elbow is sore"])
          return try await fixture.model.send(request)
        }
        .respond { try await fixture.model.send($0) }
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.settle()

      #expect(try await fixture.profile()?.injuries.map(\.text) == ["Sore elbow"])
      #expect(fixture.suite.http.exchanges.count == 2)
    }
  }

  @Test("A message that keeps changing is left to a later attempt")
  func restless() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find((.injuries, "Sore knee"), in: "knee")
      for round in 1...3 {
        fixture.suite.http.on("POST", ProfileFixture.chatCompletions).respond { request in
          try await fixture.message("m1").update(["text": .value("My knee is sore \(round)")])
          return try await fixture.model.send(request)
        }
      }
      fixture.suite.http.on("POST", ProfileFixture.chatCompletions)
        .respond { try await fixture.model.send($0) }
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.settle()

      #expect(
        try await fixture.suite.deliveries(of: fixture.extraction).map(\.attempts).max() == 2
      )
      #expect(try await fixture.profile()?.totalItems == 1)
    }
  }

  @Test("A message that is read, marked as read by somebody, is not read again")
  func readReceiptMeanwhile() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find((.injuries, "Sore knee"), in: "knee")
      fixture.suite.http.on("POST", ProfileFixture.chatCompletions)
        .respond { request in
          try await fixture.message("m1").update(["readBy": .arrayUnion("tina")])
          return try await fixture.model.send(request)
        }
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.settle()
      #expect(try await fixture.profile()?.totalItems == 1)
      #expect(fixture.suite.http.exchanges.count == 1)
    }
  }

  @Test("A message that goes while the model reads it leaves nothing")
  func goneMeanwhile() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find((.injuries, "Sore knee"), in: "knee")
      fixture.suite.http.on("POST", ProfileFixture.chatCompletions)
        .respond { request in
          try await fixture.message("m1").delete()
          return try await fixture.model.send(request)
        }
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.settle()
      #expect(try await fixture.profile() == nil)
      #expect(fixture.reason(fixture.extraction) == "the message does not exist any more")
    }
  }

  @Test("An event that comes again costs nothing and writes nothing")
  func again() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find((.injuries, "Sore knee"), in: "knee")
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.settle()
      let profile = fixture.suite.firestore.document("clientProfiles/tina/clients/carl")
      let before = try await profile.get().updateTime
      try await fixture.suite.redeliver(fixture.extraction)
      try await fixture.suite.settle()

      #expect(fixture.suite.runCount(of: fixture.extraction) == 2)
      #expect(try await profile.get().updateTime == before)
      #expect(fixture.suite.http.exchanges.count == 1)
      #expect(fixture.reason(fixture.extraction) == "this version of it has been read")
    }
  }

  @Test("An edited message takes its facts along, and its new text is read")
  func edited() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find((.injuries, "Sore knee"), (.goals, "Run"), in: "knee")
      try fixture.find((.injuries, "Sore elbow"), in: "elbow")
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.settle()
      try await fixture.message("m1").update(["text": "My elbow is sore"])
      try await fixture.suite.settle()

      let profile = try #require(try await fixture.profile())
      #expect(profile.items == ["Sore elbow"])
      #expect(profile.totalItems == 1)
      #expect(fixture.suite.http.exchanges.count == 2)
    }
  }

  @Test(
    "A message that says nothing any more takes its facts along",
    arguments: [nil, "", "ok", "👍"] as [String?]
  )
  func emptied(text: String?) async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find((.injuries, "Sore knee"), in: "knee")
      try fixture.find((.injuries, "Old back"), in: "back")
      try await fixture.write("m1", "My knee is sore", minute: 1)
      try await fixture.write("m2", "My back is old", minute: 2)
      try await fixture.suite.settle()
      if let text {
        try await fixture.message("m1").update(["text": .value(text)])
      } else {
        try await fixture.message("m1").delete()
      }
      try await fixture.suite.settle()

      let profile = try #require(try await fixture.profile())
      #expect(profile.items == ["Old back"])
      #expect(profile.totalItems == 1)
      #expect(fixture.suite.http.exchanges.count == 2)
      #expect(try await fixture.readings().map(\.messageId) == ["m2"])
    }
  }

  @Test("Facts go with their message, whatever happened to its chat and its contact")
  func chatGone() async throws {
    for change in ["chat", "group", "contact", "users"] {
      try await ProfileFixture.run { fixture in
        try fixture.find((.injuries, "Sore knee"), in: "knee")
        try await fixture.write("m1", "My knee is sore")
        try await fixture.suite.settle()
        let db = fixture.suite.firestore
        switch change {
        case "chat": try await db.document("chats/c1").delete()
        case "group": try await fixture.chat("c1", ["tina", "carl", "cora"], isGroup: true)
        case "contact": try await db.document("contacts/tina/clients/carl").delete()
        default: try await db.document("users/carl").delete()
        }
        try await fixture.message("m1").delete()
        try await fixture.suite.settle()
        #expect(try await fixture.profile()?.items == [], "\(change)")
      }
    }
  }

  @Test("Facts of a message from before there were readings go with it too")
  func withoutReading() async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.settle()
      try await fixture.putProfile(injuries: [
        ProfileFixture.item("a", "Sore knee", in: "m1"),
        ProfileFixture.item("b", "Allergy", in: "m1", confirmed: true),
        ProfileFixture.item("c", "Old back", in: "m9"),
      ])
      try await fixture.message("m1").delete()
      try await fixture.suite.settle()
      #expect(try await fixture.profile()?.items == ["Allergy", "Old back"])
    }
  }

  // MARK: One reading for each version

  @Test(
    "Each version of a text is read once, also without facts, and who has read it costs nothing"
  )
  func once() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find(in: "words")
      try await fixture.write("m1", "some words without facts")
      try await fixture.suite.settle()
      try await fixture.suite.redeliver(fixture.extraction)
      try await fixture.message("m1").update(["readBy": .arrayUnion("tina")])
      try await fixture.suite.settle()
      try await fixture.suite.redeliver(fixture.extraction)
      try await fixture.suite.settle()
      #expect(fixture.suite.http.exchanges.count == 1)
      #expect(try await fixture.profile() == nil)

      try await fixture.message("m1").update(["text": "other words without facts"])
      try await fixture.suite.settle()
      try await fixture.suite.redeliver(fixture.extraction)
      try await fixture.suite.settle()
      #expect(fixture.suite.http.exchanges.count == 2)
    }
  }

  @Test("Of two workers that want to read a version at once, one pays and the other waits")
  func twoReaders() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find((.injuries, "Sore knee"), in: "knee")
      fixture.suite.http.on("POST", ProfileFixture.chatCompletions)
        .respond { request in
          #expect(try await fixture.extractMeanwhile() == .busy)
          return try await fixture.model.send(request)
        }
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.settle()
      #expect(try await fixture.profile()?.items == ["Sore knee"])
      #expect(fixture.suite.http.exchanges.count == 1)
      #expect(try await fixture.extractMeanwhile() == .skipped(.readBefore))
    }
  }

  @Test("A worker that dies while it reads holds up the next one for five minutes")
  func deadReader() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find((.injuries, "Sore knee"), in: "knee")
      fixture.suite.http.on("POST", ProfileFixture.chatCompletions)
        .respond { _ in throw CancellationError() }
        .respond { try await fixture.model.send($0) }
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.clock.advance(by: .seconds(240))
      #expect(fixture.suite.http.exchanges.count == 1)
      try await fixture.suite.clock.advance(by: .seconds(600))
      #expect(try await fixture.profile()?.items == ["Sore knee"])
      #expect(fixture.suite.http.exchanges.count == 2)
    }
  }

  @Test("A message that the model refuses to read is paid for once, until there is another model")
  func refusedOnce() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.model.add(
        StubScript(rules: [.init(contains: "knee", reply: ScriptedReply(refusal: "No."))])
      )
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.settle()
      for _ in 1...2 { #expect(try await fixture.extractMeanwhile() == .skipped(.readBefore)) }
      #expect(fixture.suite.http.exchanges.count == 1)
      let problem = try await fixture.readings().first?.problem
      #expect(problem == "the model refused to answer")
    }
  }

  @Test("Ids that together look like reserved names delay no other profile")
  func reservedIDs() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find((.injuries, "Sore knee"), in: "knee")
      try await fixture.chat("__a", ["tina", "carl"])
      try await fixture.write("b__", "My knee is sore", in: "__a")
      try await fixture.suite.settle()
      #expect(try await fixture.profile()?.items == ["Sore knee"])
    }
  }

  @Test("A message dated in the future says something when it was stored")
  func future() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find((.injuries, "Sore knee"), in: "knee")
      try await fixture.write("m1", "My knee is sore", minute: 5_000_000)
      try await fixture.suite.settle()
      let time = try #require(try await fixture.profile()?.injuries.first?.timestamp)
      #expect(time.microseconds - fixture.suite.clock.now.microseconds < 60_000_000)
    }
  }

  @Test("Five messages without facts that come twice are five calls of the model")
  func fiveTwice() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find(in: "words")
      for number in 1...5 { try await fixture.write("m\(number)", "some words without facts") }
      try await fixture.suite.settle()
      try await fixture.suite.redeliver(fixture.extraction)
      try await fixture.suite.settle()
      #expect(fixture.suite.runCount(of: fixture.extraction) >= 6)
      #expect(fixture.suite.http.exchanges.count == 5)
    }
  }

  @Test("Text without content never reaches the model", arguments: ["ok", "👍", "Hi Tina!", "12"])
  func smallTalk(text: String) async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.write("m1", text)
      try await fixture.suite.settle()
      #expect(fixture.suite.http.exchanges.isEmpty)
      #expect(fixture.reason(fixture.extraction) == "its text says nothing about anybody")
    }
  }

  // MARK: Decisions of the trainer

  @Test("Only who is among the trainer's contacts has a profile, and a stranger pays nothing")
  func noContact() async throws {
    try await ProfileFixture.run(contacts: false) { fixture in
      try fixture.find((.injuries, "Sore knee"), in: "knee")
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.settle()
      #expect(fixture.reason(fixture.extraction) == "the client is none of the trainer's contacts")
      #expect(fixture.suite.http.exchanges.isEmpty)

      try await fixture.contact("carl", of: "tina")
      try await fixture.suite.redeliver(fixture.extraction)
      try await fixture.suite.settle()
      #expect(try await fixture.profile()?.items == ["Sore knee"])
    }
  }

  @Test("A contact that goes while the model reads leaves nothing")
  func contactGoneMeanwhile() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find((.injuries, "Sore knee"), in: "knee")
      fixture.suite.http.on("POST", ProfileFixture.chatCompletions)
        .respond { request in
          try await fixture.suite.firestore.document("contacts/tina/clients/carl").delete()
          return try await fixture.model.send(request)
        }
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.settle()
      #expect(try await fixture.profile() == nil)
      #expect(fixture.reason(fixture.extraction) == "the client is none of the trainer's contacts")
    }
  }

  @Test("What the trainer removed does not come back when its message comes again or is edited")
  func removed() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find((.injuries, "Sore knee"), (.goals, "Run"), in: "knee")
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.settle()
      let id = try #require(try await fixture.profile()?.injuries.first?.id)
      try await fixture.suite.firestore.document("clientProfiles/tina/clients/carl").update([
        "injuries": [], "removedItemIds": .value([id]), "totalItems": 1,
      ])
      try await fixture.suite.redeliver(fixture.extraction)
      try await fixture.message("m1").update(["text": "My knee is sore."])
      try await fixture.suite.settle()

      let profile = try #require(try await fixture.profile())
      #expect(profile.items == ["Run"])
      #expect(profile.removedItemIds == [id])
      #expect(profile.totalItems == 1)
    }
  }

  @Test("Fifty facts of five messages leave the trainer's confirmed allergy where it is")
  func flood() async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.putProfile(injuries: [
        ProfileFixture.item("a", "Allergic to nuts", in: "m0", confirmed: true)
      ])
      for number in 1...6 {
        let facts = (1...10).map { (ProfileCategory.injuries, "Fact \(number * 100 + $0)") }
        try fixture.model.add(
          StubScript(rules: [
            .init(contains: "words of \(number)", reply: ProfileFixture.reply(facts))
          ])
        )
        try await fixture.write("m\(number)", "words of \(number)", minute: Int64(number))
        try await fixture.suite.settle()
      }
      let profile = try #require(try await fixture.profile())
      #expect(profile.totalItems == 50)
      #expect(profile.injuries.first { $0.id == "a" }?.confirmed == true)
    }
  }

  @Test("Items that cannot be read stay as they are when their list is written")
  func unreadableItems() async throws {
    try await ProfileFixture.run { fixture in
      let odd: FieldValue = ["id": "odd", "text": "By hand", "confidence": "certain"]
      try await fixture.suite.firestore.document("clientProfiles/tina/clients/carl").set([
        "clientId": "carl", "trainerId": "tina", "injuries": [odd, 7, "Sore"], "totalItems": 3,
      ])
      try fixture.find((.injuries, "Sore knee"), in: "knee")
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.settle()

      let fields = try await fixture.fields("clientProfiles/tina/clients/carl")
      guard case .array(let injuries)? = fields["injuries"] else {
        Issue.record("no list")
        return
      }
      #expect(injuries.count == 4)
      #expect(injuries.suffix(2) == [.integer(7), .string("Sore")])
      #expect(fields["totalItems"] == .integer(4))
    }
  }

  // MARK: Failing providers

  @Test("A provider that is busy or down is asked again later", arguments: [429, 500, 503])
  func later(status: Int) async throws {
    try await ProfileFixture.run { fixture in
      try fixture.find((.injuries, "Sore knee"), in: "knee")
      try fixture.model.fail(
        StubFault(.chat, times: 2, status: status, headers: ["retry-after": "40"])
      )
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.settle()

      let delivery = try #require(try await fixture.suite.deliveries(of: fixture.extraction).first)
      #expect(delivery.state == .succeeded)
      #expect(delivery.attempts == 3)
      #expect(try await fixture.profile()?.totalItems == 1)
    }
  }

  @Test("A refused request ends the event")
  func never() async throws {
    try await ProfileFixture.run { fixture in
      try fixture.model.fail(StubFault(.chat, status: 400))
      try await fixture.write("m1", "My knee is sore")
      try await fixture.suite.settle()

      let delivery = try #require(try await fixture.suite.deliveries(of: fixture.extraction).first)
      #expect(delivery.state == .dead)
      #expect(delivery.attempts == 1)
      // The message's other functions are not affected.
      #expect(try await fixture.fields("chats/c1")["lastMessage"] == .string("My knee is sore"))
    }
  }

  // MARK: Delivery

  @Test(
    "Events that come twice and in any order leave the same profile",
    arguments: UInt64(0)..<10
  )
  func anyOrder(seed: UInt64) async throws {
    func final(_ faults: DeliveryFaults?) async throws -> ClientProfile? {
      var profile: ClientProfile?
      try await ProfileFixture.run(faults: faults) { fixture in
        try fixture.find((.injuries, "Sore left knee after squats"), in: "first")
        try fixture.find((.injuries, "sore knee after squats"), (.goals, "Run"), in: "second")
        try fixture.find((.injuries, "Sore left knee, after squats"), in: "third")
        try fixture.find((.goals, "Run"), (.goals, "Run, run"), (.travel, "Rome"), in: "fourth")
        try fixture.find(in: "nothing")
        for (id, text, minute) in [
          ("m1", "first words", 1), ("m2", "nothing new", 1), ("m3", "second words", 2),
          ("m4", "fourth words", 2), ("m5", "third words", 3), ("m6", "first words", 2),
          ("m7", "fourth words", 0),
        ] as [(String, String, Int64)] {
          try await fixture.write(id, text, by: minute == 2 ? "tina" : "carl", minute: minute)
        }
        try await fixture.suite.settle()
        profile = try await fixture.profile()
      }
      // The times of the writes may differ.
      profile?.createdAt = nil
      profile?.updatedAt = nil
      return profile
    }
    let expected = try #require(try await final(nil))
    #expect(try await final(DeliveryFaults(seed: seed)) == expected)
    #expect(expected.totalItems == 3)
    #expect(expected.goals.map(\.sourceMessageId) == ["m7"])
    #expect(expected.goals.map(\.timestamp) == [ProfileFixture.time(2)])
  }
}

extension ClientProfile {
  fileprivate var items: [String] { ProfileCategory.allCases.flatMap { self[$0].map(\.text) } }
}

extension ProfileFixture {
  func readings() async throws -> [ProfileReading] {
    try await suite.firestore.collectionGroup(ProfileReading.collection).get().data()
  }

  /// Runs the extraction that an event of `m1` triggers.
  func extractMeanwhile() async throws -> ProfileExtractor.Outcome {
    try await functions.services.profiles.extract(chatID: "c1", messageID: "m1")
  }

  static func item(
    _ id: String,
    _ text: String,
    in message: String,
    confirmed: Bool? = nil
  ) -> ProfileItem {
    ProfileItem(
      id: id,
      text: text,
      category: .injuries,
      confidence: .high,
      timestamp: time(0),
      sourceMessageId: message,
      sourceChatId: "c1",
      confirmed: confirmed
    )
  }

  func putProfile(injuries: [ProfileItem]) async throws {
    try await suite.firestore.document("clientProfiles/tina/clients/carl").set([
      "clientId": "carl", "trainerId": "tina", "totalItems": .value(injuries.count),
      "injuries": .value(injuries),
    ])
  }

  fileprivate var extraction: OnDocumentWritten<Lenient<Message>> {
    functions.extractProfileInfoOnMessage
  }
}
