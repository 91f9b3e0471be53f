import DocumentModel
import EventLog
import Events
import Logging
import StorageEngine
import Testing
import TestSupport

@testable import AuthAccounts

/// The users of a project in storage.
@Suite("Account store")
struct AccountStoreTests {
  private let storage: FaultyStorage
  private let store: AccountStore

  init() {
    storage = FaultyStorage()
    store = AccountStore(
      storage: storage,
      tailer: EventTailer(
        storage: storage,
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
      ),
      project: "demo-test",
      now: { Timestamp(microseconds: 1_000_000) }
    )
  }

  private func user(_ id: String, email: String? = nil, phone: String? = nil) -> UserAccount {
    var user = UserAccount(localId: id)
    user.email = email
    user.phoneNumber = phone
    return user
  }

  private func owner(_ identity: AccountIdentity) async throws -> String? {
    try await store.read { try $0.user(with: identity)?.localId }
  }

  @Test("A user is found by id, address, telephone number and account at a provider")
  func look() async throws {
    var user = user("a", email: "a@e.example", phone: "+1555")
    user.providerUserInfo = [ProviderAccount(providerId: "google.com", rawId: "g1")]
    let made = user
    try await store.change { try $0.put(made) }

    for identity in [
      AccountIdentity.email("a@e.example"), .phoneNumber("+1555"),
      .provider("google.com", rawID: "g1"),
    ] {
      #expect(try await owner(identity) == "a")
    }
    #expect(try await owner(.provider("apple.com", rawID: "g1")) == nil)
    #expect(try await store.read { try $0.count() } == 1)
  }

  // change A            | change B
  // --------------------+--------------------
  // reads the settings  |
  //                     | sets one of them
  // sets the other      |
  @Test("A change that depends on the settings runs again if they have changed")
  func settings() async throws {
    storage.overtakeNextCommit { [store] in
      try await store.change { change in
        var settings = try change.settings
        settings.signIn.allowDuplicateEmails = true
        change.set(settings)
      }
    }
    try await store.change { change in
      var settings = try change.settings
      settings.emailPrivacyConfig.enableImprovedEmailPrivacy = true
      change.set(settings)
    }

    let settings = try await store.read { try $0.settings() }
    #expect(settings.hidesAccounts)
    #expect(!settings.hasOneAccountPerEmail)
  }

