import FirestoreClient
import Foundation
import FunctionsTesting
import Synchronization
@testable import PsstFunctions
import PsstModels
import PsstServices
import Testing

/// Sign-up, sign-in and the end of sessions, as the app does them.
@Suite("Authentication service")
struct AuthenticationServiceTests {
  @Test("A sign-up makes the account and the user document, and the user is signed in")
  func signUp() async throws {
    try await AuthenticationFixture.run { fixture in
      let session = try await fixture.signUp("Tina@E.example", name: "  Tina ")
      #expect(fixture.service.currentUser == session)
      let user = try #require(try await fixture.user(session.uid))
      #expect(user.displayName == "Tina")
      #expect(user.email == "tina@e.example")
      #expect(user.role == .trainer)
      #expect(try await fixture.suite.users.user(session.uid)?.displayName == "Tina")
      try await fixture.suite.settle()
      #expect(try await fixture.suite.users.user(session.uid) != nil, "a complete one stays")
    }
  }

  @Test(
    "What a sign-up lacks is said in the app's texts, and nothing is made",
    arguments: [
      ("t@e.example", "secret1", "", UserRole.client, "Display name is required"),
      ("t@e.example", "secret1", " \n ", .client, "Display name cannot be empty"),
      ("t@e.example", "secret1", "Tina", nil, "Please select your role"),
      ("nowhere", "secret1", "Tina", .client, "Invalid email format"),
      ("", "secret1", "Tina", .client, "Invalid email format"),
      ("t@e.example", "short", "Tina", .client, "Password must be at least 6 characters"),
      ("t@e.example", "", "Tina", .client, "Password must be at least 6 characters"),
      (
        "t@e.example", "secret1", String(repeating: "x", count: 101), .client,
        "Display name must have at most 100 characters"
      ),
    ] as [(String, String, String, UserRole?, String)]
  )
  func invalid(
    email: String,
    password: String,
    name: String,
    role: UserRole?,
    text: String
  ) async throws {
    try await AuthenticationFixture.run { fixture in
      let error = await #expect(throws: AuthenticationError.self) {
        try await fixture.service.signUp(
          email: email,
          password: password,
          displayName: name,
          role: role
        )
      }
      #expect(error?.errorDescription == text)
      let made = try await fixture.suite.users.user(email: "t@e.example")
      #expect(made == nil)
    }
  }

  @Test("A form says what is wrong with all its fields at once, without the server")
  func form() {
    var form = SignUpForm()
    #expect(
      form.errors == [
        .displayName: .emptyDisplayName(isBlank: false), .role: .invalidRole,
        .email: .invalidEmail, .password: .weakPassword,
      ]
    )
    form.displayName = " "
    form.email = "tina@e"
    form.password = "12345"
    form.role = .trainer
    #expect(
      form.errors == [
        .displayName: .emptyDisplayName(isBlank: true), .email: .invalidEmail,
        .password: .weakPassword,
      ]
    )
    form.displayName = String(repeating: "x", count: 101)
    form.email = " Tina@E.example "
    form.password = "123456"
    #expect(form.errors == [.displayName: .displayNameTooLong])
    form.displayName = "Tina"
    #expect(form.errors.isEmpty)
  }

  @Test("A sign-up returns the user as others see them")
  func signedUpUser() async throws {
    try await AuthenticationFixture.run { fixture in
      let user = try await fixture.service.signUp(
        email: " Tina@E.example ",
        password: "secret1",
        displayName: " Tina ",
        role: .client
      )
      #expect(fixture.service.currentUser?.uid == user.id)
      #expect((user.displayName, user.email) == ("Tina", "tina@e.example"))
      let stored = try #require(try await fixture.user(user.id))
      #expect((stored.role, stored.createdAt) == (user.role, user.createdAt))
    }
  }

  @Test(
    "A taken address is refused, whoever knows its password",
    arguments: ["secret1", "other12"]
  )
  func taken(password: String) async throws {
    try await AuthenticationFixture.run { fixture in
      let first = try await fixture.signUp()
      fixture.service.signOut()
      let error = await #expect(throws: AuthenticationError.self) {
        try await fixture.signUp(password: password, name: "Eve")
      }
      #expect(error == .emailAlreadyInUse)
      #expect(error?.errorDescription == "This email is already in use")
      #expect(fixture.service.currentUser == nil)
      #expect(try await fixture.user(first.uid)?.displayName == "Tina")
    }
  }

  @Test("A document that the database refuses takes its account along")
  func refusedDocument() async throws {
    try await AuthenticationFixture.run { fixture in
      try fixture.suite.loadRules(
        "service cloud.firestore { match /databases/{d}/documents { match /none/{x} { allow get; } } }"
      )
      let error = await #expect(throws: AuthenticationError.self) { try await fixture.signUp() }
      guard case .refused = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(try await fixture.suite.users.user(email: "tina@e.example") == nil)
      #expect(fixture.service.currentUser == nil)
    }
  }

  @Test("A document whose confirmation is lost counts as made")
  func unheardDocument() async throws {
    try await AuthenticationFixture.run { fixture in
      fixture.commits.decide { $0 == 1 ? .unheard : .none() }
      let session = try await fixture.signUp()
      #expect(try await fixture.user(session.uid) != nil)
      #expect(fixture.service.currentUser == session)
    }
  }

  @Test("A sign-up that ends between account and document is completed when it is repeated")
  func repeated() async throws {
    try await AuthenticationFixture.run { fixture in
      fixture.commits.decide { _ in .refused }
      let error = await #expect(throws: AuthenticationError.self) { try await fixture.signUp() }
      #expect(error == .networkError)
      let account = try #require(try await fixture.suite.users.user(email: "tina@e.example"))
      #expect(try await fixture.user(account.uid) == nil)
      #expect(fixture.service.currentUser == nil)

      fixture.commits.decide(nil)
      let session = try await fixture.signUp()
      #expect(session.uid == account.uid)
      #expect(try await fixture.user(session.uid)?.displayName == "Tina")
      try await fixture.suite.settle()
      #expect(try await fixture.suite.users.user(session.uid) != nil)
    }
  }

  @Test("A sign-up whose response is lost is completed when it is repeated")
  func lostResponse() async throws {
    try await AuthenticationFixture.run { fixture in
      fixture.line.breaks.withLock { $0 = (0, losesResponse: true) }
      await #expect(throws: AuthenticationError.networkError) { try await fixture.signUp() }
      let session = try await fixture.signUp()
      #expect(try await fixture.user(session.uid) != nil)
    }
  }

  @Test("A sign-up that nobody completes leaves nothing after an hour")
  func abandoned() async throws {
    try await AuthenticationFixture.run { fixture in
      fixture.commits.decide { _ in .refused }
      await #expect(throws: AuthenticationError.networkError) { try await fixture.signUp() }
      try await fixture.suite.clock.advance(by: .seconds(3500))
      try await fixture.removeUnfinished()
      #expect(try await fixture.suite.users.user(email: "tina@e.example") != nil)

      try await fixture.suite.clock.advance(by: .seconds(200))
      try await fixture.removeUnfinished()
      #expect(try await fixture.suite.users.user(email: "tina@e.example") == nil)
      #expect(try await fixture.suite.firestore.collection("signUps").get().map(\.id) == [])
      fixture.commits.decide(nil)
      #expect(try await fixture.user(try await fixture.signUp().uid) != nil)
    }
  }

  @Test("Accounts that the app did not make, that have claims or a document, are left alone")
  func others() async throws {
    try await AuthenticationFixture.run { fixture in
      let suite = fixture.suite
      let made = try await suite.users.createUser(
        email: "made@e.example",
        password: "secret1",
        displayName: "Made by an administrator"
      )
      let plain = try await suite.signUp(email: "plain@e.example")
      let anonymous = try await suite.signUp()
      let complete = try await fixture.signUp()
      let admin = try await suite.signUp(email: "ada@e.example", displayName: "Ada")
      try await suite.users.setCustomClaims(["admin": .boolean(true)], of: admin.uid)
      let gone = try await suite.signUp(email: "gone@e.example", displayName: "Gone")
      try await suite.users.deleteUser(gone.uid)
      let left = try await suite.signUp(email: "left@e.example", displayName: "Left")

      try await suite.clock.advance(by: .seconds(7200))
      try await fixture.removeUnfinished()
      for uid in [made, plain.uid, anonymous.uid, complete.uid, admin.uid] {
        #expect(try await suite.users.user(uid) != nil)
      }
      #expect(try await suite.users.user(left.uid) == nil)
      #expect(try await suite.firestore.collection("signUps").get().map(\.id) == [])
    }
  }

  @Test(
    "A blank name is refused by the backend, whatever the app checks",
    arguments: ["  ", "\u{200B}", "\u{3164}"]
  )
  func blankName(name: String) async throws {
    try await AuthenticationFixture.run { fixture in
      let error = await #expect(throws: FunctionsTestingError.self) {
        try await fixture.suite.signUp(email: "t@e.example", displayName: name)
      }
      #expect(error?.message.contains("Display name cannot be empty") == true)
    }
  }

  @Test("A user signs out and in again, and a wrong password does not sign in")
  func signIn() async throws {
    try await AuthenticationFixture.run { fixture in
      let session = try await fixture.signUp()
      fixture.service.signOut()
      #expect(fixture.service.currentUser == nil)
      await #expect(throws: AuthenticationError.notAuthenticated) {
        try await fixture.service.idToken()
      }
      for (email, password) in [("tina@e.example", "wrong12"), ("none@e.example", "secret1")] {
        let error = await #expect(throws: AuthenticationError.self) {
          try await fixture.service.signIn(email: email, password: password)
        }
        #expect(error == .wrongCredentials)
      }
      let again = try await fixture.service.signIn(email: "TINA@e.example", password: "secret1")
      #expect(again.uid == session.uid)
      #expect(fixture.service.currentUser == again)
    }
  }

  @Test("A token is renewed before it expires, and a revoked session ends")
  func tokens() async throws {
    try await AuthenticationFixture.run { fixture in
      let session = try await fixture.signUp()
      #expect(try await fixture.service.idToken() == session.idToken)
      try await fixture.suite.clock.advance(by: .seconds(3400))
      let fresh = try await fixture.service.idToken()
      #expect(fresh != session.idToken)
      #expect(try await fixture.service.idToken() == fresh)

      try await fixture.suite.users.setDisabled(true, of: session.uid)
      try await fixture.suite.clock.advance(by: .seconds(3600))
      await #expect(throws: AuthenticationError.userDisabled) {
        try await fixture.service.idToken()
      }
      try await fixture.suite.users.deleteUser(session.uid)
      await #expect(throws: AuthenticationError.notAuthenticated) {
        try await fixture.service.idToken()
      }
      #expect(fixture.service.currentUser == nil)
    }
  }

  @Test("A session is told with each change, and can be kept for the next start")
  func keptSession() async throws {
    try await AuthenticationFixture.run { fixture in
      var sessions = fixture.service.observeSession().makeAsyncIterator()
      #expect(await sessions.next() == .some(nil))
      let tina = try await fixture.signUp()
      #expect(await sessions.next() == tina)
      let kept = try JSONEncoder().encode(tina)
      #expect(try JSONDecoder().decode(AuthenticationService.Session.self, from: kept) == tina)

      try await fixture.suite.clock.advance(by: .seconds(3600))
      let token = try await fixture.service.idToken()
      #expect(await sessions.next()??.idToken == token)
      fixture.service.signOut()
      #expect(await sessions.next() == .some(nil))
    }
  }

  @Test("After a sign-out a listener shows nothing more")
  func listenerAfterSignOut() async throws {
    try await AuthenticationFixture.run { fixture in
      let tina = try await fixture.signUp()
      let users = UserService(
        firestore: fixture.suite.firestore.acting(as: try fixture.service.tokens()),
        uid: tina.uid
      )
      var observed = users.observeUser(tina.uid).makeAsyncIterator()
      #expect(try await observed.next()??.displayName == "Tina")
      fixture.service.signOut()
      _ = try await fixture.signUp("eve@e.example", name: "Eve")
      try await fixture.suite.firestore.document("users/\(tina.uid)").update(["displayName": "T"])
      await #expect(throws: UserServiceError.notAuthenticated) { try await observed.next() }
    }
  }

  @Test("Services act with tokens that are renewed, and never with those of the next user")
  func sessionTokens() async throws {
    try await AuthenticationFixture.run { fixture in
      #expect(throws: AuthenticationError.notAuthenticated) { try fixture.service.tokens() }
      let tina = try await fixture.signUp()
      let tokens = try fixture.service.tokens()
      #expect(try await tokens.idToken(replacing: nil) == tina.idToken)
      #expect(try await tokens.idToken(replacing: "older") == tina.idToken)
      // The server's clock is ahead, or it knows that the token was revoked.
      try await fixture.suite.clock.advance(by: .seconds(1))
      let renewed = try await tokens.idToken(replacing: tina.idToken)
      #expect(renewed != tina.idToken)

      try await fixture.suite.clock.advance(by: .seconds(3600))
      fixture.line.breaks.withLock { $0 = (0, losesResponse: false) }
      let error = await #expect(throws: FirestoreError.self) {
        try await tokens.idToken(replacing: nil)
      }
      #expect(error?.code == .unavailable, "a listener waits for the connection")
      #expect(try await tokens.idToken(replacing: nil) != renewed)

      let users = UserService(firestore: fixture.suite.firestore.acting(as: tokens), uid: tina.uid)
      #expect(try await users.getUser(tina.uid).displayName == "Tina")
      fixture.service.signOut()
      _ = try await fixture.signUp("eve@e.example", name: "Eve")
      await #expect(throws: AuthenticationError.notAuthenticated) {
        try await tokens.idToken(replacing: nil)
      }
      await #expect(throws: UserServiceError.notAuthenticated) {
        try await users.updateUser(displayName: "Mallory")
      }
    }
  }

  @Test("A reset of a password does not show who has an account")
  func reset() async throws {
    try await AuthenticationFixture.run { fixture in
      _ = try await fixture.signUp()
      try await fixture.service.resetPassword(email: "tina@e.example")
      try await fixture.service.resetPassword(email: "nobody@e.example")
      await #expect(throws: AuthenticationError.invalidEmail) {
        try await fixture.service.resetPassword(email: "nowhere")
      }
    }
  }
}
