import DataExport
import DocumentModel
import Events
import FirestoreProtos
import FirestoreWire
import Foundation
import StatusCodes
import SwiftProtobuf

/// The body of `POST /hearth/v1/functions/{name}/fire` for a document change that is not stored.
struct FiredEvent {
  var change: DocumentChange

  /// Parses `{"document": PATH, "data": JSON, "before": JSON}`; throws `INVALID_ARGUMENT`.
  ///
  /// A document is `TaggedJSON`, or in Firestore's format if its only top-level key is `fields`. In
  /// the first, whole numbers become integers. Both versions get `time` as create and update time.
  init(json: [UInt8], database: DatabaseName, time: Timestamp) throws {
    let body: Google_Protobuf_Struct
    do {
      body = try Google_Protobuf_Struct(jsonUTF8Bytes: json)
    } catch {
      throw StatusError.invalidArgument("The body is not a JSON object: \(error)")
    }
    guard let slashed = body.fields["document"]?.stringValue else {
      throw StatusError.invalidArgument(
        "The function waits for events of documents: give --document PATH with --data or --before."
      )
    }
    let path = ResourcePath(slashSeparated: slashed)
    guard path.isDocument, !path.segments.contains("") else {
      throw StatusError.invalidArgument(
        "\"\(path)\" is not a document's path; write one such as chats/c1."
      )
    }
    let name = DocumentName(database: database, path: path)
    func document(_ key: String) throws -> FirestoreDocument? {
      guard let json = body.fields[key] else { return nil }
      guard case .structValue(let object) = json.kind else {
        throw StatusError.invalidArgument("\"\(key)\" is not a JSON object.")
      }
      return FirestoreDocument(
        name: name,
        fields: try Self.fields(object, at: "--\(key)", in: database),
        createTime: time,
        updateTime: time
      )
    }
    let before = try document("before")
    let after = try document("data")
    guard before != nil || after != nil else {
      throw StatusError.invalidArgument("Give \"data\", \"before\" or both.")
    }
    change = DocumentChange(name: name, before: before, after: after)
  }

  private static func fields(
    _ object: Google_Protobuf_Struct,
    at place: String,
    in database: DatabaseName
  ) throws -> MapValue {
    guard object.fields.count == 1, case .structValue(let inner) = object.fields["fields"]?.kind
    else { return try TaggedJSON.fields(of: object.jsonUTF8Bytes(), at: place, in: database) }
    let json: [UInt8] = try Google_Protobuf_Struct.with {
      $0.fields["fields"] = .init(structValue: inner)
    }
    .jsonUTF8Bytes()
    do {
      let message = try Google_Firestore_V1_MapValue(jsonUTF8Bytes: json)
      return try WireFormat.fields(message.fields)
    } catch let error as any StatusConvertible {
      throw error
    } catch {
      throw StatusError.invalidArgument(
        "\"fields\" is not in Firestore's form, such as {\"text\": {\"stringValue\": \"hi\"}}."
      )
    }
  }
}