  @Test("An identity that a user gives up or that is deleted is free for another")
  func release() async throws {
    let (first, second) = (user("a", email: "x@e.example"), user("b", email: "x@e.example"))
    try await store.change { try $0.put(first) }
    await #expect(throws: AuthError("EMAIL_EXISTS")) {
      try await store.change { try $0.put(second) }
    }
    let renamed = user("a", email: "y@e.example")
    try await store.change { try $0.put(renamed) }
    try await store.change { try $0.put(second) }
    #expect(try await owner(.email("x@e.example")) == "b")
    try await store.change { try $0.delete(second) }
    #expect(try await owner(.email("x@e.example")) == nil)
    #expect(try await owner(.email("y@e.example")) == "a")
  }

  @Test("Two users exchange their addresses in one change")
  func exchange() async throws {
    let before = [user("a", email: "a@e.example"), user("b", email: "b@e.example")]
    try await store.change { change in for user in before { try change.put(user) } }
    let freed = user("a")
    let after = [user("b", email: "a@e.example"), user("a", email: "b@e.example")]
    try await store.change { change in
      try change.put(freed)
      for user in after { try change.put(user) }
    }
    #expect(try await owner(.email("a@e.example")) == "b")
    #expect(try await owner(.email("b@e.example")) == "a")
  }

  @Test("Of concurrent changes that take one address, one succeeds", .timeLimit(.minutes(5)))
  func concurrent() async throws {
    let results = try await withThrowingTaskGroup(of: Bool.self) { group in
      for index in 0..<50 {
        let user = user("u\(index)", email: "one@e.example")
        group.addTask { [store] in
          do {
            try await store.change { change in
              try require(
                try change.user(with: .email("one@e.example")) == nil,
                "EMAIL_EXISTS"
              )
              try change.put(user)
            }
            return true
          } catch is AuthError {
            return false
          }
        }
      }
      return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(results == 1)
    #expect(try await store.read { try $0.count() } == 1)
  }

  @Test("A change that storage refuses leaves no part of a user")
  func refused() async throws {
    storage.failCommits(with: StorageError(.full, "full"))
    let user = user("a", email: "a@e.example")
    await #expect(throws: StorageError.self) { try await store.change { try $0.put(user) } }
    #expect(try await store.read { try $0.count() } == 0)
    #expect(try await owner(.email("a@e.example")) == nil)
  }

  @Test("A user and the event of the creation are in one commit")
  func event() async throws {
    let user = user("a", email: "a@e.example")
    try await store.change { try $0.put(user, event: .created) }
    try await store.change { try $0.delete(user, event: .deleted) }
    let records = try await storage.read { try CommitLog.records(after: 0, limit: 10, in: $0) }
    let events = records.flatMap(\.occurrences).compactMap { occurrence -> CloudEvent? in
      if case .event(let event) = occurrence { event } else { nil }
    }
    #expect(
      events.map(\.type) == [
        "google.firebase.auth.user.v1.created", "google.firebase.auth.user.v1.deleted",
      ]
    )
    #expect(events.map(\.subject) == ["users/a", "users/a"])
    #expect(storage.commitsSubmitted == 2)
  }

  @Test("Pages follow the order of ids and begin after a given id")
  func pages() async throws {
    let users = ["c", "a", "b", "aa"].map { user($0) }
    try await store.change { change in for user in users { try change.put(user) } }
    let all = try await store.read { view in
      var ids: [String] = []
      try view.users { user in
        ids.append(user.localId)
        return true
      }
      return ids
    }
    #expect(all == ["a", "aa", "b", "c"])
    let rest = try await store.read { view in
      var ids: [String] = []
      try view.users(after: "a") { user in
        ids.append(user.localId)
        return ids.count < 2
      }
      return ids
    }
    #expect(rest == ["aa", "b"])
  }

  @Test("A preview changes nothing")
  func preview() async throws {
    let user = user("a")
    let id = try await store.preview { change in
      try change.put(user)
      return try change.user("a")?.localId
    }
    #expect(id == "a")
    #expect(try await store.read { try $0.count() } == 0)
  }

  @Test(
    "The secret of refresh tokens is made once, however many ask for it",
    .timeLimit(.minutes(5))
  )
  func secret() async throws {
    let secrets = try await withThrowingTaskGroup(of: [UInt8].self) { group in
      for _ in 0..<20 { group.addTask { [store] in try await store.tokenSecret() } }
      return try await group.reduce(into: Set<[UInt8]>()) { $0.insert($1) }
    }
    #expect(secrets.count == 1)
  }
}

@Suite("Password hashes")
struct PasswordHashTests {
  private func account(_ hashed: PasswordHash.Hashed) -> UserAccount {
    var account = UserAccount(localId: "a")
    (account.passwordHash, account.salt) = (hashed.hash, hashed.salt)
    return account
  }

  @Test("Only the password itself matches its hash")
  func match() throws {
    let account = account(try PasswordHash.make("sésame"))
    #expect(try PasswordHash.matches("sésame", account))
    #expect(try !PasswordHash.matches("sesame", account))
    #expect(try !PasswordHash.matches("", account))
    #expect(account.passwordHash?.contains("same") == false)
  }

  @Test("Equal passwords of two users have different hashes")
  func salt() throws {
    #expect(try PasswordHash.make("secret1").hash != PasswordHash.make("secret1").hash)
  }

  @Test("A hash is scrypt's, so that stored and exported ones stay valid")
  func knownHash() throws {
    let hash = "scrypt:1024:8:1:3cszNnpMi8DjM/FQaURQP+hiD8h0VTT/FYtk8YDZg9o="
    let salt = "abcdefghij0123456789"

    #expect(try PasswordHash.make("secret1", salt: salt).hash == hash)
    #expect(try PasswordHash.matches("secret1", account(.init(hash: hash, salt: salt))))
  }

  @Test("A hash of Firebase's emulator matches its password")
  func emulatorHash() throws {
    let account = account(
      .init(hash: "fakeHash:salt=fakeSaltAbc:password=secret1", salt: "fakeSaltAbc")
    )
    #expect(try PasswordHash.matches("secret1", account))
    #expect(try !PasswordHash.matches("secret2", account))
  }

  @Test("An account without a password matches none")
  func missing() throws {
    #expect(try !PasswordHash.matches("", UserAccount(localId: "a")))
  }
}
