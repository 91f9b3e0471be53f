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
}
