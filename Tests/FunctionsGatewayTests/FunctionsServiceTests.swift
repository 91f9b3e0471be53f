import Events
import Manifests
import StatusCodes
import Testing

@testable import FunctionsGateway

@Suite("Functions service")
struct FunctionsServiceTests {
  @Test(
    "A trigger's key is region and name, with a generation and a channel or without",
    arguments: [
      ("us-central1-embed", true), ("us-central1-embed-0", true), ("europe-west1-embed-7", true),
      ("us-central1-embed-7-my-channel", true), ("us-central1-embed-", false),
      ("us-central1-embed-x", false), ("us-central1-embedX", false), ("embed", false),
      ("us-east1-embed", false),
    ]
  )
  func keys(key: String, isKey: Bool) {
    #expect(
      FunctionsService.isKey(key, of: "embed", in: ["us-central1", "europe-west1"]) == isKey
    )
  }

  @Test("Where one function's name begins with another's, a key is of the longer one")
  func similarNames() {
    let endpoint = FunctionEndpoint(entryPoint: "f")
    let triggers = ["foo": endpoint, "foo-1": endpoint]
    let keys = ["foo", "foo-0", "foo-1", "foo-1-7"].map { "us-central1-\($0)" }

    #expect(
      keys.map { FunctionsService.name(of: $0, among: triggers) } == [
        "foo", "foo", "foo-1", "foo-1",
      ]
    )
  }

  @Test("An event of the first generation gets the type that functions wait for now")
  func legacyEvents() throws {
    let body = """
      {"eventId": "1", "eventType": "providers/firebase.auth/eventTypes/user.create",
       "timestamp": "2026-11-21T07:00:00Z", "data": {"uid": "tina"},
       "resource": {"service": "firebaseauth.googleapis.com", "name": "projects/demo"}}
      """
    let event = try MulticastEvent(Array(body.utf8), isCloudEvent: false).cloudEvent

    #expect(event.id == "1")
    #expect(event.type == "google.firebase.auth.user.v1.created")
    #expect(event.source == "//firebaseauth.googleapis.com/projects/demo")
    #expect(event.time == "2026-11-21T07:00:00Z")
    #expect(String(decoding: event.data, as: UTF8.self) == #"{"uid":"tina"}"#)
  }

  @Test("A CloudEvent keeps its attributes, its own extensions among them")
  func cloudEvents() throws {
    let body = """
      {"specversion": "1.0", "id": "2", "source": "//storage", "subject": "objects/a",
       "type": "google.cloud.storage.object.v1.finalized", "bucket": "b", "data": 1}
      """
    let event = try MulticastEvent(Array(body.utf8), isCloudEvent: true).cloudEvent

    #expect(event.type == "google.cloud.storage.object.v1.finalized")
    #expect(event.subject == "objects/a")
    #expect(event.extensions == ["bucket": "b"])
    #expect(event.dataContentType == "application/json")
    #expect(String(decoding: event.data, as: UTF8.self) == "1")
  }

  @Test("What has no type is no event", arguments: ["", "[]", "{}", #"{"type": "t"}"#])
  func noEvent(body: String) {
    #expect(throws: StatusError.self) {
      try MulticastEvent(Array(body.utf8), isCloudEvent: false)
    }
  }
}
