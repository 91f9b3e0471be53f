/// A path below a database's `documents`: alternating collection and document ids.
///
/// An even number of segments names a document, an odd number a collection. The empty path is the
/// database's root. Ids are raw: neither percent-encoded nor validated.
public struct ResourcePath: Sendable, Hashable {
  /// The raw ids, outermost first.
  public var segments: [String]

  /// Creates a path from raw segments.
  public init(_ segments: [String] = []) {
    self.segments = segments
  }

  /// Creates a path from text such as `chats/c1/messages`, split at slashes.
  ///
  /// Leading, trailing and double slashes are kept as empty segments, for validation to refuse.
  public init(slashSeparated text: String) {
    self.segments =
      text.isEmpty
      ? [] : text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
  }

  /// True if the path names a document.
  public var isDocument: Bool { !segments.isEmpty && segments.count.isMultiple(of: 2) }
  /// True if the path names a collection.
  public var isCollection: Bool { !segments.count.isMultiple(of: 2) }

  /// The last segment; nil for the root.
  public var id: String? { segments.last }

  /// The path without its last segment; the root's parent is the root.
  public var parent: ResourcePath { ResourcePath(Array(segments.dropLast())) }

  /// Returns the path with one more segment.
  public func appending(_ segment: String) -> ResourcePath { ResourcePath(segments + [segment]) }

  /// Returns true if this path equals `ancestor` or lies below it.
  public func isBelowOrEqual(to ancestor: ResourcePath) -> Bool {
    segments.count >= ancestor.segments.count
      && zip(segments, ancestor.segments).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
  }
}

extension ResourcePath {
  /// Returns true if both paths have the same segments, byte for byte.
  ///
  /// Canonically equivalent Unicode spellings name different documents.
  public static func == (left: ResourcePath, right: ResourcePath) -> Bool {
    left.segments.areIdentical(to: right.segments)
  }

  /// Hashes the bytes that `==` compares.
  public func hash(into hasher: inout Hasher) { segments.hashBytes(into: &hasher) }
}

extension ResourcePath: CustomStringConvertible {
  /// The segments joined by slashes.
  public var description: String { segments.joined(separator: "/") }
}

extension ResourcePath: Comparable {
  /// Compares segment by segment in the order of ids; a path comes before the paths below it.
  public static func < (left: ResourcePath, right: ResourcePath) -> Bool {
    for (a, b) in zip(left.segments, right.segments) {
      let order = ValueOrder.compareIDs(a, b)
      if order != .equal { return order == .less }
    }
    return left.segments.count < right.segments.count
  }
}

/// The resource name of a database: `projects/{project}/databases/{database}`.
public struct DatabaseName: Sendable, Hashable {
  /// The project's id.
  public var project: String
  /// The database's id within the project.
  public var database: String

  /// Creates a name from a project id and a database id.
  ///
  /// The id of a project's first database is `(default)`.
  public init(project: String, database: String = "(default)") {
    self.project = project
    self.database = database
  }

  /// Parses `projects/P/databases/D`; nil if the text is malformed or continues after the database.
  public init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 4, parts[0] == "projects", parts[2] == "databases", !parts[1].isEmpty,
      !parts[3].isEmpty
    else { return nil }
    self.init(project: String(parts[1]), database: String(parts[3]))
  }
}

extension DatabaseName {
  /// Returns true if project and database are the same, byte for byte.
  public static func == (left: DatabaseName, right: DatabaseName) -> Bool {
    left.project.isIdentical(to: right.project) && left.database.isIdentical(to: right.database)
  }

  /// Hashes the bytes that `==` compares.
  public func hash(into hasher: inout Hasher) {
    project.hashBytes(into: &hasher)
    database.hashBytes(into: &hasher)
  }
}

extension DatabaseName: CustomStringConvertible {
  /// The resource name in the form `projects/{project}/databases/{database}`.
  public var description: String { "projects/\(project)/databases/\(database)" }
}

/// The full resource name of a document: `projects/P/databases/D/documents/c/d…`.
public struct DocumentName: Sendable, Hashable {
  /// The database that holds the document.
  public var database: DatabaseName
  /// The path, with an even, positive number of segments.
  public var path: ResourcePath

  /// Creates a name from parts that the caller has validated.
  public init(database: DatabaseName, path: ResourcePath) {
    self.database = database
    self.path = path
  }

  /// Parses a full resource name; nil if the text does not have the form of a document name.
  ///
  /// Ids are only checked for being non-empty; reserved ids are refused on write.
  public init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count >= 7, parts.count.isMultiple(of: 2) == false, parts[0] == "projects",
      parts[2] == "databases", parts[4] == "documents", !parts.contains(where: \.isEmpty)
    else { return nil }
    self.database = DatabaseName(project: String(parts[1]), database: String(parts[3]))
    self.path = ResourcePath(parts.dropFirst(5).map(String.init))
  }

  /// The document's own id.
  public var id: String { path.id ?? "" }

  /// The path of the collection that holds the document.
  public var collection: ResourcePath { path.parent }

  /// The id of the collection that holds the document.
  public var collectionID: String { path.parent.id ?? "" }
}

extension DocumentName: CustomStringConvertible {
  /// The full resource name.
  public var description: String { "\(database)/documents/\(path)" }
}

extension DocumentName: Comparable {
  /// Orders names by project, then database, then path.
  public static func < (left: DocumentName, right: DocumentName) -> Bool {
    let project = ValueOrder.compareText(left.database.project, right.database.project)
    if project != .equal { return project == .less }
    let database = ValueOrder.compareBytes(
      left.database.database.utf8,
      right.database.database.utf8
    )
    if database != .equal { return database == .less }
    return left.path < right.path
  }
}
