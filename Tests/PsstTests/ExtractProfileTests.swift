import FunctionsTesting
import OpenAIStub
import PsstFunctions
import PsstModels
import TestSupport
import Testing

@Suite("extractProfileInfoOnMessage")
struct ExtractProfileTests {
  @Test("What a client says becomes their profile, with its message")
  func client() async throws {
    try await Scene.run { scene in
      try scene.find((.injuries, "Sore left knee"), (.goals, "Run ten miles"), in: "knee")
      try await scene.write("m1", "My left knee is sore, but I want to run ten miles")
      try await scene.suite.settle()

      let fields = try await scene.fields("clientProfiles/tina/clients/carl")
      #expect(
        Set(fields.keys)
          == Set(ProfileCategory.allCases.map(\.rawValue))
          .union(["clientId", "trainerId", "totalItems", "createdAt", "updatedAt"])
      )
      let profile = try #require(try await scene.profile())
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
            timestamp: Scene.time(1),
            sourceMessageId: "m1",
            sourceChatId: "c1"
          )
      )
      #expect(profile.goals.map(\.text) == ["Run ten miles"])
    }
  }

  @Test("What a trainer says of the client counts too, and without a role one is a trainer")
  func trainer() async throws {
    try await Scene.run { scene in
      try scene.find((.travel, "Away in June"), in: "June")
      try await scene.chat("c2", ["cora", "old"])
      try await scene.write("m1", "As you are away in June", by: "old", in: "c2")
      try await scene.suite.settle()

      let profile = try await scene.profile("cora", of: "old")
      #expect(profile?.trainerId == "old")
      #expect(profile?.travel.map(\.text) == ["Away in June"])
    }
  }

  @Test("A known fact becomes younger, and only that")
  func known() async throws {
    try await Scene.run { scene in
      try scene.find((.injuries, "Sore left knee after squats"), in: "first")
      try scene.find((.injuries, "sore knee after squats!"), in: "second")
      try await scene.write("m1", "first words", minute: 1)
      try await scene.suite.settle()
      var expected = try #require(try await scene.profile()).injuries
      try await scene.write("m2", "second words", minute: 2)
      try await scene.suite.settle()

      expected[0].timestamp = Scene.time(2)
      let profile = try #require(try await scene.profile())
      #expect(profile.injuries == expected)
      #expect(profile.totalItems == 1)
    }
  }

  @Test("A profile that is there keeps what it has, and gets the right count")
  func existing() async throws {
    try await Scene.run { scene in
      try await scene.suite.firestore.document("clientProfiles/tina/clients/carl").set([
        "clientId": "carl", "trainerId": "tina", "totalItems": 9, "note": "mine",
        "createdAt": .value(Scene.time(0)), "lastReviewedAt": .value(Scene.time(0)),
        "goals": .value([
          ProfileItem(
            id: "manual",
            text: "Sleep more",
            category: .goals,
            confidence: .high,
            timestamp: Scene.time(0),
            sourceMessageId: "",
            sourceChatId: ""
          )
        ]),
      ])
      try scene.find((.goals, "Sleep more"), (.equipment, "A kettlebell"), in: "kettlebell")
      try await scene.write("m1", "I have a kettlebell")
      try await scene.suite.settle()

      let fields = try await scene.fields("clientProfiles/tina/clients/carl")
      #expect(fields["note"] == .string("mine"))
      #expect(fields["createdAt"] == .timestamp(Scene.time(0)))
      #expect(fields["lastReviewedAt"] == .timestamp(Scene.time(0)))
      let profile = try #require(try await scene.profile())
      #expect(profile.goals.map(\.id) == ["manual"])
      #expect(profile.goals.map(\.timestamp) == [Scene.time(1)])
      #expect(profile.totalItems == 2)
    }
  }

  @Test("A message without facts makes no profile")
  func nothing() async throws {
    try await Scene.run { scene in
      try scene.find(in: "Hello")
      try await scene.write("m1", "Hello")
      try await scene.suite.settle()
      #expect(try await scene.profile() == nil)
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
    try await Scene.run { scene in
      try await scene.chat("c2", members, isGroup: isGroup)
      try await scene.write("m1", "My knee is sore", in: "c2")
      try await scene.suite.settle()
      #expect(scene.reason(scene.extraction) == reason)
      #expect(scene.suite.http.exchanges.isEmpty)
    }
  }

  @Test("Two trainers among themselves are skipped, without a role too", arguments: ["tom", "old"])
  func trainers(other: String) async throws {
    try await Scene.run { scene in
      try await scene.chat("c2", ["tina", other])
      try await scene.write("m1", "My knee is sore", by: "tina", in: "c2")
      try await scene.suite.settle()
      #expect(scene.reason(scene.extraction) == "its chat is one of two trainers")
      #expect(scene.suite.http.exchanges.isEmpty)
    }
  }

  @Test("Messages without words, and of no chat, are skipped with the reason")
  func noWords() async throws {
    try await Scene.run { scene in
      for (chat, text, media, reason) in [
        ("c1", " \n", nil, "its text is blank"),
        ("c1", "", "image", "it is media without text"),
        ("nowhere", "My knee is sore", nil, "its chat does not exist"),
      ] {
        try await scene.write("m-\(reason.count)", text, in: chat, mediaType: media)
        try await scene.suite.settle()
        #expect(scene.reason(scene.extraction) == reason)
      }
      #expect(scene.suite.http.exchanges.isEmpty)
    }
  }

  @Test("Each trainer has a profile of their own of a client")
  func otherTrainer() async throws {
    try await Scene.run { scene in
      let other = scene.suite.firestore.document("clientProfiles/tom/clients/carl")
      try await other.set(["clientId": "carl", "trainerId": "tom", "totalItems": 3])
      let before = try await other.get().updateTime
      try scene.find((.injuries, "Sore knee"), in: "knee")
      try await scene.write("m1", "My knee is sore")
      try await scene.suite.settle()

      #expect(try await other.get().updateTime == before)
      let profile = try #require(try await scene.profile())
      #expect(profile.trainerId == "tina" && profile.injuries.map(\.text) == ["Sore knee"])
    }
  }

  @Test("Without a chat model the event ends well, and the log says so")
  func noModel() async throws {
    try await Scene.run(withModel: false) { scene in
      try await scene.write("m1", "My knee is sore")
      try await scene.suite.settle()

      #expect(scene.reason(scene.extraction)?.hasPrefix("no chat model is configured") == true)
      #expect(try await scene.suite.deliveries(of: scene.extraction).map(\.state) == [.succeeded])
      #expect(try await scene.profile() == nil)
    }
  }

  // MARK: The message as it is now

  @Test("A message that changes while the model reads it is read again")
  func changedMeanwhile() async throws {
    try await Scene.run { scene in
      try scene.find((.injuries, "Sore knee"), in: "knee")
      try scene.find((.injuries, "Sore elbow"), in: "elbow")
      scene.suite.http.on("POST", Scene.chatCompletions)
        .respond { request in
          try await scene.message("m1").update(["text": "My elbow is sore"])
          return try await scene.model.send(request)
        }
        .respond { try await scene.model.send($0) }
      try await scene.write("m1", "My knee is sore")
      try await scene.suite.settle()

      #expect(try await scene.profile()?.injuries.map(\.text) == ["Sore elbow"])
      #expect(scene.suite.http.exchanges.count == 2)
    }
  }

  @Test("A message that keeps changing is left to a later attempt")
  func restless() async throws {
    try await Scene.run { scene in
      try scene.find((.injuries, "Sore knee"), in: "knee")
      for round in 1...3 {
        scene.suite.http.on("POST", Scene.chatCompletions).respond { request in
          try await scene.message("m1").update(["text": .value("My knee is sore \(round)")])
          return try await scene.model.send(request)
        }
      }
      scene.suite.http.on("POST", Scene.chatCompletions)
        .respond { try await scene.model.send($0) }
      try await scene.write("m1", "My knee is sore")
      try await scene.suite.settle()

      #expect(scene.suite.runCount(of: scene.extraction) == 2)
      #expect(try await scene.profile()?.totalItems == 1)
    }
  }

  @Test("A message that is read, marked as read by somebody, is not read again")
  func readReceiptMeanwhile() async throws {
    try await Scene.run { scene in
      try scene.find((.injuries, "Sore knee"), in: "knee")
      scene.suite.http.on("POST", Scene.chatCompletions)
        .respond { request in
          try await scene.message("m1").update(["readBy": .arrayUnion("tina")])
          return try await scene.model.send(request)
        }
      try await scene.write("m1", "My knee is sore")
      try await scene.suite.settle()
      #expect(try await scene.profile()?.totalItems == 1)
      #expect(scene.suite.http.exchanges.count == 1)
    }
  }

  @Test("A message that goes while the model reads it leaves nothing")
  func goneMeanwhile() async throws {
    try await Scene.run { scene in
      try scene.find((.injuries, "Sore knee"), in: "knee")
      scene.suite.http.on("POST", Scene.chatCompletions)
        .respond { request in
          try await scene.message("m1").delete()
          return try await scene.model.send(request)
        }
      try await scene.write("m1", "My knee is sore")
      try await scene.suite.settle()
      #expect(try await scene.profile() == nil)
      #expect(scene.reason(scene.extraction) == "the message does not exist any more")
    }
  }

  @Test("An event that comes again costs nothing and writes nothing")
  func again() async throws {
    try await Scene.run { scene in
      try scene.find((.injuries, "Sore knee"), in: "knee")
      try await scene.write("m1", "My knee is sore")
      try await scene.suite.settle()
      let profile = scene.suite.firestore.document("clientProfiles/tina/clients/carl")
      let before = try await profile.get().updateTime
      try await scene.suite.redeliver(scene.extraction)
      try await scene.suite.settle()

      #expect(scene.suite.runCount(of: scene.extraction) == 2)
      #expect(try await profile.get().updateTime == before)
      #expect(scene.suite.http.exchanges.count == 1)
      #expect(scene.reason(scene.extraction) == "its facts are in the profile already")
    }
  }

  @Test("An event that comes again finds what the message says by now")
  func editedAgain() async throws {
    try await Scene.run { scene in
      try scene.find((.injuries, "Sore knee"), in: "knee")
      try scene.find((.injuries, "Sore elbow"), in: "elbow")
      try await scene.write("m1", "My knee is sore")
      try await scene.suite.settle()
      try await scene.message("m1").update(["text": "My elbow is sore"])
      try await scene.suite.redeliver(scene.extraction)
      try await scene.suite.settle()

      let injuries = try await scene.profile()?.injuries.map(\.text)
      #expect(Set(injuries ?? []) == ["Sore knee", "Sore elbow"])
    }
  }

  // MARK: A provider that fails

  @Test("A provider that is busy or down is asked again later", arguments: [429, 500, 503])
  func later(status: Int) async throws {
    try await Scene.run { scene in
      try scene.find((.injuries, "Sore knee"), in: "knee")
      try scene.model.fail(
        StubFault(.chat, times: 2, status: status, headers: ["retry-after": "40"])
      )
      try await scene.write("m1", "My knee is sore")
      try await scene.suite.settle()

      let delivery = try #require(try await scene.suite.deliveries(of: scene.extraction).first)
      #expect(delivery.state == .succeeded)
      #expect(delivery.attempts == 3)
      #expect(try await scene.profile()?.totalItems == 1)
    }
  }

  @Test("A refused request ends the event")
  func never() async throws {
    try await Scene.run { scene in
      try scene.model.fail(StubFault(.chat, status: 400))
      try await scene.write("m1", "My knee is sore")
      try await scene.suite.settle()

      let delivery = try #require(try await scene.suite.deliveries(of: scene.extraction).first)
      #expect(delivery.state == .dead)
      #expect(delivery.attempts == 1)
      // The other functions of the message do not care.
      #expect(try await scene.fields("chats/c1")["lastMessage"] == .string("My knee is sore"))
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
      try await Scene.run(faults: faults) { scene in
        try scene.find((.injuries, "Sore left knee after squats"), in: "first")
        try scene.find((.injuries, "sore knee after squats"), (.goals, "Run"), in: "second")
        try scene.find((.injuries, "Sore left knee, after squats"), in: "third")
        try scene.find((.goals, "Run"), (.goals, "Run, run"), (.travel, "Rome"), in: "fourth")
        try scene.find(in: "nothing")
        for (id, text, minute) in [
          ("m1", "first words", 1), ("m2", "nothing new", 1), ("m3", "second words", 2),
          ("m4", "fourth words", 2), ("m5", "third words", 3), ("m6", "first words", 2),
          ("m7", "fourth words", 0),
        ] as [(String, String, Int64)] {
          try await scene.write(id, text, by: minute == 2 ? "tina" : "carl", minute: minute)
        }
        try await scene.suite.settle()
        profile = try await scene.profile()
      }
      // When something was written is no part of what was written.
      profile?.createdAt = nil
      profile?.updatedAt = nil
      return profile
    }
    let expected = try #require(try await final(nil))
    #expect(try await final(DeliveryFaults(seed: seed)) == expected)
    #expect(expected.totalItems == 3)
    #expect(expected.goals.map(\.sourceMessageId) == ["m7"])
    #expect(expected.goals.map(\.timestamp) == [Scene.time(2)])
  }
}

extension Scene {
  /// The function under test.
  fileprivate var extraction: OnDocumentCreated<Lenient<Message>> {
    functions.extractProfileInfoOnMessage
  }
}
