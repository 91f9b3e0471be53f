import FunctionsTesting
import FirestoreClient
import PsstModels
import Synchronization
import Testing

@testable import PsstServices

/// Users' documents, as the app reads and writes them under the access rules.
@Suite("User service")
struct UserServiceTests {
  @Test("A user creates their own document, once, with all fields")
  func create() async throws {
    try await PeopleFixture.run { fixture in
      let users = fixture.app("nina").users
      try await users.createUser(
        id: "nina",
        email: "Nina@psst.app",
        displayName: " Nina ",
        role: .client,
        photoURL: "https://psst.app/nina.jpg"
      )
      let nina = try await users.getUser("nina")
      #expect((nina.id, nina.uid, nina.displayName) == ("nina", "nina", "Nina"))
      #expect((nina.email, nina.role) == ("nina@psst.app", .client))
      #expect(nina.photoURL == "https://psst.app/nina.jpg")
      #expect(nina.createdAt != nil && nina.createdAt == nina.updatedAt)

      await #expect(throws: UserServiceError.documentAlreadyExists) {
        try await users.createUser(
          id: "nina",
          email: "nina@psst.app",
          displayName: "Nina",
          role: .trainer
        )
      }
      #expect(try await fixture.stored("users/nina")?["role"] == .string("client"))
    }
  }

  @Test("Nobody creates another's document, or takes another's address")
  func createAnother() async throws {
    try await PeopleFixture.run { fixture in
      for (id, email) in [("ned", "nina@psst.app"), ("nina", "carl@psst.app"), ("a/b", "a@b.org")] {
        await #expect(throws: UserServiceError.permissionDenied) {
          try await fixture.app("nina").users.createUser(
            id: id,
            email: email,
            displayName: "Nina",
            role: .client
          )
        }
      }
      let stored = try await fixture.stored("users/nina")
      #expect(stored == nil)
    }
  }

  @Test("A malformed address and a blank name are refused before anything is sent")
  func invalid() async throws {
    try await PeopleFixture.run { fixture in
      let users = fixture.app("nina").users
      fixture.line.setOffline(true)
      await #expect(throws: UserServiceError.invalidEmail) {
        try await users.createUser(id: "nina", email: "nina", displayName: "N", role: .client)
      }
      await #expect(throws: UserServiceError.invalidName) {
        try await users.createUser(id: "nina", email: "n@psst.app", displayName: " ", role: .client)
      }
      await #expect(throws: UserServiceError.invalidName) {
        try await users.updateUser(displayName: "\u{200B}")
      }
      await #expect(throws: UserServiceError.invalidEmail) {
        try await users.getUserByEmail("nina@")
      }
      await #expect(throws: UserServiceError.networkError) {
        try await users.getUserByEmail("nina@psst.app")
      }
    }
  }

  @Test("A user is found by an address in any case, and nobody by an address without a user")
  func byEmail() async throws {
    try await PeopleFixture.run { fixture in
      let users = fixture.app("carl").users
      for email in ["tina@psst.app", "TINA@psst.app", " tina@psst.app "] {
        #expect(try await users.getUserByEmail(email)?.id == "tina")
      }
      #expect(try await users.getUserByEmail("nobody@psst.app") == nil)
      // Stored by an app that kept the case.
      try await fixture.suite.firestore.document("users/old").set([
        "displayName": "Old", "email": "Old@Psst.app",
      ])
      #expect(try await users.getUserByEmail("Old@Psst.app")?.id == "old")
    }
  }

  @Test("Of two users with one address, the one who was first is found")
  func sameAddress() async throws {
    try await PeopleFixture.run { fixture in
      try await fixture.suite.clock.advance(by: .seconds(1))
      try await fixture.suite.firestore.document("users/aaa").set([
        "displayName": "Eve", "email": "carl@psst.app",
      ])
      #expect(try await fixture.app("tina").users.getUserByEmail("carl@psst.app")?.id == "carl")
    }
  }

  @Test("An unknown user is an error, and left out of a list")
  func unknown() async throws {
    try await PeopleFixture.run { fixture in
      let users = fixture.app("tina").users
      for id in ["nobody", "", "a/b", String(repeating: "x", count: 2000)] {
        await #expect(throws: UserServiceError.userNotFound) { try await users.getUser(id) }
      }
      let known = try await users.getUsers(["carl", "nobody", "carl", "cora"])
      #expect(known.keys.sorted() == ["carl", "cora"])
      // Who signs up a moment later is found.
      try await fixture.suite.firestore.document("users/nobody").set(["displayName": "Nobody"])
      #expect(try await users.getUser("nobody").displayName == "Nobody")
    }
  }

  @Test("A user changes their name and picture, and nothing else")
  func update() async throws {
    try await PeopleFixture.run { fixture in
      let users = fixture.app("carl").users
      let before = try #require(try await fixture.stored("users/carl"))
      try await users.updateUser(displayName: " Karl ", photoURL: "https://psst.app/k.jpg")
      var carl = try await users.getUser("carl")
      #expect((carl.displayName, carl.photoURL) == ("Karl", "https://psst.app/k.jpg"))
      #expect((carl.role, carl.email) == (.client, "carl@psst.app"))
      try await users.updateUser(photoURL: "")
      carl = try await users.getUser("carl")
      #expect((carl.displayName, carl.photoURL) == ("Karl", nil))
      let after = try #require(try await fixture.stored("users/carl"))
      #expect(Set(before.keys).subtracting(after.keys) == ["photoURL"])

      await #expect(throws: UserServiceError.self) {
        try await fixture.app("nobody").users.updateUser(displayName: "X")
      }
    }
  }

  @Test("A user who was read is not read again for a minute, and their own change counts at once")
  func cache() async throws {
    try await PeopleFixture.run { fixture in
      let time = Mutex(ContinuousClock.now)
      let users = UserService(
        firestore: fixture.line.firestore.acting(as: UnsignedTokens(uid: "tina")),
        uid: "tina",
        now: { time.withLock { $0 } }
      )
      #expect(try await users.getUser("carl").displayName == "Carl")
      try await fixture.suite.firestore.document("users/carl").update(["displayName": "Karl"])
      #expect(try await users.getUser("carl").displayName == "Carl")
      fixture.line.setOffline(true)
      #expect(try await users.getUsers(["carl"])["carl"]?.displayName == "Carl")
      fixture.line.setOffline(false)
      time.withLock { $0 += .seconds(61) }
      #expect(try await users.getUser("carl").displayName == "Karl")

      #expect(try await users.getUser("tina").displayName == "Tina")
      try await users.updateUser(displayName: "Tine")
      #expect(try await users.getUser("tina").displayName == "Tine")
    }
  }

  @Test("A user is observed as they change, and while they do not exist")
  func observe() async throws {
    try await PeopleFixture.run { fixture in
      var observed = fixture.app("tina").users.observeUser("nina").makeAsyncIterator()
      #expect(try await observed.next() == .some(nil))
      try await fixture.suite.firestore.document("users/nina").set(["displayName": "Nina"])
      let nina = try #require(try await observed.next() ?? nil)
      #expect((nina.id, nina.displayName, nina.effectiveRole) == ("nina", "Nina", .trainer))
    }
  }

  @Test("The device's token and the settings are kept in the user's document")
  func notifications() async throws {
    try await PeopleFixture.run { fixture in
      let notifications = fixture.app("carl").notifications
      #expect(try await notifications.settings().messages)
      try await notifications.setToken("token-1")
      #expect(try await fixture.stored("users/carl")?["fcmToken"] == .string("token-1"))
      var settings = NotificationSettings(["reminders": true])
      settings.messages = false
      try await notifications.setSettings(settings)
      #expect(try await notifications.settings() == settings)
      try await notifications.removeToken()
      let stored = try #require(try await fixture.stored("users/carl"))
      #expect(stored["fcmToken"] == nil)
      #expect(
        stored["notificationSettings"]
          == .map(["reminders": .boolean(true), "messages": .boolean(false)])
      )
      for token in ["", String(repeating: "x", count: 5000)] {
        await #expect(throws: UserServiceError.self) { try await notifications.setToken(token) }
      }
      await #expect(throws: UserServiceError.userNotFound) {
        try await fixture.app("nobody").notifications.settings()
      }
    }
  }
}
