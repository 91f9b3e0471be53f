import DocumentModel
import FunctionsRuntime
import HTTPMessages
import HTTPTypes
import Identity
import Invocation
import Manifests
import NIOCore
import StatusCodes
import Testing
import TestSupport

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

@Suite("Callable protocol")
struct CallableProtocolTests {
  struct Prompt: Codable, Sendable {
    var text: String
    var limit: Int?
    var inner: Inner?

    struct Inner: Codable, Sendable {
      var numbers: [Int]
    }
  }

  struct Options: Codable, Sendable {
    var limit: Int?
  }

  struct Failure: Error {}

  private func harness(mode: CredentialReader.Mode = .emulator) throws -> HostHarness {
    try HostHarness(mode: mode) {
      OnCall<FirestoreValue, _>("echo") { $0.data }
      OnCall<Prompt, _>("text") { "\($0.data.text):\($0.data.limit ?? -1)" }
      OnCall<FirestoreValue, _>("whoAmI") { try $0.requireUser() }
      OnCall<FirestoreValue, _>("admin", callers: .claim("admin")) { _ in true }
      OnCall<Prompt, _>("users", callers: .users) { $0.data.text }
      OnCall<Options, _>("options") { $0.data.limit ?? -1 }
      OnCall<FirestoreValue, String>("auth") { request in
        switch request.auth {
        case .unauthenticated: "nobody"
        case .user(let user): "user \(user.uid)"
        case .admin: "admin"
        }
      }
      OnCall<FirestoreValue?, _>("nothing") { _ in }
      OnCall<String, _>("fails") { request -> Bool in
        guard let code = StatusCode(name: request.data) else { throw Failure() }
        throw CallableError(code, "as asked", details: ["big": Int64.max, "small": 1])
      }
      OnCall<FirestoreValue, _>("infinite") { _ in Double.infinity }
      OnCall<FirestoreValue, _>("large") { _ in [Int64.max, -9_007_199_254_740_991, .min] }
      OnCall<Date, _>("date") { $0.data.addingTimeInterval(1) }
      OnCall<Date, _>("isoDate", options: .init(dates: .rfc3339)) {
        $0.data.addingTimeInterval(1)
      }
      OnCall<UInt64, _>("unsigned") { $0.data }
    }
  }

