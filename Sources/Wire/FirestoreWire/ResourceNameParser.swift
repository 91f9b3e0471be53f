import DocumentModel
import StatusCodes

/// A parser of resource names with production's error messages about the place of an error.
struct ResourceNameParser {
  private let label: String
  private let collectionLabel: String
  private let text: String
  private let parts: [Substring]

  /// Creates a parser of one name.
  ///
  /// `label` begins the error messages; `collectionLabel` begins the message about a collection's
  /// name.
  init(_ text: String, label: String, collectionLabel: String? = nil) {
    self.label = label
    self.collectionLabel = collectionLabel ?? label
    self.text = text
    // Split by bytes; splitting by characters would take several times as long.
    self.parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      .map(Substring.init)
  }

  /// Parses `projects/P/databases/D` with nothing after it.
  func database() throws(StatusError) -> DatabaseName {
    let database = try databasePrefix()
    guard parts.count == 4 else {
      throw invalid("has extra characters at index \(offset(of: 4) - 1).")
    }
    return database
  }

  /// Parses the name of a document.
  func document() throws(StatusError) -> DocumentName {
    let (database, path) = try parent()
    guard !path.segments.isEmpty else { throw lacksSlash(label) }
    return DocumentName(database: database, path: path)
  }

  /// Parses the name of a document or of a database's root, `…/documents`.
  func parent() throws(StatusError) -> (DatabaseName, ResourcePath) {
    let database = try databasePrefix()
    try literal("documents", at: 4)
    var segments: [String] = []
    segments.reserveCapacity(parts.count - 5)
    var index = 5
    while index < parts.count {
      segments.append(try id(at: index))
      try Self.checkCollectionID(segments[segments.count - 1])
      guard index + 1 < parts.count else { throw lacksSlash(collectionLabel) }
      segments.append(try id(at: index + 1))
      try Self.checkDocumentID(segments[segments.count - 1])
      index += 2
    }
    return (database, ResourcePath(segments))
  }

  /// Throws if an id is not valid for a collection.
  static func checkCollectionID(_ id: String) throws(StatusError) {
    try check(id, isCollection: true, label: "Collection id")
  }

  /// Throws if an id is not valid for a document; a numeric id such as `__id7__` is valid.
  static func checkDocumentID(_ id: String) throws(StatusError) {
    try check(id, isCollection: false, label: "Resource id")
  }

  private static func check(
    _ id: String,
    isCollection: Bool,
    label: String
  ) throws(StatusError) {
    switch ResourceID.flaw(of: id, isCollection: isCollection) {
    // The caller handles an empty id: here it ends a name, elsewhere it is missing.
    case nil, .isEmpty: return
    case .containsSlash:
      throw .invalidArgument("\(label) \"\(id)\" is invalid because it contains \"/\".")
    case .isDots, .isReserved:
      throw .invalidArgument("\(label) \"\(id)\" is invalid because it is reserved.")
    case .isTooLong:
      throw .invalidArgument(
        "The key path element name is longer than \(ResourceID.bytesMax) bytes."
      )
    }
  }

  private func databasePrefix() throws(StatusError) -> DatabaseName {
    if text.utf8.last == UInt8(ascii: "/") { throw invalid("has invalid trailing \"/\".") }
    try literal("projects", at: 0)
    let project = try id(at: 1)
    try literal("databases", at: 2)
    return DatabaseName(project: project, database: try id(at: 3))
  }

  private func literal(_ word: String, at index: Int) throws(StatusError) {
    guard index < parts.count else { throw lacksSlash(label) }
    guard parts[index] == word else {
      throw invalid("lacks \"\(word)\" at index \(offset(of: index)).")
    }
  }

  private func id(at index: Int) throws(StatusError) -> String {
    guard index < parts.count else { throw lacksSlash(label) }
    let id = String(parts[index])
    guard !id.isEmpty else { throw invalid("lacks a resource id at index \(offset(of: index)).") }
    guard id != ".", id != ".." else {
      throw invalid("contains a resource id \"\(id)\" at index \(offset(of: index)).")
    }
    return id
  }

  private func lacksSlash(_ label: String) -> StatusError {
    .invalidArgument("\(label) \"\(text)\" lacks \"/\" at index \(text.utf16.count).")
  }

  private func invalid(_ complaint: String) -> StatusError {
    .invalidArgument("\(label) \"\(text)\" \(complaint)")
  }

  /// Returns the index at which a part begins, in UTF-16 code units as in the official servers.
  private func offset(of index: Int) -> Int {
    parts.prefix(index).reduce(0) { $0 + $1.utf16.count + 1 }
  }
}
