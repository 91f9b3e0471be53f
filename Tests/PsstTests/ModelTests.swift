import FirestoreClient
import PsstModels
import Testing

@Suite("What is stored")
struct ModelTests {
  @Test(
    "A message shows its text, or Photo for media without any",
    arguments: [
      ("Hello", nil, "Hello"), ("Look!", "image", "Look!"), ("", "image", "Photo"),
      (" \n", "image", "Photo"), ("", nil, ""),
    ] as [(String, String?, String)]
  )
  func preview(text: String, mediaType: String?, preview: String) {
    let message = Message(
      text: text,
      senderID: "carl",
      timestamp: Timestamp(microseconds: 0),
      mediaType: mediaType
    )
    #expect(message.preview == preview)
  }

  @Test(
    "A text is cut between characters, whatever they are made of",
    arguments: [
      ("abc", 3, "abc"), ("abc", 2, "ab"), ("aü", 2, "a"), ("aüb", 3, "aü"), ("👩‍👩‍👧b", 5, ""),
      ("e\u{301}\u{301}x", 4, ""), ("e\u{301}\u{301}x", 5, "e\u{301}\u{301}"), ("a", 0, ""),
    ]
  )
  func cut(text: String, bytes: Int, rest: String) {
    #expect(text.prefix(bytesMax: bytes) == rest)
  }

  @Test(
    "Two different people outside a group are alone with each other",
    arguments: [
      (["a", "b"], false, true), (["a", "b", "a"], false, true), (["a", "a"], false, false),
      (["a"], false, false), (["a", "b", "c"], false, false), (["a", "b"], true, false),
    ]
  )
  func oneToOne(members: [String], isGroup: Bool, isOneToOne: Bool) {
    #expect(Chat(members: members, isGroupChat: isGroup).isOneToOne == isOneToOne)
  }

  @Test("A profile is read as it was written, and one that lacks lists has empty ones")
  func profile() throws {
    var profile = ClientProfile(clientId: "carl", trainerId: "tina")
    for (index, category) in ProfileCategory.allCases.enumerated() {
      profile[category] = [
        ProfileItem(
          id: "i\(index)",
          text: "Fact",
          category: category,
          confidence: .medium,
          timestamp: Timestamp(microseconds: 1),
          sourceMessageId: "m1",
          sourceChatId: "c1"
        )
      ]
    }
    let fields = try ValueEncoder().encodeFields(profile)
    #expect(try ValueDecoder().decode(ClientProfile.self, from: fields) == profile)
    #expect(Set(ProfileCategory.allCases.map(\.rawValue)).isSubset(of: fields.keys))

    let bare = fields.filter { ["clientId", "trainerId"].contains($0.key) }
    let read = try ValueDecoder().decode(ClientProfile.self, from: bare)
    #expect(read == ClientProfile(clientId: "carl", trainerId: "tina"))
  }

  /// Returns a value as it is read after it was stored.
  private func stored<Value: Codable>(_ value: Value) throws -> Value {
    try ValueDecoder().decode(Value.self, from: try ValueEncoder().encodeFields(value))
  }

  @Test("Users, chats, messages, prospects and presences are read as they were written")
  func documents() throws {
    let time = Timestamp(microseconds: 1_700_000_000_123_456)
    var user = User(
      id: "carl",
      displayName: "Carl",
      email: "carl@psst.app",
      role: .client,
      photoURL: "https://x/y.jpg",
      createdAt: time
    )
    user.fcmToken = "t"
    user.personalTrainerId = "tina"
    user.notificationSettings = NotificationSettings(["messages": false])
    #expect(try stored(user) == user)

    var chat = Chat(
      id: "c",
      members: ["a", "b"],
      isGroupChat: true,
      groupName: "G",
      createdAt: time
    )
    chat.lastMessage = "Hi"
    chat.createdBy = "a"
    #expect(try stored(chat) == chat)

    let media = MessageMedia(
      url: "https://x/y.jpg",
      thumbnailURL: "https://x/t.jpg",
      size: 17,
      dimensions: MediaDimensions(width: 640, height: 480.5)
    )
    let message = Message(
      id: "m",
      text: "",
      senderID: "carl",
      timestamp: time,
      readBy: ["carl"],
      media: media
    )
    #expect(try stored(message) == message)
    #expect(try stored(message).media == media)

    let prospect = Prospect(
      id: "p",
      displayName: "Anna",
      placeholderEmail: "prospect-anna@psst.app",
      addedAt: time,
      convertedToClientId: "carl"
    )
    #expect(try stored(prospect) == prospect)
    let client = Client(clientId: "carl", displayName: "C", email: "c@psst.app", addedAt: time)
    #expect(try stored(client) == client)
    let presence = UserPresence(online: true, lastSeen: time)
    #expect(try stored(presence) == presence)
    let status = TypingStatus(isTyping: true, timestamp: time)
    #expect(try stored(status) == status)
  }

  @Test("Documents of older apps, and with fields of the wrong type, are read as far as possible")
  func tolerance() throws {
    func read<Value: Decodable>(_ fields: MapValue, as type: Value.Type) throws -> Value {
      try ValueDecoder().decode(type, from: fields)
    }
    let user = try read(
      ["uid": .string("carl"), "photoURL": .integer(7), "notificationSettings": .string("all")],
      as: User.self
    )
    #expect((user.id, user.photoURL, user.notificationSettings) == ("carl", nil, nil))
    #expect(user.unreadable.count == 2)
    let chat = try read(
      ["members": .array([.string("a")]), "lastMessage": .integer(1), "updatedAt": .string("now")],
      as: Chat.self
    )
    #expect((chat.id, chat.lastMessage, chat.updatedAt) == ("", "", nil))
    let presence = try read(["online": .string("yes")], as: UserPresence.self)
    #expect(!presence.online && presence.lastSeen == nil)
    let prospect = try read(
      ["prospectId": .string("p"), "addedAt": .timestamp(Timestamp(microseconds: 0))],
      as: Prospect.self
    )
    #expect((prospect.id, prospect.displayName) == ("p", ""))
    #expect(throws: ValueCodingError.self) { try read(["id": .string("p")], as: Prospect.self) }
  }

  @Test("A group's presence counts the members who are online")
  func groupPresence() {
    let group = GroupPresence([
      "a": UserPresence(online: true), "b": UserPresence(online: false),
      "c": UserPresence(online: true),
    ])
    #expect((group.onlineCount, group.onlineIDs) == (2, ["a", "c"]))
  }
}
