import DocumentModel
import FirestoreProtos
import FirestoreWire
import RuntimeSupport
import SwiftProtobuf

/// A document on one line, as Firestore's REST surface writes it.
enum DocumentLine {
  /// A document of a mebibyte may take several times that as JSON.
  static let bytesMax = 32 << 20

  /// The line, without its end; equal documents have equal lines.
  static func bytes(_ document: FirestoreDocument) throws -> [UInt8] {
    var options = JSONEncodingOptions()
    options.useDeterministicOrdering = true
    return try WireFormat.proto(document).jsonUTF8Bytes(options: options)
  }

  /// Reads a line; throws `INVALID_ARGUMENT` that says what is wrong with it.
  static func document(_ line: ArraySlice<UInt8>) throws(StatusError) -> FirestoreDocument {
    let message: Google_Firestore_V1_Document
    do {
      message = try Google_Firestore_V1_Document(jsonUTF8Bytes: Array(line))
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
  /// The document moved to another project, along with its references into the old project.
  func moved(from old: String, to new: String) -> FirestoreDocument {
    guard old != new else { return self }
    let move = ProjectMove(old: old, new: new)
    var moved = self
    moved.name = move.name(name)
    moved.fields = fields.mapValues(move.value)
    return moved
  }
}

/// Replaces one project's id by another's.
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
