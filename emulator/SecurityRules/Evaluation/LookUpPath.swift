import DocumentModel

/// The document that a path of `get`, `exists`, `getAfter` or `existsAfter` names.
///
/// Judged as Firebase's own emulator does: a path that is none of a document is an error, so that
/// `!exists(path)` does not hold; one that no document can have, such as `/a/__b__`, is a document
/// that does not exist.
enum LookUpPath {
  /// The document, by the path that all spellings of it share.
  case document(RulePath)
  /// No document can have this path.
  case nothing

  /// Segments before those of the document: `databases`, the database's id and `documents`.
  private static let prefixCount = 3
  private static let defaultDatabase = "(default)"

  /// Throws when the path is not that of a document in the request's database.
  init(_ path: RulePath, database: String) throws(OperationError) {
    if path.hasPlaceholders { throw RulePath.unbound }
    let segments = path.segments
    guard segments.count > Self.prefixCount,
      (segments.count - Self.prefixCount).isMultiple(of: 2),
      segments[0] == "databases", segments[2] == "documents"
    else { throw OperationError(message: "The path is not that of a document.") }
    let named = segments[1].isEmpty ? Self.defaultDatabase : segments[1]
    guard named.isIdentical(to: database) else {
      throw OperationError(message: "The path is that of another database.")
    }
    self = .document(path)
    for place in segments.indices.dropFirst(Self.prefixCount) {
      // The first segment, and every second after it, is a collection's id.
      let isCollection = (place - Self.prefixCount).isMultiple(of: 2)
      switch ResourceID.flaw(of: segments[place], isCollection: isCollection) {
      case nil: break
      case .isEmpty where !isCollection:
        throw OperationError(message: "The path has an empty document id.")
      default: self = .nothing
      }
    }
    guard case .document = self, segments[1].isEmpty else { return }
    var spelled = path
    spelled.segments[1] = named
    self = .document(spelled)
  }
}
