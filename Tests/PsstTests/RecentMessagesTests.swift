import FunctionsTesting
import OutboundHTTP
import PsstFunctions
import PsstServices
import Testing

@Suite("Recent messages")
struct RecentMessagesTests {
  @Test("Chats dated in the future displace no other chat")
  func future() async throws {
    try await ChatFixture.run { fixture in
      // Before the first message, because its function would learn where the index is.
      fixture.providers.breakDown("/chat-messages", .success(OutboundResponse(status: 503)))
      let now = fixture.suite.clock.now.microseconds
      for number in 0..<50 {
        try await fixture.put(
          "chats/future\(number)",
          [
            "members": .value(["tina", "carl"]), "isGroupChat": false,
            "lastMessageTimestamp": .value(
              Timestamp(microseconds: now + 86_400_000_000 + 1_000_000 * Int64(number + 1))
            ),
          ]
        )
      }
      // A clock that is a little ahead is believed.
      for (chat, hours) in [("c1", 0), ("ahead", 23)] as [(String, Int64)] {
        try await fixture.put(
          "chats/\(chat)",
          [
            "members": .value(["tina", "carl"]), "isGroupChat": false,
            "lastMessageTimestamp": .value(Timestamp(microseconds: now + hours * 3_600_000_000)),
          ]
        )
        try await fixture.write("m-\(chat)", "My knee is sore", in: chat)
      }
      let reply = try await fixture.search("knee", as: "tina")

      #expect(reply.model == "recent-messages")
      #expect(Set(reply.results.map(\.messageId)) == ["m-c1", "m-ahead"])
    }
  }
}
