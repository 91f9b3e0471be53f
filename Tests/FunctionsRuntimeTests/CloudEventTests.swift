import DocumentModel
import Events
import FunctionsRuntime
import HTTPTypes
import Invocation
import NIOCore
import Synchronization
import Testing
import TestSupport

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Values that handlers record for a test.
final class Seen<Element: Sendable>: Sendable {
  private let elements = Mutex<[Element]>([])

  func add(_ element: Element) { elements.withLock { $0.append(element) } }
  var all: [Element] { elements.withLock { $0 } }
}

extension HostHarness {
  /// Posts a body with arbitrary headers.
  func post(
    _ name: String,
    _ body: String,
    _ headers: [(name: String, value: String)] = []
  ) async throws -> Reply {
    var head = HTTPRequest(method: .post, scheme: "http", authority: "localhost", path: "/\(name)")
    for (name, value) in headers { head.headerFields[try #require(HTTPField.Name(name))] = value }
    return try await send(head, ByteBuffer(string: body))
  }
}

@Suite("CloudEvents")
struct CloudEventTests {
  struct Order: Codable, Sendable, Equatable {
    var total: Int
    var placed: Timestamp?
  }

  private static let type = "com.example.order.v1.placed"
  private static let binary: [(name: String, value: String)] = [
    ("ce-specversion", "1.0"), ("ce-id", "e1"), ("ce-type", type),
    ("ce-source", "//shop/projects/projects/p"), ("ce-subject", "orders/o%2D1%20%E2%82%AC"),
    ("ce-time", "2026-07-01T12:00:00Z"), ("ce-dataschema", "s.json"), ("ce-shop", "100% b"),
    ("Content-Type", "application/json; charset=utf-8"),
  ]

  private func harness(
    _ seen: Seen<CloudEventMessage<Order>>,
    type: String = Self.type,
    filters: [String: String] = [:],
    patterns: [String: String] = ["subject": "orders/{orderId}"]
  ) throws -> HostHarness {
    try HostHarness {
      OnCloudEvent<Order>("f", type: type, filters: filters, pathPatterns: patterns) {
        seen.add($0)
      }
    }
  }

  @Test("Binary mode: every attribute, escapes decoded, data as a type, captures from the subject")
  func binaryMode() async throws {
    let seen = Seen<CloudEventMessage<Order>>()
    let harness = try harness(seen)
    let body = #"{"total": 3, "placed": "2026-07-01T12:00:00Z", "@type": "anything"}"#
    let reply = try await harness.post("f", body, Self.binary + [("x-hearth-attempt", "2")])

    #expect(reply.status == 204, "\(reply.body)")
    let event = try #require(seen.all.first)
    #expect(event.data.total == 3)
    #expect(event.data.placed?.description == "2026-07-01T12:00:00Z")
    #expect(event.id == "e1")
    #expect(event.type == Self.type)
    #expect(event.source == "//shop/projects/p")
    #expect(event.subject == "orders/o-1 €")
    #expect(event.time?.description == "2026-07-01T12:00:00Z")
    #expect(event.dataSchema == "s.json")
    #expect(event.dataContentType == "application/json; charset=utf-8")
    #expect(event.attributes == ["shop": "100% b"])
    #expect(event.attribute("shop") == "100% b")
    #expect(try event.params.orderId == "o-1 €")
    #expect(event.attempt == 2)
  }

  @Test(
    "Structured mode: JSON data, base64 data and text data arrive as the bytes they stand for",
    arguments: [
      (#""data": {"n": 9007199254740993, "m": 1.50}"#, #"{"n": 9007199254740993, "m": 1.50}"#),
      (#""data_base64": "aGVsbG8=", "datacontenttype": "text/plain""#, "hello"),
      (#""data": "hel\"lo", "datacontenttype": "text/plain""#, #"hel"lo"#),
      (#""data": "text", "datacontenttype": "application/json""#, #""text""#),
      (#""sampled": true, "n": 5, "none": null"#, ""),
    ]
  )
  func structuredMode(member: String, expected: String) async throws {
    let seen = Seen<CloudEventMessage<[UInt8]>>()
    let harness = try HostHarness {
      OnCloudEvent<[UInt8]>("f", type: "t", filters: ["shop": "b"]) { seen.add($0) }
    }
    let reply = try await harness.post(
      "f",
      #"{"specversion":"1.0","id":"e","source":"s","type":"t","shop":"b",\#(member)}"#,
      [("Content-Type", "application/cloudevents+json; charset=UTF-8")]
    )

    #expect(reply.status == 204, "\(reply.body)")
    #expect(seen.all.map { String(decoding: $0.data, as: UTF8.self) } == [expected])
    if member.hasPrefix(#""sampled""#) {
      #expect(seen.all.first?.attributes == ["shop": "b", "sampled": "true", "n": "5"])
    }
  }

  @Test("Malformed events are 400 with a sentence and the advice never to try again")
  func malformed() async throws {
    let seen = Seen<CloudEventMessage<Order>>()
    let harness = try harness(seen, filters: ["shop": "100% b"])
    let structured = [("Content-Type", "application/cloudevents+json")]
    let json = [("Content-Type", "application/json")]
    let order = #"{"total": 3}"#
    func binary(without name: String) -> [(name: String, value: String)] {
      Self.binary.filter { $0.name != name }
    }
    func binary(_ name: String, _ value: String) -> [(name: String, value: String)] {
      binary(without: name) + [(name, value)]
    }
    let cases: [(body: String, headers: [(name: String, value: String)], message: String)] = [
      (order, binary(without: "ce-id"), "The header ce-id is missing"),
      (order, binary(without: "ce-source"), "The header ce-source is missing"),
      (order, binary(without: "ce-type"), "The header ce-type is missing"),
      (order, binary(without: "ce-specversion"), "The header ce-specversion is missing"),
      (order, binary("ce-specversion", "0.3"), "must be 1.0, not 0.3"),
      (order, binary("ce-time", "noon"), "not of the form of RFC 3339"),
      (order, binary("ce-type", "other"), "The function wants \(Self.type), not other."),
      (order, binary("ce-shop", "x"), "wants the attribute shop to be 100% b, not x"),
      (order, binary("ce-subject", "a/b"), "does not match orders/{orderId}"),
      (order, binary("Content-Type", "text/plain"), "is not JSON"),
      ("{}", Self.binary, "does not decode as Order: 'total' is missing"),
      ("{", Self.binary, "is not JSON"),
      ("", Self.binary, "does not decode as Order"),
      ("{}", structured, "The event's attribute specversion is missing"),
      ("[]", structured, "not a JSON object"),
      ("{]", structured, "not JSON: an unexpected character at byte 1"),
      (#"{"id": []}"#, structured, "attribute id is neither"),
      (#"{"data": 1, "data_base64": ""}"#, structured, "both data and data_base64"),
      (#"{"data_base64": "?"}"#, structured, "not base64"),
      ("[]", [("Content-Type", "application/cloudevents-batch+json")], "one by one"),
      ("{}", json, "is not an event"),
      ("nonsense", json, "not JSON"),
      (order, [], "The header ce-specversion is missing"),
    ]
    for (body, headers, message) in cases {
      let reply = try await harness.post("f", body, headers)

      #expect(reply.status == 400, "\(body) \(headers)")
      #expect(reply.headers[RetryAdvice.header] == "never")
      #expect(reply.body.contains(message), "\(reply.body)")
    }
    #expect(seen.all.isEmpty)
  }

  @Test("Called directly, a declaration reads its parameters from the attributes")
  func direct() async throws {
    let seen = Seen<String>()
    let function = OnCloudEvent<Order>("f", type: "t", pathPatterns: ["document": "users/{id}"]) {
      seen.add(try $0.params.id)
    }
    try await function.run(
      CloudEventMessage(type: "t", data: Order(total: 1), attributes: ["document": "users/u1"])
    )

    #expect(seen.all == ["u1"])
    await #expect(throws: EventError.self) {
      try await function.run(CloudEventMessage(type: "u", data: Order(total: 1)))
    }
  }

  @Test("Documents come in base64 of protobuf, as Google's emulator sends them, and structured")
  func documents() async throws {
    let seen = Seen<DocumentEvent<FirestoreDocument>>()
    let harness = try HostHarness {
      OnDocumentCreated<FirestoreDocument>("f", at: "users/{id}", withAuthContext: true) {
        seen.add($0)
      }
    }
    let name = "projects/p/databases/(default)/documents/users/u1"
    // Field 1 of the event is a document, and field 1 of the document is its name.
    let document = [0x0A, UInt8(name.utf8.count)] + Array(name.utf8)
    let message = [0x0A, UInt8(document.count)] + document
    let base64 = Data(message).base64EncodedString()
    let type = "google.cloud.firestore.document.v1.created"
    let attributes = [
      ("ce-specversion", "1.0"), ("ce-id", "e"), ("ce-source", "s"), ("ce-type", type),
    ]
    let emulators = try await harness.post(
      "f",
      base64,
      attributes + [("Content-Type", "application/protobuf")]
    )
    let structured = try await harness.post(
      "f",
      #"""
      {"specversion":"1.0","id":"e","source":"s","type":"\#(type).withAuthContext",
      "authtype":"service_account","authid":"a@b","datacontenttype":"application/protobuf",
      "data_base64":"\#(base64)"}
      """#,
      [("Content-Type", "application/cloudevents+json")]
    )

    #expect(emulators.status == 204, "\(emulators.body)")
    #expect(structured.status == 204, "\(structured.body)")
    #expect(try seen.all.map { try $0.params.id } == ["u1", "u1"])
    #expect(seen.all.map(\.auth) == [EventAuth(.unknown), EventAuth(.serviceAccount, id: "a@b")])
  }
}
