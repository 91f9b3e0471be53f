import FunctionsTesting
import FirestoreClient
import Foundation
import PsstModels
import TestSupport
import Testing

@testable import PsstServices

/// Messages, as apps of several users send and read them under the access rules.
@Suite("Message service", .timeLimit(.minutes(5)))
struct MessageServiceTests {
  private typealias Shown = [ShownMessage]

  /// Runs a test with a chat of Carl and Cora, and a group of Carl, Cora and Tina.
  private static func run(_ test: (PeopleFixture) async throws -> Void) async throws {
    try await PeopleFixture.run { fixture in
      let chats = fixture.suite.firestore.collection("chats")
      try await chats.document("c").set(Chat(id: "c", members: ["carl", "cora"]))
      try await chats.document("g").set(
        Chat(id: "g", members: ["carl", "cora", "tina"], isGroupChat: true)
      )
      try await test(fixture)
    }
  }

  /// Runs the queue of an app for as long as a test needs it.
  private static func sending(
    _ app: AppServices,
    _ test: () async throws -> Void
  ) async rethrows {
    let task = Task { await app.messages.run() }
    defer { task.cancel() }
    try await test()
  }

  /// Waits for the first list of messages that satisfies a condition.
  private static func first(
    _ messages: Updates<Shown>,
    where holds: (Shown) -> Bool
  ) async throws -> Shown {
    for try await shown in messages where holds(shown) { return shown }
    Issue.record("The observation has ended.")
    return []
  }

  private static func say(
    _ id: String,
    _ fixture: PeopleFixture,
    by sender: String = "cora",
    in chat: String = "c",
    readBy: [String] = [],
    minute: Int64 = 0
  ) async throws {
    try await fixture.suite.firestore.document("chats/\(chat)/messages/\(id)").set(
      Message(
        id: id,
        text: "Hi",
        senderID: sender,
        timestamp: Timestamp(microseconds: 1_700_000_000_000_000 + minute * 60_000_000),
        readBy: readBy
      )
    )
  }

  // MARK: Sending

  @Test("A message is shown at once as sending, then as delivered, and reaches the others")
  func send() async throws {
    try await Self.run { fixture in
      let carl = fixture.app("carl")
      var shown = carl.messages.observeMessages(in: "c").makeAsyncIterator()
      #expect(try await shown.next() == [])
      let sent = try await carl.messages.sendMessage("Hello", in: "c")
      let sending = try #require(try await shown.next())
      #expect(sending.map(\.delivery) == [.sending])
      #expect(sending.map(\.message.text) == ["Hello"])

      let cora = fixture.app("cora")
      try await Self.sending(carl) {
        let received = try await Self.first(cora.messages.observeMessages(in: "c")) {
          !$0.isEmpty
        }
        #expect(received.map(\.id) == [sent.id])
        #expect(received.map(\.delivery) == [.delivered])
        var last: Shown = []
        while last.first?.delivery != .delivered { last = try await shown.next() ?? [] }
        #expect(last.map(\.id) == [sent.id])
      }
      let stored = try #require(try await fixture.stored("chats/c/messages/\(sent.id)"))
      #expect(Set(stored.keys) == ["id", "text", "senderID", "timestamp", "readBy"])
    }
  }

  @Test("Messages that wait go together, and each chat keeps their order")
  func together() async throws {
    try await Self.run { fixture in
      let carl = fixture.app("carl")
      for number in 1...45 { try await carl.messages.sendMessage("\(number)", in: "c") }
      fixture.line.decide { _ in .none() }
      try await Self.sending(carl) {
        let shown = try await Self.first(fixture.app("cora").messages.observeMessages(in: "c")) {
          $0.count == 45
        }
        #expect(shown.map(\.message.text) == (1...45).map { "\($0)" })
      }
      #expect(fixture.line.commits == 3)
    }
  }

