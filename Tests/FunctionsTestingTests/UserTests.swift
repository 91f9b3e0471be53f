import FunctionsRuntime
import FunctionsTesting
import Synchronization
import TestSupport
import Testing

/// Users of a suite: sign-up, events, decisions and administration, all in this process.
@Suite("Users")
struct UserTests {
  /// The users that functions have seen, in order.
  private final class Seen: Sendable {
    let users = Mutex<[String]>([])

    func note(_ text: String) { users.withLock { $0.append(text) } }
    var all: [String] { users.withLock { $0 } }
  }

  /// An app needs at least one function.
  private let idle = OnUserDeleted("idle") { _ in }

  @Test("Functions run after a user is created and after it is deleted")
  func events() async throws {
    let seen = Seen()
    let created = OnUserCreated("created") { event in
      seen.note("created \(event.user.email ?? "-") \(event.user.displayName ?? "-")")
      #expect(event.user.creationTime != nil)
      #expect(event.user.providers.map(\.id) == ["password"])
    }
    let deleted = OnUserDeleted("deleted") { seen.note("deleted \($0.user.email ?? "-")") }
    try await withFunctions(created, deleted) { suite in
      let user = try await suite.signUp(email: "Tina@e.example", displayName: "Tina")
      try await suite.settle()
      try await suite.users.deleteUser(user.uid)
      try await suite.settle()
      #expect(suite.runCount(of: created) == 1)
    }
    #expect(seen.all == ["created tina@e.example Tina", "deleted tina@e.example"])
  }

  @Test("A function decides on sign-ups, and its claims are in the tokens that callables see")
  func decisions() async throws {
    let check = BeforeUserCreated("check") { event in
      guard event.user.email?.hasSuffix("@e.example") == true else {
        throw CallableError(.permissionDenied, "Not from here.")
      }
      #expect(event.method == "password")
      return UserChanges(customClaims: ["role": .string("client")])
    }
    let signIn = BeforeUserSignedIn("signIn") { _ in
      UserChanges(sessionClaims: ["fresh": .boolean(true)])
    }
    let role = OnCall<FirestoreValue, FirestoreValue>("role", callers: .users) { request in
      guard case .user(let user) = request.auth else { return .null }
      return .array([user.claims["role"] ?? .null, user.claims["fresh"] ?? .null])
    }
    try await withFunctions(check, signIn, role) { suite in
      let user = try await suite.signUp(email: "tina@e.example")
      let reply = try await suite.call(role, FirestoreValue.null, as: user.token)
      #expect(reply == .array([.string("client"), .boolean(true)]))
      let error = await #expect(throws: FunctionsTestingError.self) {
        try await suite.signUp(email: "eve@evil.example")
      }
      #expect(error?.kind == .authRefused)
      #expect(error?.message.contains("Not from here.") == true)
      #expect(try await suite.users.user(email: "eve@evil.example") == nil)
    }
  }

  @Test("A handler of a decision can be run directly")
  func direct() async throws {
    let check = BeforeUserCreated("check") { event in
      UserChanges(displayName: event.user.displayName?.uppercased())
    }
    let event = BlockingEvent(user: UserRecord(uid: "u", displayName: "tina"))
    #expect(try await check.run(event) == UserChanges(displayName: "TINA"))
  }

  @Test("An administrator creates, changes, reads and deletes users from a function's side")
  func administration() async throws {
    try await withFunctions(idle) { suite in
      let users = suite.users
      let uid = try await users.createUser(email: "tina@e.example", displayName: "Tina")
      try await users.setCustomClaims(["level": .integer(3)], of: uid)
      let tina = try #require(try await users.user(uid))
      #expect(tina.email == "tina@e.example")
      #expect(tina.customClaims == ["level": .integer(3)])
      let taken = await #expect(throws: AuthAdminError.self) {
        try await users.createUser(email: "tina@e.example")
      }
      #expect(taken?.code == "EMAIL_EXISTS")
      try await users.setDisabled(true, of: uid)
      #expect(try await users.user(email: "tina@e.example")?.isDisabled == true)
      try await users.deleteUser(uid)
      let gone = await #expect(throws: AuthAdminError.self) { try await users.deleteUser(uid) }
      #expect(gone?.code == "USER_NOT_FOUND")
    }
  }

  @Test("Sessions are ended by the suite's time, also when it is ahead of the machine's")
  func revocation() async throws {
    let start = Timestamp(microseconds: 4_102_444_800_000_000)
    try await withFunctions(idle, startTime: start) { suite in
      let user = try await suite.signUp(email: "tina@e.example")
      try await suite.clock.advance(by: .seconds(60))
      try await suite.users.revokeRefreshTokens(of: user.uid)
      let renewal = try await suite.http.send(
        OutboundRequest(
          method: "POST",
          url: "http://auth.test/securetoken.googleapis.com/v1/token?key=test",
          headers: ["content-type": "application/x-www-form-urlencoded"],
          body: Array("grant_type=refresh_token&refresh_token=\(user.refreshToken)".utf8)
        )
      )
      #expect(renewal.text.contains("TOKEN_EXPIRED"), "\(renewal.text)")
    }
  }

  @Test("Rules see the user of a token that the suite's Auth has issued")
  func rules() async throws {
    try await withFunctions(idle) { suite in
      try suite.loadRules(
        SampleRules.documents(
          """
          match /users/{uid} {
            allow write: if request.auth.uid == uid && request.auth.token.email == 't@e.example';
          }
          """
        )
      )
      let tina = try await suite.signUp(email: "t@e.example")
      let other = try await suite.signUp(email: "o@e.example")
      let path = "users/\(tina.uid)"
      try await suite.firestore(as: tina.token).document(path).set(["a": 1])
      await #expect(throws: FirestoreError.self) {
        try await suite.firestore(as: other.token).document(path).set(["a": 2])
      }
    }
  }

  @Test("An app with two functions for one decision is refused")
  func twice() async throws {
    let first = BeforeUserCreated("first") { _ in nil }
    let second = BeforeUserCreated("second") { _ in nil }
    let error = await #expect(throws: FunctionsTestingError.self) {
      try await withFunctions(first, second) { _ in }
    }
    #expect(error?.kind == .invalidFunctions)
  }
}
