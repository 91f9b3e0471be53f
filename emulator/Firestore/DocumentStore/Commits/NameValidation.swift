import DocumentModel
import StatusCodes

/// The checks of resource names, which throw production's errors.
enum NameValidation {
  /// Checks a document's path, for reads and writes.
  static func check(_ name: DocumentName) throws(StatusError) {
    guard name.path.isDocument else {
      throw .invalidArgument(
        "Document name \"\(name)\" must have an even number of path elements after \"documents\"."
      )
    }
    try checkIDs(name.path, of: "Document", fullName: "\(name)")
    let bytes = name.path.segments.reduce(name.path.segments.count - 1) { $0 + $1.utf8.count }
    guard bytes <= DocumentLimits.pathBytesMax else {
      throw .invalidArgument(
        "The document's path has \(bytes) bytes; it may have \(DocumentLimits.pathBytesMax)."
      )
    }
  }

  /// Checks a parent, either the empty path or a document's path.
  static func check(parent: ResourcePath, in database: DatabaseName) throws(StatusError) {
    guard !parent.segments.isEmpty else { return }
    try check(DocumentName(database: database, path: parent))
  }

  /// Checks one collection ID of a query or a list.
  static func check(collectionID: String) throws(StatusError) {
    try check(id: collectionID, isCollection: true, of: "Collection", fullName: collectionID)
  }

  /// Checks that a name belongs to the database of the request.
  static func check(_ name: DocumentName, isIn database: DatabaseName) throws(StatusError) {
    guard name.database == database else {
      throw .invalidArgument(
        "Document name \"\(name)\" is not in database \"\(database)\"; a request covers one database."
      )
    }
  }

  private static func checkIDs(
    _ path: ResourcePath,
    of kind: String,
    fullName: String
  ) throws(StatusError) {
    guard path.segments.count <= DocumentLimits.collectionDepthMax * 2 else {
      throw .invalidArgument(
        "Key path is too long. Cannot exceed \(DocumentLimits.collectionDepthMax) elements."
      )
    }
    for (index, id) in path.segments.enumerated() {
      try check(id: id, isCollection: index.isMultiple(of: 2), of: kind, fullName: fullName)
    }
  }

  private static func check(
    id: String,
    isCollection: Bool,
    of kind: String,
    fullName: String
  ) throws(StatusError) {
    let word = isCollection ? "Collection" : "Resource"
    switch ResourceID.flaw(of: id, isCollection: isCollection) {
    case nil: return
    case .isEmpty:
      throw .invalidArgument("\(kind) name \"\(fullName)\" has an empty path element.")
    case .isDots:
      throw .invalidArgument("\(kind) name \"\(fullName)\" contains a resource id \"\(id)\".")
    case .containsSlash:
      throw .invalidArgument("\(word) id \"\(id)\" is invalid because it contains \"/\".")
    case .isTooLong:
      throw .invalidArgument(
        "The key path element \(isCollection ? "kind" : "name") is longer than "
          + "\(ResourceID.bytesMax) bytes."
      )
    case .isReserved:
      throw .invalidArgument("\(word) id \"\(id)\" is invalid because it is reserved.")
    }
  }
}
