import AuthAccounts
import EventLog
import Events
import Foundation
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Invocation
import Manifests
import StorageEngine
import Synchronization
import Testing
import TestSupport

@testable import AuthEmulator

/// The functions that Auth asks before a user is created or signs in.
@Suite("Blocking functions")
struct BlockingFunctionTests {
  /// Functions with scripted replies, which record what they are asked.
  private final class Scripted: BlockingFunctions {
    let replies: [BlockingEvent: BlockingReply]
    let asked = Mutex<[(BlockingEvent, String)]>([])

    init(_ replies: [BlockingEvent: String], status: Int = 200) {
      self.replies = replies.mapValues { BlockingReply(status: status, body: Array($0.utf8)) }
    }

    func isDeployed(_ event: BlockingEvent) -> Bool { replies[event] != nil }

    func call(_ event: BlockingEvent, body: [UInt8]) async throws -> BlockingReply? {
      let json = try JSONSerialization.jsonObject(with: Data(body)) as? [String: [String: String]]
      asked.withLock { $0.append((event, json?["data"]?["jwt"] ?? "")) }
      return replies[event]
    }

    var events: [BlockingEvent] { asked.withLock { $0.map(\.0) } }
  }

  private static func changes(_ members: String, _ mask: String) -> String {
    #"{"userRecord":{\#(members),"updateMask":"\#(mask)"}}"#
  }