  @Test("A message is shown without a gap while it goes to the server and back")
  func noGap() async throws {
    try await Self.run { fixture in
      let carl = fixture.app("carl")
      var shown = carl.messages.observeMessages(in: "c").makeAsyncIterator()
      _ = try await shown.next()
      try await Self.sending(carl) {
        for number in 1...20 {
          try await carl.messages.sendMessage("m\(number)", in: "c")
          var last: [ShownMessage] = []
          repeat {
            last = try await shown.next() ?? []
            #expect(last.count >= number - 1)
            let isThere = last.count == number
            if isThere, last.last?.delivery == .delivered { break }
            // Once it is shown, it stays.
            while true {
              last = try await shown.next() ?? []
              if isThere { #expect(last.count == number) }
              if last.last?.delivery == .delivered, last.count == number { break }
            }
          } while last.last?.delivery != .delivered
        }
      }
    }
  }

  @Test("A deleted message that was just sent does not stay on the screen")
  func sentAndDeleted() async throws {
    try await Self.run { fixture in
      let carl = fixture.app("carl")
      try await Self.sending(carl) {
        let sent = try await carl.messages.sendMessage("Oops", in: "c")
        _ = try await Self.first(carl.messages.observeMessages(in: "c")) {
          $0.first?.delivery == .delivered
        }
        try await carl.messages.deleteMessage(sent.id, in: "c")
        let shown = try await Self.first(carl.messages.observeMessages(in: "c")) { _ in true }
        #expect(shown == [])
      }
    }
  }

  @Test("An image has its address, size and dimensions, and needs no text")
  func image() async throws {
    try await Self.run { fixture in
      let carl = fixture.app("carl")
      let media = MessageMedia(
        url: "gs://demo-test.appspot.com/y.jpg",
        size: 1234,
        dimensions: MediaDimensions(width: 640, height: 480.5)
      )
      try await Self.sending(carl) {
        try await carl.messages.sendMessage("", in: "c", media: media)
        let shown = try await Self.first(
          fixture.app("cora").messages.observeMessages(in: "c")
        ) { !$0.isEmpty }
        #expect(shown.first?.message.media == media)
      }
      try await fixture.suite.settle()
      #expect(try await fixture.stored("chats/c")?["lastMessage"] == .string("Photo"))
    }
  }

  @Test("Without a connection messages wait in order, and are sent when it is back")
  func offline() async throws {
    try await Self.run { fixture in
      fixture.line.setOffline(true)
      let carl = fixture.app("carl")
      try await Self.sending(carl) {
        for number in 1...5 { try await carl.messages.sendMessage("m\(number)", in: "c") }
        // Nothing has been read yet, and what waits is shown nevertheless.
        let waiting = try await Self.first(carl.messages.observeMessages(in: "c")) {
          $0.count == 5
        }
        #expect(waiting.allSatisfy { $0.delivery == .sending })
        fixture.line.setOffline(false)
        await carl.messages.retryNow()
        let delivered = try await Self.first(carl.messages.observeMessages(in: "c")) {
          $0.count == 5 && $0.allSatisfy { $0.delivery == .delivered }
        }
        #expect(delivered.map(\.message.text) == (1...5).map { "m\($0)" })
        #expect(delivered.map(\.id) == waiting.map(\.id))
      }
    }
  }

  @Test("A message is sent once, although its confirmations are lost and the app ends")
  func once() async throws {
    try await Self.run { fixture in
      let folder = try TemporaryFolder()
      let queueFolder = URL(filePath: folder.path, directoryHint: .isDirectory)
      fixture.line.decide { _ in .unheard }
      let first = fixture.app("carl", queueFolder: queueFolder)
      let sent = try await first.messages.sendMessage("Hello", in: "c")
      try await Self.sending(first) {
        // The observer of another app sees the message, and the sender's app does not know it.
        _ = try await Self.first(fixture.app("cora").messages.observeMessages(in: "c")) {
          !$0.isEmpty
        }
      }
      fixture.line.decide(nil)
      let second = fixture.app("carl", queueFolder: queueFolder)
      try await Self.sending(second) {
        try await second.messages.sendMessage("World", in: "c")
        // The second message is sent only after the first one is known to be delivered.
        let shown = try await Self.first(fixture.app("cora").messages.observeMessages(in: "c")) {
          $0.count == 2
        }
        #expect(shown.map(\.message.text) == ["Hello", "World"])
        #expect(shown.first?.id == sent.id)
      }
      #expect(try await fixture.ids("chats/c/messages").count == 2)
    }
  }

  @Test("A message that was delivered and deleted elsewhere does not come back")
  func deletedElsewhere() async throws {
    try await Self.run { fixture in
      let carl = fixture.app("carl")
      fixture.line.decide { _ in .unheard }
      var shown = carl.messages.observeMessages(in: "c").makeAsyncIterator()
      let sent = try await carl.messages.sendMessage("Hello", in: "c")
      try await Self.sending(carl) {
        var last: Shown = []
        while last.first?.delivery != .delivered { last = try await shown.next() ?? [] }
        fixture.line.decide(nil)
        try await fixture.app("carl").messages.deleteMessage(sent.id, in: "c")
        // What follows in the same chat shows that the queue has gone on.
        await carl.messages.retryNow()
        try await carl.messages.sendMessage("World", in: "c")
        while last.first?.message.text != "World" || last.first?.delivery != .delivered {
          last = try await shown.next() ?? []
        }
        #expect(last.count == 1)
      }
      let stored = try await fixture.ids("chats/c/messages")
      #expect(stored.count == 1)
    }
  }

  @Test("A chat that one has just left refuses the message, which can be sent again or discarded")
  func refused() async throws {
    try await Self.run { fixture in
      let carl = fixture.app("carl")
      let group = fixture.suite.firestore.document("chats/g")
      var shown = carl.messages.observeMessages(in: "g").makeAsyncIterator()
      _ = try await shown.next()
      try await group.update(["members": .arrayRemove("carl")])
      let first = try await carl.messages.sendMessage("One", in: "g")
      let second = try await carl.messages.sendMessage("Two", in: "g")
      try await Self.sending(carl) {
        // Without access there is nothing to observe, and the app is told so.
        await #expect(throws: MessageError.permissionDenied) {
          while try await shown.next() != nil {}
        }
        try await group.update(["members": .arrayUnion("carl")])
        let failed = try await Self.first(carl.messages.observeMessages(in: "g")) { shown in
          shown.allSatisfy { $0.delivery != .sending } && shown.count == 2
        }
        guard failed.contains(where: { $0.delivery == .failed(.permissionDenied) }) else { return }
        for message in failed where message.delivery == .failed(.permissionDenied) {
          if message.id == first.id {
            try await carl.messages.retry(message.id)
          } else {
            await carl.messages.discard(message.id)
          }
        }
        let last = try await Self.first(carl.messages.observeMessages(in: "g")) { shown in
          shown.allSatisfy { $0.delivery == .delivered }
            && shown.contains { $0.id == first.id }
        }
        #expect(
          last.map(\.id).contains(second.id)
            == failed.contains { $0.id == second.id && $0.delivery == .delivered }
        )
      }
    }
  }

  @Test("A chat that does not exist, or is another's, refuses every message")
  func wrongChat() async throws {
    try await Self.run { fixture in
      let tina = fixture.app("tina")
      try await Self.sending(tina) {
        for chat in ["c", "unknown"] {
          let observed = Task {
            for try await _ in tina.messages.observeMessages(in: chat) {}
          }
          try await tina.messages.sendMessage("Hello", in: chat)
          await #expect(throws: MessageError.permissionDenied) { try await observed.value }
          await #expect(throws: MessageError.permissionDenied) {
            try await tina.messages.fetchMessages(in: chat)
          }
        }
        await #expect(throws: MessageError.chatNotFound) {
          try await tina.messages.sendMessage("Hello", in: "a/b")
        }
      }
      let stored = try await fixture.ids("chats/c/messages")
      #expect(stored.isEmpty)
    }
  }

  @Test(
    "What cannot be sent is refused at once",
    arguments: [
      (String(repeating: "x", count: 10_001), MessageError.tooLong),
      (String(repeating: "👩‍👩‍👧", count: 1251), .tooLong), ("", .empty), (" \n\u{200B}", .empty),
    ]
  )
  func invalid(text: String, error: MessageError) async throws {
    try await Self.run { fixture in
      let messages = fixture.app("carl").messages
      await #expect(throws: error) { try await messages.sendMessage(text, in: "c") }
      await #expect(throws: error) { try await messages.editMessage("m", in: "c", text: text) }
    }
  }

  @Test("The longest text that is taken is one that the rules take")
  func longest() async throws {
    try await Self.run { fixture in
      let carl = fixture.app("carl")
      try await Self.sending(carl) {
        try await carl.messages.sendMessage(String(repeating: "👍", count: 5000), in: "c")
        let shown = try await Self.first(carl.messages.observeMessages(in: "c")) {
          $0.first.map { $0.delivery != .sending } ?? false
        }
        #expect(shown.map(\.delivery) == [.delivered])
      }
    }
  }

  // MARK: Reading

  @Test("The last 100 messages are read, and older ones in pages")
  func pages() async throws {
    try await Self.run { fixture in
      for minute in 0..<250 {
        try await Self.say(
          "m\(String(format: "%03d", minute))",
          fixture,
          // Some have the same time.
          minute: Int64(minute / 3)
        )
      }
      let messages = fixture.app("carl").messages
      var all: [Message] = []
      while true {
        let page = try await messages.fetchMessages(in: "c", before: all.first)
        if page.isEmpty { break }
        all = page + all
      }
      #expect(all.map(\.id) == (0..<250).map { "m\(String(format: "%03d", $0))" })
      let shown = try await Self.first(messages.observeMessages(in: "c")) { !$0.isEmpty }
      #expect(shown.map(\.id) == all.suffix(100).map(\.id))
    }
  }

  @Test("A message that cannot be read hides itself and no other")
  func malformed() async throws {
    try await Self.run { fixture in
      try await Self.say("m1", fixture)
      try await fixture.suite.firestore.document("chats/c/messages/m2").set([
        "text": 7, "senderID": "cora", "timestamp": .serverTimestamp,
      ])
      #expect(try await fixture.app("carl").messages.fetchMessages(in: "c").map(\.id) == ["m1"])
    }
  }

  @Test("Reading is marked for others' messages, once, and shown with names to the sender")
  func receipts() async throws {
    try await Self.run { fixture in
      try await Self.say("m1", fixture, by: "cora", in: "g")
      try await Self.say("m2", fixture, by: "carl", in: "g", minute: 1)
      try await Self.say("m3", fixture, by: "cora", in: "g", readBy: ["tina"], minute: 2)
      let carl = fixture.app("carl").messages
      #expect(try await carl.unreadCount(in: "g") == 2)
      let page = try await carl.fetchMessages(in: "g")
      try await carl.markAsRead(page, in: "g")
      try await carl.markAsRead(page, in: "g")
      #expect(try await carl.unreadCount(in: "g") == 0)
      #expect(try await fixture.app("tina").messages.unreadCount(in: "g") == 2)

      let read = try await carl.fetchMessages(in: "g")
      #expect(read.map(\.readBy) == [["carl"], [], ["tina", "carl"]])
      let chat = try await fixture.app("cora").chats.getChat("g")
      let details = try await fixture.app("cora").messages.readDetails(of: read[0], in: chat)
      #expect(
        details == [
          ReadReceiptDetail(
            id: "carl",
            displayName: "Carl",
            photoURL: "https://psst.app/carl.jpg",
            hasRead: true
          ),
          ReadReceiptDetail(
            id: "tina",
            displayName: "Tina",
            photoURL: "https://psst.app/tina.jpg",
            hasRead: false
          ),
        ]
      )
    }
  }

  @Test("A message that was deleted meanwhile does not keep the others from being read")
  func receiptOfDeleted() async throws {
    try await Self.run { fixture in
      for id in ["m1", "m2", "m3"] { try await Self.say(id, fixture) }
      let carl = fixture.app("carl").messages
      let page = try await carl.fetchMessages(in: "c")
      try await fixture.suite.firestore.document("chats/c/messages/m2").delete()
      try await carl.markAsRead(page, in: "c")
      #expect(try await carl.fetchMessages(in: "c").map(\.readBy) == [["carl"], ["carl"]])
      try await fixture.suite.firestore.document("chats/c").update(["members": ["cora"]])
      try await Self.say("m4", fixture, minute: 3)
      await #expect(throws: MessageError.permissionDenied) {
        try await carl.markAsRead(
          [Message(id: "m4", text: "", senderID: "cora", timestamp: Timestamp(microseconds: 0))],
          in: "c"
        )
      }
    }
  }

  @Test("A message whose readers are malformed keeps no other from being read")
  func malformedReaders() async throws {
    try await Self.run { fixture in
      for (minute, id) in ["m1", "m2", "m3"].enumerated() {
        try await Self.say(id, fixture, minute: Int64(minute))
      }
      try await fixture.suite.firestore.document("chats/c/messages/m2").update(["readBy": "x"])
      let carl = fixture.app("carl").messages
      // As an app that has read the list before it was malformed.
      let page = try await carl.fetchMessages(in: "c").map { message in
        var message = message
        message.readBy = []
        return Message(
          id: message.id,
          text: message.text,
          senderID: message.senderID,
          timestamp: message.timestamp
        )
      }
      try await carl.markAsRead(page, in: "c")
      #expect(try await carl.fetchMessages(in: "c").map(\.readBy) == [["carl"], [], ["carl"]])
      #expect(try await carl.unreadCount(in: "c") == 1)
    }
  }

  @Test("All unread messages of a chat are counted, without reading them")
  func unread() async throws {
    try await Self.run { fixture in
      let messages = fixture.suite.firestore.collection("chats/g/messages")
      for start in stride(from: 0, to: 300, by: 100) {
        var batch = fixture.suite.firestore.batch()
        for number in start..<start + 100 {
          try batch.set(
            messages.document("m\(number)"),
            Message(
              text: "Hi",
              senderID: number % 3 == 0 ? "carl" : "cora",
              timestamp: Timestamp(microseconds: Int64(number)),
              readBy: number % 10 == 0 ? ["tina", "carl"] : number % 2 == 0 ? ["cora"] : []
            )
          )
        }
        try await batch.commit()
      }
      fixture.line.refuseQueries(after: 0)
      // 200 are of Cora, and Carl has read 20 of them.
      #expect(try await fixture.app("carl").messages.unreadCount(in: "g") == 180)
      #expect(try await fixture.app("tina").messages.unreadCount(in: "g") == 270)
      await #expect(throws: MessageError.permissionDenied) {
        try await fixture.app("tom").messages.unreadCount(in: "g")
      }
    }
  }

  @Test("A page without a readable message is not the end")
  func unreadablePage() async throws {
    try await Self.run { fixture in
      try await Self.say("m0", fixture)
      for number in 1...5 {
        try await fixture.suite.firestore.document("chats/c/messages/m\(number)").set([
          "text": 7, "senderID": "cora", "timestamp": .serverTimestamp,
        ])
      }
      let page = try await fixture.app("carl").messages.fetchMessages(in: "c", limit: 2)
      #expect(page.map(\.id) == ["m0"])
    }
  }

  @Test("A message of the far future, which would hide all others, is refused")
  func future() async throws {
    try await Self.run { fixture in
      let now = fixture.suite.clock.now.microseconds
      for (minutes, isAllowed) in [(59, true), (61, false), (4_000_000_000, false)] {
        let fields: [String: FieldValue] = [
          "text": "Hi", "senderID": "carl", "readBy": ["carl"],
          "timestamp": .value(Timestamp(microseconds: now + Int64(minutes) * 60_000_000)),
        ]
        let document = fixture.line.firestore.acting(as: UnsignedTokens(uid: "carl"))
          .document("chats/c/messages/at-\(minutes)")
        if isAllowed {
          try await document.create(fields)
        } else {
          await #expect(throws: FirestoreError.self) { try await document.create(fields) }
        }
      }
    }
  }

  @Test("A sender edits and deletes their own message, and nobody else's")
  func edit() async throws {
    try await Self.run { fixture in
      try await Self.say("m1", fixture, by: "carl")
      let carl = fixture.app("carl").messages
      let cora = fixture.app("cora").messages
      await #expect(throws: MessageError.permissionDenied) {
        try await cora.editMessage("m1", in: "c", text: "Mine")
      }
      await #expect(throws: MessageError.permissionDenied) {
        try await cora.deleteMessage("m1", in: "c")
      }
      try await carl.editMessage("m1", in: "c", text: "Hi there")
      #expect(try await cora.fetchMessages(in: "c").map(\.text) == ["Hi there"])
      try await carl.deleteMessage("m1", in: "c")
      #expect(try await cora.fetchMessages(in: "c") == [])
      // A second tap.
      try await carl.deleteMessage("m1", in: "c")
      await #expect(throws: MessageError.messageNotFound) {
        try await carl.editMessage("m1", in: "c", text: "Hi")
      }
      await #expect(throws: MessageError.permissionDenied) {
        try await fixture.app("tina").messages.deleteMessage("m1", in: "c")
      }
    }
  }
}
