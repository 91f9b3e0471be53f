import DataExport
import DocumentModel
import Events
import FirestoreProtos
import FirestoreWire
import JSONText
import StatusCodes
import SwiftProtobuf

/// The body of `POST /hearth/v1/functions/{name}/fire` for a document change that is not stored.
struct FiredEvent {
  var change: DocumentChange

  /// Parses `{"document": PATH, "data": JSON, "before": JSON}`; throws `INVALID_ARGUMENT`.
  ///
  /// A document is `TaggedJSON`, or in Firestore's format if its only top-level key is `fields`.
  /// Both versions get `time` as create and update time.
  init(json: [UInt8], database: DatabaseName, time: Timestamp) throws {
    // Why a text is not JSON is known to the command, which reads it first.
    guard let members = try? jsonMembers(of: json) else {
      throw StatusError.invalidArgument("The body is not a JSON object.")
    }
    guard let text = members["document"] else {
      throw StatusError.invalidArgument(
        "The function waits for events of documents: give --document PATH with --data or --before."
      )
    }
    // What is no string is no path either.
    let slashed = (try? String(decodingJSON: text)) ?? ""
    let path = ResourcePath(slashSeparated: slashed)
    guard path.isDocument, !path.segments.contains("") else {
      throw StatusError.invalidArgument(
        "\"\(path)\" is not a document's path; write one such as chats/c1."
      )
    }
    let name = DocumentName(database: database, path: path)
    func document(_ key: String) throws -> FirestoreDocument? {
      guard let json = members[key] else { return nil }
      guard json.first == UInt8(ascii: "{") else {
        throw StatusError.invalidArgument("\"\(key)\" is not a JSON object.")
      }
      return FirestoreDocument(
        name: name,
        fields: try Self.fields(json, at: "--\(key)", in: database),
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
    _ json: [UInt8],
    at place: String,
    in database: DatabaseName
  ) throws -> MapValue {
    let members = try jsonMembers(of: json) ?? [:]
    guard members.count == 1, members["fields"]?.first == UInt8(ascii: "{") else {
      return try TaggedJSON.fields(of: json, at: place, in: database)
    }
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
