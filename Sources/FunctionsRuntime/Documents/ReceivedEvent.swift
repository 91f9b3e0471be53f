import Events
import FirestoreProtos
import FirestoreWire
import HTTPSupport
import HTTPTypes
import Invocation
import NIOCore
import SwiftProtobuf

/// An event whose envelope and documents have been read; its payload is not decoded yet.
struct ReceivedEvent {
  var id: String
  var kind: DocumentEventKind
  var time: Timestamp?
  var name: DocumentName
  var change: ReceivedChange
  var attempt: Int

  /// Why an event cannot reach a handler.
  struct Refusal: Error {
    var message: String

    init(_ message: String) {
      self.message = message
    }
  }

  /// Reads CloudEvents 1.0 in binary mode, with the documents in protobuf or JSON.
  init(_ request: InvocationRequest) throws {
    guard request.head.method == .post else {
      throw Refusal("An event comes by POST, not \(request.head.method.rawValue).")
    }
    let headers = request.head.headerFields
    func attribute(_ name: StaticString) throws -> String {
      guard let value = headers[fieldName(name)], !value.isEmpty else {
        throw Refusal("The header \(name) is missing; events come in CloudEvents' binary mode.")
      }
      return percentDecoded(value) ?? value
    }
    guard try attribute("ce-specversion") == "1.0" else {
      throw Refusal("The header ce-specversion must be 1.0.")
    }
    let type = try attribute("ce-type")
    guard let kind = DocumentEventKind(eventType: type) else {
      throw Refusal("The event type \(type) is not one of a Firestore document.")
    }
    let change = try WireFormat.change(from: Self.data(of: request))
    // The name inside the data is exact; the attributes repeat it, with escapes.
    guard let name = (change.after ?? change.before)?.name else {
      throw Refusal("The event has no document.")
    }
    self.id = try attribute("ce-id")
    self.kind = kind
    self.time = headers[fieldName("ce-time")].flatMap { Timestamp($0) }
    self.name = name
    self.change = ReceivedChange(
      before: change.before,
      after: change.after,
      updateMask: change.updateMask
    )
    self.attempt = headers[InvocationRequest.attemptHeader].flatMap { Int($0) } ?? 1
  }

  private static func data(
    of request: InvocationRequest
  ) throws -> Google_Events_Cloud_Firestore_V1_DocumentEventData {
    let contentType = request.head.headerFields[.contentType] ?? ""
    let body = Array(request.body.readableBytesView)
    do {
      switch contentType.prefix(while: { $0 != ";" }).lowercased() {
      case "application/protobuf":
        return try Google_Events_Cloud_Firestore_V1_DocumentEventData(serializedBytes: body)
      case "application/json":
        return try Google_Events_Cloud_Firestore_V1_DocumentEventData(jsonUTF8Bytes: body)
      default:
        throw Refusal("The content type '\(contentType)' is not application/protobuf.")
      }
    } catch let error where !(error is Refusal) {
      throw Refusal("The event's data is not a DocumentEventData: \(error)")
    }
  }
}

/// The documents of an event.
struct ReceivedChange {
  var before: Document?
  var after: Document?
  var updateMask: [FieldPath]

  /// A document that events of the function's kind always have.
  func present(_ document: Document?) throws -> Document {
    guard let document else {
      throw ReceivedEvent.Refusal("The event lacks a document that its type promises.")
    }
    return document
  }

  /// A document that events of the function's kind always have, decoded.
  func decoded<Payload: Decodable>(_ document: Document?) throws -> Payload {
    let document = try present(document)
    do {
      return try ValueDecoder().decode(Payload.self, from: document.fields)
    } catch {
      throw ReceivedEvent.Refusal(
        "The document \(document.name.path) does not decode as \(Payload.self): \(error)."
      )
    }
  }

  /// The change by its kind, each document made into a payload.
  func sorted<Payload: Sendable>(_ decode: (Document) throws -> Payload) throws -> Change<Payload> {
    guard let before else { return .created(try decode(try present(after))) }
    guard let after else { return .deleted(try decode(before)) }
    return .updated(before: try decode(before), after: try decode(after), fields: updateMask)
  }
}
