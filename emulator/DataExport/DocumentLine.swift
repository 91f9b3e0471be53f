import DocumentModel
import FirestoreProtos
import FirestoreWire
import StatusCodes
import SwiftProtobuf

/// The encoding of a document as one line, in the JSON of Firestore's REST API.
enum DocumentLine {
  /// The maximum size of a line; a document of one mebibyte may take several times that as JSON.
  static let bytesMax = 32 << 20

  /// Returns the line without its line feed; equal documents have equal lines.
  static func bytes(_ document: FirestoreDocument) throws -> [UInt8] {
    var options = JSONEncodingOptions()
    options.useDeterministicOrdering = true
    return try WireFormat.proto(document).jsonUTF8Bytes(options: options)
  }

  /// Decodes a line; throws `INVALID_ARGUMENT` with a description of the problem.
  static func document(_ line: [UInt8]) throws(StatusError) -> FirestoreDocument {
    let message: Google_Firestore_V1_Document
    do {
      message = try Google_Firestore_V1_Document(jsonUTF8Bytes: line)
    } catch {
      throw .invalidArgument("no document in Firestore's JSON form")
    }
    guard message.hasCreateTime, message.hasUpdateTime else {
      throw .invalidArgument("a document without createTime or updateTime")
    }
    return try WireFormat.document(message)
  }
}

extension FirestoreDocument {
  /// Returns the document moved to another project, with its references into the old project.
  func moved(from old: String, to new: String) -> FirestoreDocument {
    guard old != new else { return self }
    let move = ProjectMove(old: old, new: new)
    var moved = self
    moved.name = move.name(name)
    moved.fields = fields.mapValues(move.value)
    return moved
  }
}

/// The replacement of one project's id with another project's id.
private struct ProjectMove {
  var old: String
  var new: String

  func name(_ name: DocumentName) -> DocumentName {
    guard name.database.project == old else { return name }
    var moved = name
    moved.database.project = new
    return moved
  }

  func value(_ value: FirestoreValue) -> FirestoreValue {
    switch value {
    case .reference(let target): .reference(name(target))
    case .array(let elements): .array(elements.map(self.value))
    case .map(let fields): .map(fields.mapValues(self.value))
    default: value
    }
  }
}
