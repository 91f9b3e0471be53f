package import DocumentModel
package import FirestoreProtos
package import StatusCodes
import SwiftProtobuf

extension WireFormat {
  /// Parses `projects/P/databases/D`.
  package static func database(_ text: String) throws(StatusError) -> DatabaseName {
    try ResourceNameParser(text, label: "Database name").database()
  }

  /// Parses the full name of a document.
  package static func documentName(_ text: String) throws(StatusError) -> DocumentName {
    try ResourceNameParser(text, label: "Document name").document()
  }

  /// Parses the name of a document or of a database's root, `…/documents`, whose path is empty.
  package static func parent(
    _ text: String
  ) throws(StatusError) -> (database: DatabaseName, path: ResourcePath) {
    try ResourceNameParser(text, label: "Document parent name").parent()
  }

  /// Returns the name of a document or of a database's root, the inverse of `parent(_:)`.
  package static func parent(database: DatabaseName, path: ResourcePath) -> String {
    path.segments.isEmpty ? "\(database)/documents" : "\(database)/documents/\(path)"
  }

  /// Throws for a collection id that contains a slash, has the form `__x__` or is too long.
  package static func checkCollectionID(_ id: String) throws(StatusError) {
    try ResourceNameParser.checkCollectionID(id)
  }

  /// Throws for a document id with a slash, of the form `__x__` unless numeric, or too long.
  package static func checkDocumentID(_ id: String) throws(StatusError) {
    try ResourceNameParser.checkDocumentID(id)
  }

  /// Parses a field path.
  package static func fieldPath(_ text: String) throws(StatusError) -> FieldPath {
    guard !text.isEmpty else { throw .invalidArgument("Invalid empty property path string.") }
    guard let path = FieldPath(text) else {
      throw .invalidArgument(
        "Invalid property path \"\(text)\". Unquoted property paths must match regex "
          + "([a-zA-Z_][a-zA-Z_0-9]*), and quoted property paths must match regex "
          + "(`(?:[^`\\\\]|(?:\\\\.))+`)"
      )
    }
    if !path.isDocumentID, let reserved = path.segments.first(where: ResourceID.isReserved) {
      throw .invalidArgument("Invalid reserved name in field path \(reserved)")
    }
    return path
  }

  /// Parses the paths of a mask.
  package static func mask(
    _ proto: Google_Firestore_V1_DocumentMask
  ) throws(StatusError) -> [FieldPath] {
    var paths: [FieldPath] = []
    for text in proto.fieldPaths { paths.append(try fieldPath(text)) }
    return paths
  }

  /// Returns a mask of the given paths.
  package static func proto(mask: [FieldPath]) -> Google_Firestore_V1_DocumentMask {
    .with { $0.fieldPaths = mask.map(\.description) }
  }
}
