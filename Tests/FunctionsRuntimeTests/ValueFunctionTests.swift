import Events
import FunctionsRuntime
import HTTPMessages
import HTTPTypes
import Manifests
import NIOCore
import Synchronization
import Testing

@Suite("Functions on the Realtime Database")
struct ValueFunctionTests {
  struct Presence: Codable, Sendable, Equatable {
    var online: Bool
    var devices: [String?]?
  }

  /// The events that the handler received.
  private final class Seen: Sendable {
    private let events = Mutex<[ValueEvent<ValueWrite<Presence>>]>([])

    func add(_ event: ValueEvent<ValueWrite<Presence>>) { events.withLock { $0.append(event) } }
    var all: [ValueEvent<ValueWrite<Presence>>] { events.withLock { $0 } }
  }

  private let seen = Seen()

  private var written: OnValueWritten<Presence> {
    .init("f", at: "presence/{uid}", instance: "my-*") { [seen] event in seen.add(event) }
  }

  private func deliver(
    _ harness: HostHarness,
    _ body: String,
    type: String = "written",
    ref: String = "presence/u1",
    instance: String? = "my-db"
  ) async throws -> HostHarness.Reply {
    var head = HTTPRequest(method: .post, scheme: "http", authority: "localhost", path: "/f")
    head.headerFields[.contentType] = "application/json"
    let source = "//firebasedatabase.googleapis.com/projects/_/locations/us-central1/instances/my-x"
    let fields: [(StaticString, String)] = [
      ("ce-specversion", "1.0"), ("ce-id", "e1"), ("ce-source", source),
      ("ce-subject", "refs/\(ref)"),
      ("ce-type", "google.firebase.database.ref.v1.\(type)"), ("ce-authtype", "app_user"),
      ("ce-authid", "u1"), ("ce-time", "2026-07-01T12:00:00Z"),
    ]
    for (name, value) in fields { head.headerFields[fieldName(name)] = value }
    if let instance {
      head.headerFields[fieldName("ce-instance")] = instance
      head.headerFields[fieldName("ce-ref")] = ref
    }
    return try await harness.send(head, ByteBuffer(string: body))
  }

  @Test("The patch is applied to the old value, and both arrive decoded")
  func decoded() async throws {
    let harness = try HostHarness { written }
    let body =
      #"{"data":{"online":true,"devices":{"0":"a","2":"c"}},"delta":{"online":false,"devices":null}}"#

    #expect(try await deliver(harness, body).status == 204)
    let event = try #require(seen.all.first)
    #expect(
      event.data
        == ValueWrite(
          before: Presence(online: true, devices: ["a", nil, "c"]),
          after: Presence(online: false)
        )
    )
    #expect(try event.params.uid == "u1")
    #expect(event.path.description == "presence/u1" && event.instance == "my-db")
    #expect(event.authType == .appUser && event.authID == "u1" && event.id == "e1")
    #expect(event.time?.description == "2026-07-01T12:00:00Z")
  }

  @Test("A value that did not exist, or exists no more, is nil")
  func absent() async throws {
    let harness = try HostHarness { written }
    _ = try await deliver(harness, #"{"data":null,"delta":{"online":true}}"#)
    _ = try await deliver(harness, #"{"data":{"online":true},"delta":null}"#)

    let presence = Presence(online: true)
    #expect(
      seen.all.map(\.data) == [
        ValueWrite(before: nil, after: presence), ValueWrite(before: presence, after: nil),
      ]
    )
  }

  @Test("Place and instance are also read from the source and the subject")
  func converted() async throws {
    let harness = try HostHarness { written }

    let reply = try await deliver(harness, #"{"data":null,"delta":{"online":true}}"#, instance: nil)
    #expect(reply.status == 204)
    #expect(seen.all.first?.instance == "my-x")
  }

  @Test(
    "What does not fit is refused with the reason",
    arguments: [
      (#"{"data":1,"delta":2}"#, "written", "presence/u1", "does not decode as Presence"),
      (#"{"data":null,"delta":{"online":true}}"#, "created", "presence/u1", "The function wants"),
      (#"{"data":null,"delta":{"online":true}}"#, "written", "other/u1", "does not match"),
      ("[]", "written", "presence/u1", "not a JSON object"),
      (#"{"data":{"a.b":1},"delta":null}"#, "written", "presence/u1", "no value of the database"),
    ]
  )
  func refused(body: String, type: String, ref: String, reason: String) async throws {
    let harness = try HostHarness { written }
    let reply = try await deliver(harness, body, type: type, ref: ref)

    #expect(reply.status == 400 && reply.body.contains(reason), "\(reply.body)")
    #expect(seen.all.isEmpty)
  }

  @Test("The manifest names the type, the instance and the path as Firebase's tools do")
  func manifest() throws {
    let app = FunctionsApp {
      written
      OnValueCreated<Presence>(
        "g",
        at: "/presence/u1/",
        instance: "main",
        options: .init(retry: true)
      ) {
        _ in
      }
    }
    let endpoints = try app.manifest().endpoints

    #expect(
      endpoints["f"]?.eventTrigger
        == .init(
          eventType: "google.firebase.database.ref.v1.written",
          eventFilters: [:],
          eventFilterPathPatterns: ["ref": "presence/{uid}", "instance": "my-*"]
        )
    )
    #expect(
      endpoints["g"]?.eventTrigger
        == .init(
          eventType: "google.firebase.database.ref.v1.created",
          eventFilters: ["instance": "main"],
          eventFilterPathPatterns: ["ref": "presence/u1"],
          retry: true
        )
    )
  }

  @Test("A malformed pattern is a problem of the app")
  func malformed() {
    let app = FunctionsApp { OnValueDeleted<Presence>("f", at: "presence/{uid") { _ in } }

    let error = #expect(throws: InvalidFunctionsError.self) { try app.manifest() }
    #expect(error?.description.contains("cannot be triggered") == true)
  }
}
