import DocumentModel
import FunctionsRuntime
import Identity
import Synchronization
import Testing
import TestSupport

@Suite("Who may call a callable")
struct CallersTests {
  private struct Failure: Error {}

  private static let auditorsOnly = CallableCallers { auth in
    guard auth.uid != "mallory" else { throw Failure() }
    guard auth.uid == "alice" else {
      throw CallableError(
        .permissionDenied,
        "Only auditors may do this.",
        details: ["ask": "alice"]
      )
    }
  }

  private func harness() throws -> HostHarness {
    try HostHarness {
      OnCall<Int, _>("open") { $0.data }
      OnCall<Int, _>("anyone", callers: .anyone) { $0.data }
      OnCall<Int, _>("users", callers: .users) { $0.data }
      OnCall<Int, _>("trainers", callers: .claim("role", "trainer")) { $0.data }
      OnCall<Int, _>("administrators", callers: .claim("admin")) { $0.data }
      OnCall<Int, _>("unproven", callers: .claim("proven", false)) { $0.data }
      OnCall<Int, _>("auditors", callers: Self.auditorsOnly) { $0.data }
      OnStreamingCall<Int, _, Int>("stream", callers: .claim("admin")) { request, _ in
        request.data
      }
    }
  }

  /// The callers, distinguished by their `Authorization` headers.
  private enum Caller: Sendable {
    case nobody
    case owner
    case user(String, claims: MapValue = [:])

    var authorization: String? {
      get throws {
        switch self {
        case .nobody: nil
        case .owner: "Bearer owner"
        case .user(let uid, let claims):
          "Bearer \(try UnsignedTokenIssuer.issue(uid: uid, claims: claims))"
        }
      }
    }
  }

  /// Calls a function; pass `data` that does not decode to make decoding fail.
  private func call(
    _ name: String,
    as caller: Caller,
    data: String = "7",
    of harness: HostHarness
  ) async throws -> HostHarness.Reply {
    try await harness.call(
      name,
      #"{"data":\#(data)}"#,
      authorization: try caller.authorization
    )
  }

  private static func envelope(_ status: String, _ message: String) -> String {
    #"{"error":{"message":"\#(message)","status":"\#(status)"}}"#
  }

  @Test("Whoever a function does not name may call it", arguments: ["open", "anyone"])
  func anyone(name: String) async throws {
    let harness = try harness()
    for caller in [Caller.nobody, .owner, .user("bob")] {
      let reply = try await call(name, as: caller, of: harness)
      #expect(reply.status == 200 && reply.body == #"{"result":7}"#)
    }
  }

