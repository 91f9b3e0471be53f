import DocumentModel

/// The document that a path passed to `get`, `exists`, `getAfter` or `existsAfter` names.
///
/// The validation follows Firebase's emulator. A path that does not have the form of a document
/// path is an error, so `!exists(path)` does not hold. A path that no document can have, such as
/// `/a/__b__`, names a document that does not exist.
enum LookUpPath {
  /// The document, with a normalized path.
  case document(RulePath)
  /// A path that no document can have.
  case nothing

  /// The number of segments before the document's: `databases`, the database's id and `documents`.
  private static let prefixCount = 3
  private static let defaultDatabase = "(default)"

  /// Parses a path; throws if it does not name a document in the request's database.
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
      // The first segment, and every second segment after it, is a collection's id.
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
