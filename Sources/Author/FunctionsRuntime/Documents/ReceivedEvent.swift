import Events
import FirestoreProtos
import FirestoreWire
import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A document event whose envelope and documents are parsed, but not yet decoded as the payload.
struct ReceivedEvent {
  var id: String
  var kind: ChangeKind
  var time: Timestamp?
  var name: DocumentName
  var change: ReceivedChange
  var auth: EventAuth

  /// Parses an event whose documents are protobuf, base64-encoded protobuf, or JSON.
  init(_ event: CloudEvent) throws {
    guard let type = DocumentEventType(name: event.type) else {
      throw EventRefusedError("The event type \(event.type) is not one of a Firestore document.")
    }
    let change = try WireFormat.change(from: Self.data(of: event))
    // The data contains the exact name. The attributes repeat it with escapes.
    guard let name = (change.after ?? change.before)?.name else {
      throw EventRefusedError("The event has no document.")
    }
    id = event.id
    kind = type.kind
    time = event.time.flatMap { Timestamp($0) }
    auth = EventAuth(event)
    self.name = name
    self.change = ReceivedChange(
      before: change.before,
      after: change.after,
      updateMask: change.updateMask
    )
  }

  private static func data(
    of event: CloudEvent
  ) throws -> Google_Events_Cloud_Firestore_V1_DocumentEventData {
    let contentType = event.dataContentType ?? ""
    let type = MediaType(contentType)
    do {
      if type.isJSON {
        return try Google_Events_Cloud_Firestore_V1_DocumentEventData(jsonUTF8Bytes: event.data)
      }
      guard type.text == "application/protobuf" || type.text == "application/x-protobuf" else {
        throw EventRefusedError("The content type '\(contentType)' is not application/protobuf.")
      }
      return try Google_Events_Cloud_Firestore_V1_DocumentEventData(
        serializedBytes: unwrapped(event.data)
      )
    } catch let error where !(error is EventRefusedError) {
      throw EventRefusedError("The event's data is not a DocumentEventData: \(error)")
    }
  }

  /// Decodes base64 text, in which Google's emulator sends protobuf; other data is unchanged.
  ///
  /// No protobuf message of this type begins with a letter, because the tags of its three fields
  /// are smaller than the ASCII codes of letters.
  private static func unwrapped(_ data: [UInt8]) -> [UInt8] {
    guard let first = data.first, (65...90).contains(first) || (97...122).contains(first) else {
      return data
    }
    return Data(base64Encoded: Data(data)).map(Array.init) ?? data
  }
}

/// The versions of the document that an event contains, and the fields that differ.
struct ReceivedChange {
  var before: FirestoreDocument?
  var after: FirestoreDocument?
  var updateMask: [FieldPath]
}