  @Test(
    "A function for users refuses unauthenticated callers and the administrator, who has no uid"
  )
  func users() async throws {
    let harness = try harness()
    for caller in [Caller.nobody, .owner] {
      let reply = try await call("users", as: caller, of: harness)
      #expect(reply.status == 401)
      #expect(
        reply.body
          == Self.envelope("UNAUTHENTICATED", "Sign in first: this function needs a user.")
      )
    }
    #expect(try await call("users", as: .user("bob"), of: harness).status == 200)
  }

  @Test(
    "A claim admits users who have it with this very value, and the administrator",
    arguments: [
      ("trainers", ["role": .string("trainer")], nil),
      ("trainers", ["role": .string("client")], "'role' is 'trainer'"),
      ("trainers", ["role": .boolean(true)], "'role' is 'trainer'"),
      ("trainers", [:], "'role' is 'trainer'"),
      ("administrators", ["admin": .boolean(true)], nil),
      ("administrators", ["admin": .boolean(false)], "'admin' is true"),
      ("administrators", ["admin": .string("true")], "'admin' is true"),
      ("administrators", [:], "'admin' is true"),
      ("stream", ["admin": .boolean(true)], nil),
      ("stream", [:], "'admin' is true"),
      ("unproven", ["proven": .boolean(false)], nil),
      ("unproven", [:], "'proven' is false"),
    ] as [(String, MapValue, String?)]
  )
  func claims(name: String, claims: MapValue, needed: String?) async throws {
    let harness = try harness()
    let reply = try await call(name, as: .user("bob", claims: claims), of: harness)
    if let needed {
      #expect(reply.status == 403)
      let message = "This function needs a user whose claim \(needed)."
      #expect(reply.body == Self.envelope("PERMISSION_DENIED", message))
    } else {
      #expect(reply.status == 200, "\(reply.body)")
    }
    #expect(try await call(name, as: .owner, of: harness).status == 200)
    let stranger = try await call(name, as: .nobody, of: harness)
    #expect(stranger.status == 401)
    #expect(stranger.body.contains("Sign in first: this function needs a user."))
  }

  @Test("A closure admits whom it lets pass; its CallableError reaches the client as it is")
  func closure() async throws {
    let harness = try harness()
    #expect(try await call("auditors", as: .user("alice"), of: harness).status == 200)
    for caller in [Caller.nobody, .owner, .user("bob")] {
      let reply = try await call("auditors", as: caller, of: harness)
      #expect(reply.status == 403)
      #expect(
        reply.body == #"{"error":{"details":{"ask":"alice"},"#
          + #""message":"Only auditors may do this.","status":"PERMISSION_DENIED"}}"#
      )
    }
    #expect(harness.log.entries.isEmpty)
  }

  @Test("Any other error of a closure is INTERNAL for the client, and in the log")
  func closureFails() async throws {
    let harness = try harness()
    let reply = try await call("auditors", as: .user("mallory"), of: harness)
    #expect(reply.status == 500)
    #expect(reply.body == Self.envelope("INTERNAL", "INTERNAL"))
    #expect(harness.log.entries(atLeast: .error).map { $0.metadata["error"] } == ["Failure()"])
  }

  @Test("A caller without permission does not learn what is wrong with the data")
  func beforeData() async throws {
    let harness = try harness()
    for (name, status) in [("users", 401), ("trainers", 401), ("auditors", 403)] {
      #expect(try await call(name, as: .nobody, data: "{}", of: harness).status == status)
    }
    #expect(try await call("anyone", as: .nobody, data: "{}", of: harness).status == 400)
  }

  @Test("A direct call is checked too, with a stream as without one, and throws what is thrown")
  func direct() async throws {
    let runs = Mutex(0)
    let audit = OnCall<Int, Void>("audit", callers: Self.auditorsOnly) { _ in
      runs.withLock { $0 += 1 }
    }
    let count = OnStreamingCall<Int, Void, Int>("count", callers: .claim("admin")) { _, _ in
      runs.withLock { $0 += 1 }
    }
    let denied = await #expect(throws: CallableError.self) {
      try await audit.run(CallableRequest(data: 1, auth: .user("bob")))
    }
    #expect(denied?.code == .permissionDenied)
    await #expect(throws: Failure.self) {
      try await audit.run(CallableRequest(data: 1, auth: .user("mallory")))
    }
    let chunks = ChunkCollector<Int>()
    for auth in [CallableAuth.unauthenticated, .user("bob")] {
      await #expect(throws: CallableError.self) {
        try await count.run(CallableRequest(data: 1, auth: auth))
      }
      await #expect(throws: CallableError.self) {
        try await count.run(CallableRequest(data: 1, auth: auth), stream: chunks.stream)
      }
    }
    #expect(runs.withLock { $0 } == 0)

    try await audit.run(CallableRequest(data: 1, auth: .user("alice")))
    try await count.run(CallableRequest(data: 1, auth: .admin))
    try await count.run(
      CallableRequest(data: 1, auth: .user("bob", claims: ["admin": .boolean(true)])),
      stream: chunks.stream
    )
    #expect(runs.withLock { $0 } == 3)
  }
}
