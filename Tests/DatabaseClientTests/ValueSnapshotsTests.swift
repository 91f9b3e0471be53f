import OutboundHTTP
import Synchronization
import TestSupport
import Testing

@testable import DatabaseClient

@Suite("Observed values", .timeLimit(.minutes(1)))
struct ValueSnapshotsTests {
  private static func stream(_ events: (String, String)...) -> ScriptedHTTP.Answer {
    let text = events.map { "event: \($0)\ndata: \($1)\n\n" }.joined()
    return .success(OutboundResponse(status: 200, body: Array(text.utf8)))
  }

  private static func put(_ path: String, _ json: String) -> (String, String) {
    ("put", #"{"path":"\#(path)","data":\#(json)}"#)
  }

  /// Reads values until there are `count`.
  private func values(_ count: Int, _ http: ScriptedHTTP) async throws -> [[String: Int]?] {
    var values: [[String: Int]?] = []
    for try await snapshot in Database.scripted(http).reference("a").observe() {
      values.append(try snapshot.data())
      if values.count == count { break }
    }
    return values
  }

  @Test("Each event that changes the value gives it whole, also if there is none")
  func events() async throws {
    let http = ScriptedHTTP([
      Self.stream(
        Self.put("/", "null"),
        ("keep-alive", "null"),
        Self.put("/x", "1"),
        Self.put("/x", "1"),
        ("patch", #"{"path":"/","data":{"x":null,"y":2,"z":3}}"#),
        Self.put("/", #"{"w":4}"#)
      )
    ])

    #expect(try await values(4, http) == [nil, ["x": 1], ["y": 2, "z": 3], ["w": 4]])
    let request = try #require(http.requests.first)
    #expect(request.headers["Accept"] == "text/event-stream" && request.timeout == nil)
  }

  @Test("After a lost connection only a different value is shown")
  func reconnect() async throws {
    let http = ScriptedHTTP([
      Self.stream(Self.put("/", #"{"x":1}"#)), .failure(OutboundHTTPError(.failed, "lost")),
      ScriptedHTTP.json("", status: 503), Self.stream(Self.put("/", #"{"x":1}"#)),
      Self.stream(Self.put("/", #"{"x":2}"#)),
    ])

    #expect(try await values(2, http) == [["x": 1], ["x": 2]])
    #expect(http.requests.count == 5)
  }

  @Test(
    "A refusal ends the sequence with its error",
    arguments: [
      ScriptedHTTP.json(#"{"error":"Permission denied"}"#, status: 401),
      Self.stream(Self.put("/", "null"), ("cancel", "null")),
    ]
  )
  func refused(answer: ScriptedHTTP.Answer) async {
    let error = await #expect(throws: DatabaseError.self) {
      _ = try await values(9, ScriptedHTTP([answer]))
    }

    #expect(error?.code == .permissionDenied)
  }

  @Test("An expired token is replaced, and the value goes on")
  func expired() async throws {
    final class Source: IDTokenSource {
      let rejected = Mutex<[String?]>([])
      func idToken(replacing token: String?) async throws -> String {
        rejected.withLock { $0.append(token) }
        return token == nil ? "old" : "new"
      }
    }
    let source = Source()
    let http = ScriptedHTTP([
      Self.stream(Self.put("/", #"{"x":1}"#), ("auth_revoked", "\"expired\"")),
      Self.stream(Self.put("/", #"{"x":2}"#)),
    ])
    var seen: [Int] = []
    for try await snapshot in Database.scripted(http).acting(as: source).reference("a").observe() {
      seen.append(try snapshot.child("x").data())
      if seen.count == 2 { break }
    }

    #expect(seen == [1, 2] && source.rejected.withLock { $0 } == [nil, "old"])
  }

  @Test(
    "A line that is not of the protocol is a temporary failure",
    arguments: ["[]", #"{"path":"/"}"#, #"{"path":"/","data":{"a.b":1}}"#, "{"]
  )
  func malformed(data: String) {
    var stream = ValueStream()
    #expect(throws: DatabaseError.self) {
      _ = try stream.take("event: put")
      _ = try stream.take("data: \(data)")
    }
  }
}
