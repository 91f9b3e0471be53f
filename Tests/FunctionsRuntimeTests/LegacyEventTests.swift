import DocumentModel
import FunctionsRuntime
import TestSupport
import Testing

@Suite("Events of the first generation")
struct LegacyEventTests {
  private struct Case: Sendable {
    var legacy: String
    var type: String
    var source: String
    var subject: String?
    /// The expected data; nil if it must equal the input.
    var data: String?
  }

  private static func event(
    _ eventType: String,
    _ resource: String,
    data: String,
    more: String = ""
  ) -> String {
    #"{"eventId":"e1","timestamp":"2020-09-29T11:32:00.000Z","eventType":"\#(eventType)","#
      + #""resource":\#(resource),"data":\#(data)\#(more)}"#
  }

  private static let cases: [Case] = [
    Case(
      legacy: event(
        "providers/cloud.firestore/eventTypes/document.write",
        #""projects/p/databases/(default)/documents/gcf-test/doc""#,
        data: #"{"value":{"n":12345678901234567890}}"#
      ),
      type: "google.cloud.firestore.document.v1.written",
      source: "//firestore.googleapis.com/projects/p/databases/(default)",
      subject: "documents/gcf-test/doc",
      data: #"{"value":{"n":12345678901234567890}}"#
    ),
    Case(
      legacy: #"{"context":"#
        + event(
          "google.storage.object.finalize",
          #"{"service":"storage.googleapis.com","name":"projects/_/buckets/b/objects/a/t.cs#17","#
            + #""type":"storage#object"}"#,
          data: "0"
        ) + #","data":{"bucket":"b"}}"#,
      type: "google.cloud.storage.object.v1.finalized",
      source: "//storage.googleapis.com/projects/_/buckets/b",
      subject: "objects/a/t.cs",
      data: #"{"bucket":"b"}"#
    ),
    Case(
      legacy: event(
        "providers/firebase.auth/eventTypes/user.create",
        #""projects/p""#,
        data: #"{"uid":"u1","metadata":{"createdAt":"t1","lastSignedInAt":"t2"}}"#
      ),
      type: "google.firebase.auth.user.v1.created",
      source: "//firebaseauth.googleapis.com/projects/p",
      subject: "users/u1",
      data: #"{"metadata":{"createTime":"t1","lastSignInTime":"t2"},"uid":"u1"}"#
    ),
    Case(
      legacy: event(
        "providers/google.firebase.database/eventTypes/ref.delete",
        #""projects/_/instances/i/refs/gcf-test/xyz""#,
        data: "null",
        more: #","domain":"europe-west1.firebasedatabase.app""#
      ),
      type: "google.firebase.database.ref.v1.deleted",
      source: "//firebasedatabase.googleapis.com/projects/_/locations/europe-west1/instances/i",
      subject: "refs/gcf-test/xyz",
      data: "null"
    ),
    Case(
      legacy: event(
        "google.pubsub.topic.publish",
        #"{"service":"pubsub.googleapis.com","name":"projects/p/topics/t","type":"x"}"#,
        data: #"{"data":"aGVsbG8="}"#
      ),
      type: "google.cloud.pubsub.topic.v1.messagePublished",
      source: "//pubsub.googleapis.com/projects/p/topics/t",
      subject: nil,
      data: #"{"message":{"data":"aGVsbG8=","messageId":"e1","#
        + #""publishTime":"2020-09-29T11:32:00.000Z"}}"#
    ),
    Case(
      legacy: #"{"subscription":"s","message":{"data":"aGVsbG8=","messageId":"e1"}}"#,
      type: "google.cloud.pubsub.topic.v1.messagePublished",
      source: "//pubsub.googleapis.com/UNKNOWN_PUBSUB_TOPIC",
      subject: nil,
      data: #"{"message":{"data":"aGVsbG8=","messageId":"e1"},"subscription":"s"}"#
    ),
  ]

  @Test("Each service's events are mapped as the other frameworks map them", arguments: 0..<6)
  func mapped(index: Int) async throws {
    let expected = Self.cases[index]
    let seen = Seen<CloudEventMessage<[UInt8]>>()
    let harness = try HostHarness { OnCloudEvent<[UInt8]>("f", type: "*") { seen.add($0) } }
    let reply = try await harness.post(
      "f",
      expected.legacy,
      [("Content-Type", "application/json")]
    )

    #expect(reply.status == 204, "\(reply.body)")
    let event = try #require(seen.all.first)
    #expect(event.id == "e1")
    #expect(event.type == expected.type)
    #expect(event.source == expected.source)
    #expect(event.subject == expected.subject)
    #expect(event.dataContentType == "application/json")
    #expect(String(decoding: event.data, as: UTF8.self) == expected.data)
  }

  @Test("A document's event of the first generation reaches a document function")
  func document() async throws {
    let seen = Seen<DocumentWrite<[String: Int]>>()
    let harness = try HostHarness {
      OnDocumentWritten<[String: Int]>("f", at: "gcf-test/{id}") { seen.add($0.data) }
    }
    let name = "projects/p/databases/(default)/documents/gcf-test/doc"
    let reply = try await harness.post(
      "f",
      Self.event(
        "providers/cloud.firestore/eventTypes/document.write",
        "\"\(name)\"",
        data: #"{"value":{"name":"\#(name)","fields":{"n":{"integerValue":"7"}}},"oldValue":{}}"#
      ),
      [("Content-Type", "application/json")]
    )

    #expect(reply.status == 204, "\(reply.body)")
    #expect(seen.all == [.created(["n": 7])])
  }

  @Test("What cannot be mapped is 400")
  func refused() async throws {
    let harness = try HostHarness { OnCloudEvent<[UInt8]>("f", type: "*") { _ in } }
    let cases = [
      (Self.event("a.b", "\"x\"", data: "{}"), "a.b of the first generation is not known"),
      (
        Self.event("google.storage.object.delete", "\"projects/_/buckets/b\"", data: "{}"),
        "has no part objects/"
      ),
      (
        Self.event(
          "providers/google.firebase.database/eventTypes/ref.write",
          "\"projects/_/instances/i/refs/r\"",
          data: "{}"
        ), "has no domain"
      ),
      (
        Self.event("google.pubsub.topic.publish", "\"projects/p/topics/t\"", data: "1"),
        "message is not a JSON object"
      ),
      (#"{"subscription":"s","message":{}}"#, "has no messageId"),
    ]
    for (body, message) in cases {
      let reply = try await harness.post("f", body, [("Content-Type", "application/json")])

      #expect(reply.status == 400)
      #expect(reply.body.contains(message), "\(reply.body)")
    }
  }
}
