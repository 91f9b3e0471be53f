import AuthAccounts
import EventLog
import Events
import Foundation
import StorageEngine
import Testing
import TestSupport

@testable import AuthEmulator

/// The Auth API where its order of steps, its events and its clock matter.
///
/// `Tests/Compatibility/test_auth.py` has the dialogues of real clients.
@Suite("Auth API")
struct AuthServiceTests {
  private let fixture = AuthFixture()

  private func events() async throws -> [String] {
    try await fixture.storage.read { try CommitLog.records(after: 0, limit: 100, in: $0) }
      .flatMap(\.occurrences).compactMap { occurrence in
        if case .event(let event) = occurrence {
          "\(event.type) \(event.subject ?? "")"
        } else {
          nil
        }
      }
  }

  @Test("Functions get the events of sign-ups, and of users whom administrators make one by one")
  func userEvents() async throws {
    let tina = try await fixture.signUp("tina@e.example")
    let made = try await fixture.call("accounts", ["localId": "made"], asAdmin: true)
    #expect(made.text("localId") == "made")
    _ = try await fixture.call("accounts:delete", ["localId": "made"], asAdmin: true)
    let created = "google.firebase.auth.user.v1.created users/"
    #expect(
      try await events() == [
        created + tina.text("localId"), created + "made",
        "google.firebase.auth.user.v1.deleted users/made",
      ]
    )
  }

  @Test("Custom tokens, batches and a reset cause no events")
  func silentChanges() async throws {
    _ = try await fixture.call("accounts:signInWithCustomToken", ["token": #"{"uid":"u"}"#])
    _ = try await fixture.call(
      "accounts:batchCreate",
      ["users": [["localId": "a"], ["localId": "b"]]],
      asAdmin: true
    )
    _ = try await fixture.call(
      "accounts:batchDelete",
      ["localIds": ["a", "u"], "force": true],
      asAdmin: true
    )
    try await fixture.service.removeAll()
    #expect(try await fixture.service.countUsers() == 0)
    #expect(try await events() == [])
  }

  @Test("A token issued in the second of a revocation is valid, one of the second before is not")
  func revocation() async throws {
    let old = try await fixture.signUp("a@e.example")
    fixture.passSeconds(1)
    let body: [String: Any] = ["idToken": old.text("idToken"), "password": "another1"]
    let new = try await fixture.call("accounts:update", body)
    #expect(new.status == 200)
    let refused = try await fixture.call("accounts:lookup", ["idToken": old.text("idToken")])
    #expect(refused.error == "TOKEN_EXPIRED")
    let shown = try await fixture.call("accounts:lookup", ["idToken": new.text("idToken")])
    #expect(shown.status == 200)
  }

  @Test("A batch deletes only disabled users unless it is forced to")
  func batchDelete() async throws {
    _ = try await fixture.call(
      "accounts:batchCreate",
      ["users": [["localId": "a", "disabled": true], ["localId": "b"]]],
      asAdmin: true
    )
    let reply = try await fixture.call(
      "accounts:batchDelete",
      ["localIds": ["a", "b", "none"]],
      asAdmin: true
    )
    let errors = reply.body["errors"] as? [[String: Any]]
    #expect(errors?.map { $0["index"] as? Int } == [1])
    #expect(try await fixture.service.countUsers() == 1)
  }

  @Test(
    "Claims are bounded at a thousand UTF-16 units",
    arguments: [(988, true), (989, false)]
  )
  func claims(length: Int, isAccepted: Bool) throws {
    let text = #"{"claim":""# + String(repeating: "x", count: length) + #""}"#
    if isAccepted {
      try AccountChecks.customClaims(text)
    } else {
      #expect(throws: AuthError("CLAIMS_TOO_LARGE")) { try AccountChecks.customClaims(text) }
    }
  }

  @Test("What another account signs in with cannot be linked, and the error says which it is")
  func conflicts() async throws {
    let fixture = AuthFixture()
    let google = AuthFixture.credential(#"{"sub":"1","email":"a@e.example","email_verified":true}"#)
    let owner = try await fixture.call("accounts:signInWithIdp", google)
    let user = try await fixture.signUp("b@e.example")
    func link(_ method: String, _ body: [String: Any]) async throws -> AuthFixture.Reply {
      let token = ["idToken": user.text("idToken")]
      return try await fixture.call("accounts:\(method)", body.merging(token) { $1 })
    }

    let inUse = try await link("signInWithIdp", google)
    #expect(inUse.status == 400 && inUse.error == "FEDERATED_USER_ID_ALREADY_LINKED")
    let wanted = google.merging(["returnIdpCredential": true]) { $1 }
    let returned = try await link("signInWithIdp", wanted)
    #expect(returned.status == 200 && !returned.text("oauthIdToken").isEmpty)
    #expect(returned.text("errorMessage") == "FEDERATED_USER_ID_ALREADY_LINKED")
    let namesake = AuthFixture.credential(#"{"sub":"2","email":"a@e.example"}"#)
    #expect(try await link("signInWithIdp", namesake).error == "EMAIL_EXISTS")
    let password = ["email": "a@e.example", "password": "secret1"]
    #expect(try await link("signUp", password).error == "EMAIL_EXISTS")
    #expect(try await link("update", password).error == "EMAIL_EXISTS")

    let ownerID = owner.text("localId")
    try await fixture.store.change { change in
      var account = try #require(try change.user(ownerID))
      account.phoneNumber = "+15550100"
      try change.put(account)
    }
    func proof() async throws -> [String: Any] {
      let code = fixture.service.codes.addPhoneCode(for: "+15550100")
      let body = ["sessionInfo": code.session, "code": code.code]
      let reply = try await link("signInWithPhoneNumber", body)
      #expect(reply.status == 200 && reply.text("idToken").isEmpty)
      return ["temporaryProof": reply.text("temporaryProof"), "phoneNumber": "+15550100"]
    }
    #expect(
      try await link("signInWithPhoneNumber", try await proof()).error == "PHONE_NUMBER_EXISTS"
    )
    let signedIn = try await fixture.call("accounts:signInWithPhoneNumber", try await proof())
    #expect(signedIn.text("localId") == ownerID)
  }

  @Test("A user who unlinks the password keeps the address")
  func unlinkedPassword() async throws {
    let fixture = AuthFixture()
    let user = try await fixture.signUp("a@e.example")
    let body: [String: Any] = ["idToken": user.text("idToken"), "deleteProvider": ["password"]]
    let unlinked = try await fixture.call("accounts:update", body)
    #expect(unlinked.text("email") == "a@e.example")
    #expect((unlinked.body["providerUserInfo"] as? [Any])?.isEmpty == true)
    #expect(try await fixture.signUp("a@e.example").error == "EMAIL_EXISTS")
    let password = ["email": "a@e.example", "password": "secret1"]
    let signIn = try await fixture.call("accounts:signInWithPassword", password)
    #expect(signIn.error == "INVALID_PASSWORD")
  }

  @Test("A sign-up that storage refuses gets its status, and leaves the address free")
  func storageFailure() async throws {
    fixture.storage.failCommits(with: StorageError(.full, "The disk is full."))
    let reply = try await fixture.signUp("a@e.example")
    #expect(reply.status == 429)
    #expect(try await fixture.signUp("a@e.example").status == 200)
  }

  @Test("Codes beyond a thousand push out the oldest")
  func codes() {
    let codes = OneTimeCodes()
    let made = (0..<1001).map { number in
      codes.add("PASSWORD_RESET", for: "u", email: "\(number)@e.example", newEmail: nil) { $0 }
    }
    #expect(codes.emailCode(made[0].code) == nil)
    #expect(codes.emailCode(made[1].code)?.email == "1@e.example")
  }

  @Test("A code is used once, and can be used again after a failure")
  func usedOnce() async throws {
    struct Failure: Error {}
    let codes = OneTimeCodes()
    let code = codes.add("VERIFY_EMAIL", for: "u", email: "a@e.example", newEmail: nil) { $0 }
    await #expect(throws: Failure.self) {
      try await codes.using(emailCode: code) { throw Failure() }
    }
    try await codes.using(emailCode: code) {}
    await #expect(throws: AuthError("INVALID_OOB_CODE")) {
      try await codes.using(emailCode: code) {}
    }
  }

  @Test("A time that no calendar has does not end the service")
  func hugeTimes() async throws {
    _ = try await fixture.call("accounts", ["localId": "a"], asAdmin: true)
    for (name, time) in [
      ("createdAt", "9000000000000000000"), ("createdAt", "-62135596800000000"),
      ("lastLoginAt", "9223372036854775807"), ("validSince", "253402300800"),
    ] {
      let body = ["localId": "a", name: time]
      let reply = try await fixture.call("accounts:update", body, asAdmin: true)
      #expect(reply.error?.hasPrefix("INVALID_TIME") == true)
    }
    let uploaded: [String: Any] = ["users": [["localId": "b", "createdAt": "9223372036854775807"]]]
    let reply = try await fixture.call("accounts:batchCreate", uploaded, asAdmin: true)
    #expect((reply.body["error"] as? [Any])?.count == 1)
    #expect(
      try await fixture.call("accounts:delete", ["localId": "a"], asAdmin: true).status == 200
    )
  }

  @Test("A batch of a hundred values for each of its users is read, one of more is refused")
  func batchValues() async throws {
    // The other five are the object, its list, the user, the id and the list of numbers.
    for (numbers, isRead) in [(99_995, true), (99_996, false)] {
      let user: [String: Any] = ["localId": "a", "unknown": Array(repeating: 0, count: numbers)]
      let reply = try await fixture.call("accounts:batchCreate", ["users": [user]], asAdmin: true)

      #expect((reply.status == 200) == isRead)
      #expect((reply.error?.contains("a value beyond the 100000") == true) == !isRead)
    }
  }

  @Test("A refresh token does not revive with a new user of the same id")
  func revival() async throws {
    let tina = try await fixture.signUp("a@e.example")
    let id = tina.text("localId")
    _ = try await fixture.call("accounts:delete", ["localId": id], asAdmin: true)
    fixture.passSeconds(1)
    _ = try await fixture.call("accounts", ["localId": id], asAdmin: true)
    await #expect(throws: AuthError("USER_NOT_FOUND")) {
      try await fixture.service.tokens.redeem(tina.text("refreshToken"))
    }
  }
}