  @Test("Who may not call is refused before the data is looked at")
  func callersFirst() async throws {
    let harness = try harness()

    let stranger = try await harness.call("users", #"{"data":{}}"#)
    #expect(stranger.status == 401)
    #expect(stranger.body.contains("UNAUTHENTICATED"))
    let administrator = try await harness.call(
      "users",
      #"{"data":{}}"#,
      authorization: "Bearer owner"
    )
    #expect(administrator.status == 401)
  }

  @Test("Null counts as an object without keys, unless the payload takes null itself")
  func nullData() async throws {
    let harness = try harness()

    #expect(try await harness.call("options", #"{"data":null}"#).body == #"{"result":-1}"#)
    #expect(try await harness.call("echo", #"{"data":null}"#).body == #"{"result":null}"#)
    let missing = try await harness.call("text", #"{"data":null}"#)
    #expect(missing.status == 400)
    #expect(missing.body.contains("'data.text'"))
  }

  @Test("A result comes back as result, also null")
  func result() async throws {
    let harness = try harness()

    let echoed = try await harness.call(
      "echo",
      #" {"data": {"b": [1, 2.5, null, true], "a": "é"}} "#
    )
    #expect(echoed.status == 200)
    #expect(echoed.body == #"{"result":{"a":"é","b":[1,2.5,null,true]}}"#)
    #expect(echoed.headers[.contentType] == "application/json; charset=utf-8")
    #expect(echoed.headers[.contentLength] == String(echoed.body.utf8.count))
    #expect(try await harness.call("nothing", #"{"data":null}"#).body == #"{"result":null}"#)
    #expect(
      try await harness.call("text", #"{"data":{"text":"x","limit":3.0,"more":[]}}"#).body
        == #"{"result":"x:3"}"#
    )
    #expect(harness.log.entries.isEmpty)
  }

  @Test(
    "Content types are compared without case and parameters",
    arguments: ["application/json", "Application/JSON; charset=utf-8", "application/json ;x=y"]
  )
  func contentTypes(type: String) async throws {
    #expect(try await harness().call("echo", #"{"data":1}"#, contentType: type).status == 200)
  }

  @Test(
    "A malformed envelope is INVALID_ARGUMENT and says what to change",
    arguments: [
      ("", "The body is empty"), ("{", "not JSON: an unexpected end at byte 1"),
      (#"{"data":1}x"#, "an unexpected character at byte 10"), ("[]", "must be an object"),
      ("{}", "'data' is missing"), (#"{"data":1,"extra":2}"#, "'extra' is not expected"),
      (#"{"dat":1}"#, "'dat' is not expected"),
      (#"{"data":{"text":5}}"#, "'data.text' is an integer, not a string"),
      (#"{"data":{}}"#, "'data.text' is missing"),
      (
        #"{"data":{"text":"x","inner":{"numbers":[1,"2"]}}}"#, "'data.inner.numbers[1]' is a string"
      ),
      (#"{"data":7}"#, "'data' is an integer, not a map"),
      (#"{"data":{"text":"x","limit":1.5}}"#, "'data.limit' is a double"),
      (#"{"data":{"text":{"@type":"x","value":"1"}}}"#, "'data.text' has an unknown '@type'"),
      (
        #"{"data":[{"@type":"type.googleapis.com/google.protobuf.Int64Value","value":"1x"}]}"#,
        "'data[0]' wraps an integer"
      ),
    ]
  )
  func badEnvelope(body: String, message: String) async throws {
    let reply = try await harness().call("text", body, headers: [.origin: "https://a.example"])

    #expect(reply.status == 400)
    #expect(reply.body.contains(#""status":"INVALID_ARGUMENT""#))
    #expect(reply.body.contains(message), "\(reply.body)")
    #expect(reply.headers[.accessControlAllowOrigin] == "https://a.example")
  }

  @Test("Other methods and content types are refused with 400")
  func badHeads() async throws {
    let harness = try harness()
    let replies = [
      try await harness.call("echo", #"{"data":1}"#, method: .get),
      try await harness.call("echo", #"{"data":1}"#, method: .put),
      try await harness.call("echo", #"{"data":1}"#, contentType: "text/plain"),
      try await harness.call("echo", #"{"data":1}"#, contentType: nil),
    ]

    for reply in replies {
      #expect(reply.status == 400)
      #expect(reply.body.contains("INVALID_ARGUMENT"))
    }
  }

  @Test("Every code has its HTTP status, message and details", arguments: StatusCode.allCases)
  func codes(code: StatusCode) async throws {
    let reply = try await harness().call("fails", #"{"data":"\#(code.name)"}"#)
    let shown = code == .ok ? StatusCode.internal : code

    #expect(reply.status == shown.httpStatus)
    #expect(
      reply.body == #"{"error":{"details":{"big":{"@type":"#
        + #""type.googleapis.com/google.protobuf.Int64Value","value":"9223372036854775807"},"#
        + #""small":1},"message":"as asked","status":"\#(shown.name)"}}"#
    )
  }

  @Test("Any other error is INTERNAL without its text, and logged with it")
  func otherErrors() async throws {
    let harness = try harness()
    let thrown = try await harness.call("fails", #"{"data":"plain"}"#)
    let unwritable = try await harness.call("infinite", #"{"data":null}"#)

    for reply in [thrown, unwritable] {
      #expect(reply.status == 500)
      #expect(reply.body == #"{"error":{"message":"INTERNAL","status":"INTERNAL"}}"#)
    }
    let errors = harness.log.entries(atLeast: .error)
    #expect(
      errors.map { $0.metadata["error"] } == ["Failure()", "is inf, which JSON cannot express"]
    )
  }

  @Test("Integers are read bare or wrapped, and wrapped where JavaScript could not hold them")
  func integers() async throws {
    let harness = try harness()
    let wrapped = #"{"@type":"type.googleapis.com/google.protobuf.Int64Value","value":"7"}"#
    let huge =
      #"{"@type":"type.googleapis.com/google.protobuf.UInt64Value","value":"18446744073709551615"}"#

    #expect(
      try await harness.call("text", #"{"data":{"text":"x","limit":\#(wrapped)}}"#).body
        == #"{"result":"x:7"}"#
    )
    #expect(try await harness.call("echo", #"{"data":[\#(wrapped)]}"#).body == #"{"result":[7]}"#)
    for sent in [huge, "18446744073709551615"] {
      #expect(
        try await harness.call("unsigned", #"{"data":\#(sent)}"#).body == #"{"result":\#(huge)}"#
      )
    }
    #expect(
      try await harness.call("large", #"{"data":0}"#).body
        == #"{"result":[{"@type":"type.googleapis.com/google.protobuf.Int64Value","value":"#
        + #""9223372036854775807"},-9007199254740991,{"@type":"#
        + #""type.googleapis.com/google.protobuf.Int64Value","value":"-9223372036854775808"}]}"#
    )
  }

  @Test("Dates are seconds since 2001 unless the function says otherwise")
  func dates() async throws {
    let harness = try harness()

    #expect(try await harness.call("date", #"{"data":0.5}"#).body == #"{"result":1.5}"#)
    #expect(
      try await harness.call("isoDate", #"{"data":"2026-07-01T12:00:00Z"}"#).body
        == #"{"result":"2026-07-01T12:00:01Z"}"#
    )
  }

  @Test("Browsers may call from anywhere: preflights, replies and errors carry CORS headers")
  func cors() async throws {
    let harness = try harness()
    let origin = "https://app.example"
    let preflight = try await harness.call(
      "echo",
      "",
      method: .options,
      contentType: nil,
      headers: [.origin: origin, .accessControlRequestHeaders: "authorization,content-type"]
    )

    #expect(preflight.status == 204)
    #expect(preflight.headers[.accessControlAllowOrigin] == origin)
    #expect(preflight.headers[.accessControlAllowMethods] == "POST")
    #expect(preflight.headers[.accessControlAllowHeaders] == "authorization,content-type")
    #expect(preflight.headers[.contentLength] == "0")
    #expect(preflight.headers[.vary] == "Origin, Access-Control-Request-Headers")
    let body = #"{"data":"NOT_FOUND"}"#
    let replies = [
      try await harness.call("echo", body, headers: [.origin: origin]),
      try await harness.call("fails", body, headers: [.origin: origin]),
      try await harness.call("echo", body, authorization: "x", headers: [.origin: origin]),
      try await harness.call("none", body, headers: [.origin: origin]),
    ]
    #expect(replies.map(\.status) == [200, 404, 401, 404])
    for reply in replies {
      #expect(reply.headers[.accessControlAllowOrigin] == origin)
      #expect(reply.headers[.vary] == "Origin")
    }
    #expect(try await harness.call("echo", body).headers[.accessControlAllowOrigin] == nil)
  }

  @Test("No token is an unauthenticated caller, a valid one its user, owner the administrator")
  func tokens() async throws {
    let harness = try harness()
    let alice = "Bearer \(try UnsignedTokenIssuer.issue(uid: "alice"))"
    let root = "Bearer \(try UnsignedTokenIssuer.issue(uid: "root", claims: ["admin": true]))"
    func status(_ name: String, _ authorization: String?) async throws -> Int {
      try await harness.call(name, #"{"data":null}"#, authorization: authorization).status
    }

    #expect(try await harness.call("auth", #"{"data":1}"#).body.contains("nobody"))
    #expect(
      try await harness.call("auth", #"{"data":1}"#, authorization: alice).body
        .contains("user alice")
    )
    #expect(
      try await harness.call("auth", #"{"data":1}"#, authorization: "Bearer owner").body
        .contains("admin")
    )
    #expect(try await status("whoAmI", alice) == 200)
    #expect(try await status("whoAmI", nil) == 401)
    #expect(try await status("whoAmI", "Bearer owner") == 401)
    #expect(try await status("admin", "Bearer owner") == 200)
    #expect(try await status("admin", root) == 200)
    #expect(try await status("admin", alice) == 403)
    #expect(try await status("admin", nil) == 401)
  }

  @Test("A bad token is refused before the handler runs, a bad App Check token is only logged")
  func badTokens() async throws {
    let calls = Calls()
    let harness = try HostHarness {
      OnCall<FirestoreValue, _>("count") { _ in await calls.add() }
    }
    for header in ["Bearer nonsense", "Basic abc", "Bearer", ""] {
      let reply = try await harness.call("count", #"{"data":1}"#, authorization: header)

      #expect(reply.status == 401)
      #expect(reply.body.contains(#""status":"UNAUTHENTICATED""#))
    }
    #expect(await calls.count == 0)
    let appCheck: HTTPFields = [fieldName("x-firebase-appcheck"): "garbage"]
    #expect(try await harness.call("count", #"{"data":1}"#, headers: appCheck).status == 200)
    #expect(
      harness.log.entries(atLeast: .warning).map(\.message) == [
        "The App Check token is not valid"
      ]
    )
  }

  @Test("A function may refuse calls without a valid App Check token and sees whether it was used")
  func appCheck() async throws {
    let harness = try HostHarness {
      OnCall<FirestoreValue, _>("enforced", options: .init(enforceAppCheck: true)) { request in
        "\(request.app?.appID ?? "-") \(request.app?.claims["sub"] == .string("1:2:ios:3")) "
          + "\(request.app?.alreadyConsumed.map(String.init) ?? "-")"
      }
      OnCall<FirestoreValue, _>("consumed", options: .init(consumeAppCheckToken: true)) { request in
        request.app?.alreadyConsumed
      }
    }
    func call(_ name: String, _ token: String?) async throws -> HostHarness.Reply {
      var headers = HTTPFields()
      headers[fieldName("x-firebase-appcheck")] = token
      return try await harness.call(name, #"{"data":1}"#, headers: headers)
    }
    let token = try UnsignedTokenIssuer.issue(uid: "1:2:ios:3")

    for bad in [nil, "", "garbage", "a.b.c"] {
      let reply = try await call("enforced", bad)
      #expect(reply.status == 401)
      #expect(reply.body.contains(#""status":"UNAUTHENTICATED""#))
    }
    #expect(try await call("enforced", token).body == #"{"result":"1:2:ios:3 true -"}"#)
    #expect(try await call("consumed", nil).body == #"{"result":null}"#)
    #expect(try await call("consumed", token).body == #"{"result":false}"#)
    #expect(try await call("consumed", token).body == #"{"result":true}"#)
  }

  @Test("The messaging token is passed on, unverified")
  func instanceID() async throws {
    let harness = try HostHarness {
      OnCall<FirestoreValue, _>("token") { $0.instanceIDToken }
    }
    let headers: HTTPFields = [fieldName("firebase-instance-id-token"): "fcm:1"]

    #expect(
      try await harness.call("token", #"{"data":1}"#, headers: headers).body
        == #"{"result":"fcm:1"}"#
    )
  }

  /// Returns the allowed origins in the responses to a call and to a preflight.
  private func allowed(
    _ name: String,
    _ origin: String,
    by harness: HostHarness
  ) async throws -> [String?] {
    var allowed: [String?] = []
    for method in [HTTPRequest.Method.post, .options] {
      let reply = try await harness.call(
        name,
        #"{"data":1}"#,
        method: method,
        headers: [.origin: origin]
      )
      allowed.append(reply.headers[.accessControlAllowOrigin])
    }
    return allowed
  }

  @Test("A callable may be for some pages, or for none, and is for all unless it says so")
  func corsOption() async throws {
    let harness = try HostHarness {
      OnCall<FirestoreValue, _>("some", options: .init(cors: .only(["https://a.example"]))) {
        $0.data
      }
      OnCall<FirestoreValue, _>("none", options: .init(cors: .none)) { $0.data }
      OnCall<FirestoreValue, _>("standard", options: .init(cors: .standard)) { $0.data }
      OnStreamingCall<FirestoreValue, _, Int>("stream", options: .init(cors: .none)) {
        request,
        _ in request.data
      }
    }
    let (a, b) = ("https://a.example", "https://b.example")

    #expect(try await allowed("some", a, by: harness) == [a, a])
    #expect(try await allowed("some", b, by: harness) == [nil, nil])
    #expect(try await allowed("none", a, by: harness) == [nil, nil])
    #expect(try await allowed("standard", a, by: harness) == [a, a])
    #expect(try await allowed("stream", a, by: harness) == [nil, nil])
    // The call itself succeeds; the browser withholds the response from the page.
    let closed = try await harness.call("none", #"{"data":1}"#, headers: [.origin: a])
    #expect(closed.status == 200 && closed.body == #"{"result":1}"#)
    let refused = try await harness.call("none", "{}", headers: [.origin: a])
    #expect(refused.status == 400 && refused.headers[.accessControlAllowOrigin] == nil)
    let long = String(repeating: " ", count: FunctionLimits.bodyBytesMax + 1)
    for (name, origin) in [("none", nil), ("standard", a)] {
      let tooLong = try await harness.call(name, long, headers: [.origin: a])
      #expect(tooLong.status == 413 && tooLong.headers[.accessControlAllowOrigin] == origin)
    }
  }

  @Test("What an app says of pages holds for the callables that do not say it themselves")
  func corsDefaults() async throws {
    let harness = try HostHarness(defaults: .init(cors: .none)) {
      OnCall<FirestoreValue, _>("silent") { $0.data }
      OnCall<FirestoreValue, _>("standard", options: .init(cors: .standard)) { $0.data }
      OnCall<FirestoreValue, _>("any", options: .init(cors: .any)) { $0.data }
    }
    let page = "https://a.example"

    #expect(try await allowed("silent", page, by: harness) == [nil, nil])
    #expect(try await allowed("standard", page, by: harness) == [nil, nil])
    #expect(try await allowed("any", page, by: harness) == [page, page])
  }

  @Test("In production owner and unsigned tokens are refused, and a call without token works")
  func production() async throws {
    let harness = try harness(mode: .production)
    let alice = "Bearer \(try UnsignedTokenIssuer.issue(uid: "alice"))"

    for header in ["Bearer owner", alice, alice + "c2ln"] {
      #expect(try await harness.call("auth", #"{"data":1}"#, authorization: header).status == 401)
    }
    #expect(try await harness.call("auth", #"{"data":1}"#).status == 200)
  }

  @Test("In production no caller moves the clock of functions")
  func productionClock() async throws {
    let harness = try harness(mode: .production)
    let tomorrow = Timestamp(microseconds: FunctionClock.now.microseconds + 86_400_000_000)

    let reply = try await harness.call(
      "auth",
      #"{"data":1}"#,
      headers: [InvocationRequest.clockLeadHeader: "172800000000"]
    )
    #expect(reply.status == 200)
    #expect(FunctionClock.now < tomorrow)
  }

  @Test("A body over 10 MiB is 413, one below is not")
  func tooLarge() async throws {
    let harness = try harness()
    func body(_ count: Int) -> String {
      #"{"data":""# + String(repeating: "a", count: count - 11) + #""}"#
    }

    #expect(try await harness.call("text", body(FunctionLimits.bodyBytesMax)).status == 400)
    let refused = try await harness.call("text", body(FunctionLimits.bodyBytesMax + 1))
    #expect(refused.status == 413)
    #expect(refused.body.contains("exceeds the limit: 10485760 bytes"))
  }

  @Test("An unknown function is 404 with the names there are")
  func unknown() async throws {
    let reply = try await harness().call("ecco", #"{"data":1}"#)

    #expect(reply.status == 404)
    #expect(reply.body.contains("admin, auth, date, echo"))
  }

  @Test("Cancelling the caller cancels the handler")
  func cancellation() async throws {
    let started = AsyncStream<Void>.makeStream()
    let harness = try HostHarness {
      OnCall<FirestoreValue, _>("hang") { _ in
        started.continuation.yield()
        try await Task.sleep(for: .seconds(3600))
      }
    }
    let call = Task { try await harness.call("hang", #"{"data":1}"#) }
    for await _ in started.stream { break }
    call.cancel()

    let reply = try await call.value
    #expect(reply.status == 499)
    #expect(reply.body.contains("CANCELLED"))
    #expect(harness.log.entries.isEmpty)
  }

  private actor Calls {
    var count = 0

    func add() { count += 1 }
  }
}
