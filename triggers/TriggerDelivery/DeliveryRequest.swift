import DocumentModel
import Events
import FirestoreWire
import HTTPTypes
package import Invocation
import NIOCore
import SwiftProtobuf

/// Makes the request that carries a delivery to its function: a CloudEvent in binary mode with
/// protobuf data, as Eventarc sends Firestore's events.
package struct DeliveryRequest: Sendable {
  private let location: String

  /// Events that name `location` as their region.
  package init(location: String) {
    self.location = location
  }

  /// The CloudEvent of a delivery.
  func event(for delivery: Delivery) throws -> CloudEvent {
    let name = delivery.change.name
    let data: [UInt8] = try WireFormat.eventData(for: delivery.change).serializedBytes()
    return CloudEvent(
      id: delivery.id.eventID,
      source: "//firestore.googleapis.com/\(name.database)",
      type: delivery.kind.eventType,
      subject: "documents/\(name.path)",
      time: delivery.commitTime.description,
      dataContentType: "application/protobuf",
      dataSchema: Self.dataSchema,
      extensions: [
        "project": name.database.project, "location": location,
        "database": name.database.database, "namespace": "(default)",
        "document": name.path.description,
      ],
      data: data
    )
  }

  /// The invocation of a delivery's next attempt.
  package func invocation(for delivery: Delivery, id: String) throws -> InvocationRequest {
    let event = try event(for: delivery)
    var fields = HTTPFields()
    func set(_ name: String, _ value: String?) {
      guard let value, let field = HTTPField.Name(name) else { return }
      fields[field] = HeaderValue.percentEncoded(value)
    }
    set("ce-specversion", "1.0")
    set("ce-id", event.id)
    set("ce-source", event.source)
    set("ce-type", event.type)
    set("ce-subject", event.subject)
    set("ce-time", event.time)
    set("ce-dataschema", event.dataSchema)
    for (name, value) in event.extensions { set("ce-\(name)", value) }
    fields[.contentType] = event.dataContentType
    fields[InvocationRequest.attemptHeader] = String(delivery.attempts + 1)
    let head = HTTPRequest(
      method: .post,
      scheme: "http",
      authority: "localhost",
      path: "/",
      headerFields: fields
    )
    return InvocationRequest(
      id: id,
      function: delivery.id.function,
      head: head,
      body: ByteBuffer(bytes: event.data)
    )
  }

  private static let dataSchema =
    "https://github.com/googleapis/google-cloudevents/blob/main/proto/google/events/cloud/firestore/v1/data.proto"
}

/// CloudEvents' rule for header values: what is not printable ASCII, and `"`, `%` and the space,
/// is percent-encoded as UTF-8 (HTTP protocol binding 1.0, section 3.1.3.2).
enum HeaderValue {
  static func percentEncoded(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      if (0x21...0x7E).contains(byte), byte != 0x22, byte != 0x25 {
        bytes.append(byte)
      } else {
        bytes += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