  @Test("Both are asked at a sign-up, and their claims are in the token")
  func signUp() async throws {
    let functions = Scripted([
      .beforeCreate: Self.changes(
        #""customClaims":{"role":"client"},"displayName":"Tina""#,
        "customClaims,displayName"
      ),
      .beforeSignIn: Self.changes(#""sessionClaims":{"fresh":true}"#, "sessionClaims"),
    ])
    let fixture = AuthFixture(blockingFunctions: functions)
    let user = try await fixture.signUp("tina@e.example")
    #expect(functions.events == [.beforeCreate, .beforeSignIn])
    let claims = try AuthFixture.claims(user.text("idToken"))
    #expect(claims["role"] as? String == "client")
    #expect(claims["fresh"] as? Bool == true)
    #expect(claims["name"] as? String == "Tina")
    let stored = try await fixture.store.read { try $0.user(user.text("localId")) }
    #expect(stored?.customAttributes == #"{"role":"client"}"#, "session claims are not stored")
    let payloads = try functions.asked.withLock { try $0.map { try AuthFixture.claims($0.1) } }
    #expect(payloads.map { $0["event_type"] as? String } == ["beforeCreate", "beforeSignIn"])
    #expect(payloads.allSatisfy { $0["sign_in_method"] as? String == "password" })
    let record = payloads[0]["user_record"] as? [String: Any]
    #expect(record?["uid"] as? String == user.text("localId"))
    #expect(record?["email"] as? String == "tina@e.example")
  }

  @Test("Only members in the update mask count")
  func mask() async throws {
    let functions = Scripted([
      .beforeCreate: Self.changes(#""displayName":"Tina","disabled":true"#, "displayName")
    ])
    let user = try await AuthFixture(blockingFunctions: functions).signUp("a@e.example")
    #expect(user.status == 200)
    #expect(user.text("displayName") == "Tina")
  }

  @Test("A refused sign-up leaves no user, no event, and the address free")
  func refusal() async throws {
    let error = #"{"error":{"message":"Not today.","status":"PERMISSION_DENIED"}}"#
    let functions = Scripted([.beforeCreate: error], status: 403)
    let fixture = AuthFixture(blockingFunctions: functions)
    let reply = try await fixture.signUp("a@e.example")
    #expect(reply.status == 400)
    #expect(
      reply.error
        == "BLOCKING_FUNCTION_ERROR_RESPONSE : HTTP Cloud Function returned an error: \(error)"
    )
    #expect(try await fixture.service.countUsers() == 0)
    let records = try await fixture.storage.read {
      try CommitLog.records(after: 0, limit: 10, in: $0)
    }
    #expect(records.isEmpty)
  }

  @Test("A refusal has its status for a client that wants the provider's credential back, too")
  func refusedCredential() async throws {
    let functions = Scripted([.beforeCreate: #"{"error":{}}"#], status: 403)
    let fixture = AuthFixture(blockingFunctions: functions)
    var body = AuthFixture.credential(#"{"sub":"1"}"#)
    body["returnIdpCredential"] = true
    let reply = try await fixture.call("accounts:signInWithIdp", body)
    #expect(reply.status == 400)
    #expect(reply.error?.hasPrefix("BLOCKING_FUNCTION_ERROR_RESPONSE") == true)
  }

  @Test("A refused sign-in returns no tokens, and the new user exists all the same")
  func refusedSignIn() async throws {
    let functions = Scripted([.beforeSignIn: #"{"error":{}}"#], status: 500)
    let fixture = AuthFixture(blockingFunctions: functions)
    let reply = try await fixture.signUp("a@e.example")
    #expect(reply.error?.hasPrefix("BLOCKING_FUNCTION_ERROR_RESPONSE") == true)
    #expect(try await fixture.service.countUsers() == 1)
  }

  @Test("A user whom a function disables is stored, and refused")
  func disabled() async throws {
    let functions = Scripted([.beforeCreate: Self.changes(#""disabled":true"#, "disabled")])
    let fixture = AuthFixture(blockingFunctions: functions)
    let reply = try await fixture.signUp("a@e.example")
    #expect(reply.error == "USER_DISABLED")
    let stored = try await fixture.store.read { try $0.user(with: .email("a@e.example")) }
    #expect(stored?.isDisabled == true)
  }

  @Test("A taken address is refused before any function is asked")
  func taken() async throws {
    let functions = Scripted([.beforeCreate: "{}"])
    let fixture = AuthFixture(blockingFunctions: functions)
    _ = try await fixture.signUp("a@e.example")
    let reply = try await fixture.signUp("a@e.example")
    #expect(reply.error == "EMAIL_EXISTS")
    #expect(functions.events == [.beforeCreate])
  }

  @Test(
    "A reply that is not of the protocol refuses the sign-up",
    arguments: [
      "no JSON", "[]", Self.changes(#""customClaims":{"sub":1}"#, "customClaims"),
      Self.changes(#""customClaims":[1]"#, "customClaims"),
    ]
  )
  func malformed(reply: String) async throws {
    let fixture = AuthFixture(blockingFunctions: Scripted([.beforeCreate: reply]))
    let response = try await fixture.signUp("a@e.example")
    #expect(response.error?.hasPrefix("BLOCKING_FUNCTION_ERROR_RESPONSE : ") == true)
    #expect(try await fixture.service.countUsers() == 0)
  }

  /// An owner of functions that do not run.
  private struct Unserved: FunctionInvoker {
    var kind: InvocationError.Kind

    func invoke(_ request: InvocationRequest) async throws -> Response {
      throw InvocationError(kind, "It is not running.")
    }
  }

  @Test(
    "A function that is deployed and does not run refuses everybody with a 503",
    arguments: [InvocationError.Kind.unserved, .drained],
    [true, false]
  )
  func unserved(kind: InvocationError.Kind, isKnown: Bool) async throws {
    var endpoint = FunctionEndpoint(entryPoint: "guard")
    endpoint.blockingTrigger = .init(eventType: BlockingEvent.beforeCreate.eventType)
    let fixture = AuthFixture(
      blockingFunctions: DeployedBlockingFunctions(invoker: Unserved(kind: kind)) {
        [endpoint] in
        guard isKnown else { throw InvocationError(kind, "It is not known.") }
        return ["guard": endpoint]
      }
    )
    let reply = try await fixture.signUp("a@e.example")
    #expect(reply.status == 503)
    #expect(reply.error?.hasPrefix("UNAVAILABLE : ") == true)
    #expect(try await fixture.service.countUsers() == 0)
  }

  @Test("A password that changes while a function decides ends the sign-in")
  func changedMeanwhile() async throws {
    final class Changing: BlockingFunctions {
      let store = Mutex<AccountStore?>(nil)

      func isDeployed(_ event: BlockingEvent) -> Bool {
        event == .beforeSignIn && store.withLock { $0 != nil }
      }

      func call(_ event: BlockingEvent, body: [UInt8]) async throws -> BlockingReply? {
        try await store.withLock { $0 }?.change { change in
          guard var user = try change.user(with: .email("a@e.example")) else { return }
          user.passwordHash = "another"
          try change.put(user)
        }
        return BlockingReply(status: 200, body: Array("{}".utf8))
      }
    }
    let functions = Changing()
    let fixture = AuthFixture(blockingFunctions: functions)
    _ = try await fixture.signUp("a@e.example")
    functions.store.withLock { $0 = fixture.store }
    let body = ["email": "a@e.example", "password": "secret1"]
    let reply = try await fixture.call("accounts:signInWithPassword", body)
    #expect(reply.error == "TOKEN_EXPIRED")
  }

  @Test("A user who is deleted during the sign-in is not made again without being asked about")
  func deletedMeanwhile() async throws {
    let functions = Scripted([.beforeCreate: #"{"error":{}}"#], status: 403)
    let fixture = AuthFixture(blockingFunctions: functions)
    let request = Request(
      head: HTTPRequest(method: .post, scheme: "http", authority: "a", path: "/")
    )
    let call = try await AuthCall(request, route: AuthRoute(method: "signUp"), isAdmin: false)
    let attempt = SignInAttempt(call, provider: "google.com", method: "google.com")
    let calls = Mutex(0)
    await #expect(throws: AuthError.self) {
      try await fixture.service.signIn(attempt) { _ in
        let isFirst = calls.withLock { count in
          count += 1
          return count == 1
        }
        return (UserAccount(localId: "u"), !isFirst)
      }
    }
    #expect(functions.events == [.beforeCreate])
    #expect(try await fixture.service.countUsers() == 0)
  }

  /// A way to add what signs in to the user of an ID token.
  enum Link: CaseIterable {
    case password, passwordByUpdate, addressByUpdate, provider, emailLink, phone

    func add(to idToken: String, in fixture: AuthFixture) async throws -> AuthFixture.Reply {
      var body: [String: Any] = ["idToken": idToken, "email": "a@e.example"]
      switch self {
      case .password: body["password"] = "secret1"
      case .passwordByUpdate:
        body["password"] = "secret1"
        return try await fixture.call("accounts:update", body)
      case .addressByUpdate: return try await fixture.call("accounts:update", body)
      case .provider:
        body = AuthFixture.credential(#"{"sub":"1"}"#)
        body["idToken"] = idToken
        return try await fixture.call("accounts:signInWithIdp", body)
      case .emailLink:
        let codes = fixture.service.codes
        body["oobCode"] =
          codes.add("EMAIL_SIGNIN", for: nil, email: "a@e.example", newEmail: nil) { $0 }.code
        return try await fixture.call("accounts:signInWithEmailLink", body)
      case .phone:
        let code = fixture.service.codes.addPhoneCode(for: "+15550100")
        body = ["idToken": idToken, "sessionInfo": code.session, "code": code.code]
        return try await fixture.call("accounts:signInWithPhoneNumber", body)
      }
      return try await fixture.call("accounts:signUp", body)
    }
  }

  @Test("An anonymous user becomes a permanent one only if both allow it", arguments: Link.allCases)
  func upgrade(link: Link) async throws {
    let functions = Scripted([
      .beforeCreate: Self.changes(#""displayName":"Tina""#, "displayName"), .beforeSignIn: "{}",
    ])
    let fixture = AuthFixture(blockingFunctions: functions)
    let anonymous = try await fixture.call("accounts:signUp")
    let linked = try await link.add(to: anonymous.text("idToken"), in: fixture)
    #expect(linked.status == 200, "\(linked.body)")
    #expect(functions.events == [.beforeCreate, .beforeSignIn])
    let user = try await fixture.store.read { try $0.user(anonymous.text("localId")) }
    #expect(user?.displayName == "Tina" && user?.isAnonymous == false)
    let records = try await fixture.storage.read {
      try CommitLog.records(after: 0, limit: 10, in: $0)
    }
    #expect(records.count == 1, "the creation of the anonymous user is the only one")
  }

  @Test("A refused upgrade leaves the user anonymous", arguments: Link.allCases)
  func refusedUpgrade(link: Link) async throws {
    let functions = Scripted([.beforeCreate: #"{"error":{}}"#], status: 403)
    let fixture = AuthFixture(blockingFunctions: functions)
    let anonymous = try await fixture.call("accounts:signUp")
    let linked = try await link.add(to: anonymous.text("idToken"), in: fixture)
    #expect(linked.error?.hasPrefix("BLOCKING_FUNCTION_ERROR_RESPONSE") == true)
    let user = try await fixture.store.read { try $0.user(anonymous.text("localId")) }
    #expect(user?.isAnonymous == true)
    #expect(functions.events == [.beforeCreate])
  }

  @Test(
    "A further sign-in method of a permanent user is a sign-in",
    arguments: [Link.password, .passwordByUpdate, .provider, .emailLink]
  )
  func furtherMethod(link: Link) async throws {
    let functions = Scripted([.beforeCreate: "{}", .beforeSignIn: "{}"])
    let fixture = AuthFixture(blockingFunctions: functions)
    let code = fixture.service.codes.addPhoneCode(for: "+15550100")
    let user = try await fixture.call(
      "accounts:signInWithPhoneNumber",
      ["sessionInfo": code.session, "code": code.code]
    )
    #expect(try await link.add(to: user.text("idToken"), in: fixture).status == 200)
    #expect(functions.events == [.beforeCreate, .beforeSignIn, .beforeSignIn])
  }

  @Test("A new password and a new profile of a user who has a password are not asked about")
  func notSignIns() async throws {
    let functions = Scripted([.beforeCreate: "{}", .beforeSignIn: "{}"])
    let fixture = AuthFixture(blockingFunctions: functions)
    let user = try await fixture.signUp("a@e.example")
    for change in ["password": "secret2", "displayName": "Tina"] {
      let body = ["idToken": user.text("idToken"), change.key: change.value]
      #expect(try await fixture.call("accounts:update", body).status == 200)
    }
    #expect(functions.events == [.beforeCreate, .beforeSignIn])
  }

  @Test("Anonymous users, custom tokens and administrators are not asked about")
  func notAsked() async throws {
    let functions = Scripted([.beforeCreate: "{}", .beforeSignIn: "{}"])
    let fixture = AuthFixture(blockingFunctions: functions)
    #expect(try await fixture.call("accounts:signUp").status == 200)
    #expect(
      try await fixture.call("accounts:signInWithCustomToken", ["token": #"{"uid":"u"}"#]).status
        == 200
    )
    #expect(
      try await fixture.call("accounts", ["email": "a@e.example"], asAdmin: true).status == 200
    )
    #expect(functions.events.isEmpty)
  }
}
