import DocumentModel
import RuntimeSupport

/// Reads resource names and says, as production does, where a bad one goes wrong.
struct ResourceNameParser {
  /// The longest collection or document id, in bytes of UTF-8.
  static let idBytesMax = 1500

  private let label: String
  private let text: String
  private let parts: [Substring]

  /// A parser of one name; `label` begins the error messages.
  init(_ text: String, label: String) {
    self.label = label
    self.text = text
    self.parts = text.split(separator: "/", omittingEmptySubsequences: false)
  }

  /// `projects/P/databases/D` and nothing behind it.
  func database() throws(StatusError) -> DatabaseName {
    let database = try databasePrefix()
    guard parts.count == 4 else {
      throw invalid("has extra characters at index \(offset(of: 4) - 1).")
    }
    return database
  }

  /// A document's name.
  func document() throws(StatusError) -> DocumentName {
    let (database, path) = try parent()
    guard !path.segments.isEmpty else { throw lacksSlash() }
    return DocumentName(database: database, path: path)
  }

  /// A document's name or a database's root, `…/documents`.
  func parent() throws(StatusError) -> (DatabaseName, ResourcePath) {
    let database = try databasePrefix()
    try literal("documents", at: 4)
    var segments: [String] = []
    segments.reserveCapacity(parts.count - 5)
    var index = 5
    while index < parts.count {
      segments.append(try id(at: index))
      try Self.checkCollectionID(segments[segments.count - 1])
      segments.append(try id(at: index + 1))
      try Self.checkDocumentID(segments[segments.count - 1])
      index += 2
    }
    return (database, ResourcePath(segments))
  }

  /// Refuses what may not name a collection.
  static func checkCollectionID(_ id: String) throws(StatusError) {
    try check(id, label: "Collection id")
  }

  /// Refuses what may not name a document; `__id7__`, a numeric id, may.
  static func checkDocumentID(_ id: String) throws(StatusError) {
    if ValueOrder.numericID(id) != nil { return }
    try check(id, label: "Resource id")
  }

  /// Whether a name has the form `__x__`, which Firestore keeps to itself.
  static func isReserved(_ name: some StringProtocol) -> Bool {
    name.utf8.count > 4 && name.hasPrefix("__") && name.hasSuffix("__")
  }

  private static func check(_ id: String, label: String) throws(StatusError) {
    if id.utf8.contains(UInt8(ascii: "/")) {
      throw .invalidArgument("\(label) \"\(id)\" is invalid because it contains \"/\".")
    }
    if isReserved(id) || id == "." || id == ".." {
      throw .invalidArgument("\(label) \"\(id)\" is invalid because it is reserved.")
    }
    if id.utf8.count > idBytesMax {
      throw .invalidArgument(
        "The key path element name is longer than \(idBytesMax) bytes."
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
    guard index < parts.count else { throw lacksSlash() }
    guard parts[index] == word else {
      throw invalid("lacks \"\(word)\" at index \(offset(of: index)).")
    }
  }

  private func id(at index: Int) throws(StatusError) -> String {
    guard index < parts.count else { throw lacksSlash() }
    let id = String(parts[index])
    guard !id.isEmpty else { throw invalid("lacks a resource id at index \(offset(of: index)).") }
    guard id != ".", id != ".." else {
      throw invalid("contains a resource id \"\(id)\" at index \(offset(of: index)).")
    }
    return id
  }

  private func lacksSlash() -> StatusError {
    invalid("lacks \"/\" at index \(text.utf16.count).")
  }

  private func invalid(_ complaint: String) -> StatusError {
    .invalidArgument("\(label) \"\(text)\" \(complaint)")
  }

  /// Where a part begins, counted as the official servers count: in UTF-16 units.
  private func offset(of index: Int) -> Int {
    parts.prefix(index).reduce(0) { $0 + $1.utf16.count + 1 }
  }
}
