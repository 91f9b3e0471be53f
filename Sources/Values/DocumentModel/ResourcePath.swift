/// Segments below a database's `documents`, alternating collection and document ids.
///
/// An even count names a document (the empty path is the database's root), an odd one a
/// collection. The ids are raw: neither percent-encoded nor checked.
public struct ResourcePath: Sendable, Hashable {
  /// Raw ids, outermost first.
  public var segments: [String]

  /// A path of raw segments.
  public init(_ segments: [String] = []) {
    self.segments = segments
  }

  /// Splits `chats/c1/messages` at slashes.
  ///
  /// Leading, trailing and double slashes are kept as empty segments, for validation to refuse.
  public init(slashSeparated text: String) {
    self.segments =
      text.isEmpty
      ? [] : text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
  }

  /// Whether the path names a document.
  public var isDocument: Bool { !segments.isEmpty && segments.count.isMultiple(of: 2) }
  /// Whether the path names a collection.
  public var isCollection: Bool { !segments.count.isMultiple(of: 2) }

  /// The last segment, or nil for the root.
  public var id: String? { segments.last }

  /// The path without its last segment; the root's parent is the root.
  public var parent: ResourcePath { ResourcePath(Array(segments.dropLast())) }

  /// The path one segment deeper.
  public func appending(_ segment: String) -> ResourcePath { ResourcePath(segments + [segment]) }

  /// Whether this path is `ancestor` or lies below it.
  public func isBelowOrEqual(to ancestor: ResourcePath) -> Bool {
    segments.count >= ancestor.segments.count
      && zip(segments, ancestor.segments).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
  }
}

extension ResourcePath {
  /// Whether the segments are the same bytes; equivalent spellings name different documents.
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
  /// Compares segment by segment as ids do; a shorter path comes before those below it.
  public static func < (left: ResourcePath, right: ResourcePath) -> Bool {
    for (a, b) in zip(left.segments, right.segments) {
      let order = ValueOrder.compareIDs(a, b)
      if order != .equal { return order == .less }
    }
    return left.segments.count < right.segments.count
  }
}

/// `projects/{project}/databases/{database}`.
public struct DatabaseName: Sendable, Hashable {
  /// The project's id.
  public var project: String
  /// The database's id within the project.
  public var database: String

  /// A database by project and id; the id of a project's first database is `(default)`.
  public init(project: String, database: String = "(default)") {
    self.project = project
    self.database = database
  }

  /// Reads `projects/P/databases/D`; nil when malformed or when anything follows.
  public init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 4, parts[0] == "projects", parts[2] == "databases", !parts[1].isEmpty,
      !parts[3].isEmpty
    else { return nil }
    self.init(project: String(parts[1]), database: String(parts[3]))
  }
}

extension DatabaseName {
  /// Whether both parts are the same bytes.
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
  /// `projects/{project}/databases/{database}`.
  public var description: String { "projects/\(project)/databases/\(database)" }
}

/// The full resource name of a document: `projects/P/databases/D/documents/c/d…`.
public struct DocumentName: Sendable, Hashable {
  /// Where the document lives.
  public var database: DatabaseName
  /// The path, with an even, positive number of segments.
  public var path: ResourcePath

  /// A name from parts that the caller has checked.
  public init(database: DatabaseName, path: ResourcePath) {
    self.database = database
    self.path = path
  }

  /// Reads a full resource name; nil unless it has the shape of a document's.
  ///
  /// Ids are not checked beyond being non-empty; reserved ids are refused on write.
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

  /// The last segment of the collection's path.
  public var collectionID: String { path.parent.id ?? "" }
}

extension DocumentName: CustomStringConvertible {
  /// The full resource name.
  public var description: String { "\(database)/documents/\(path)" }
}

extension DocumentName: Comparable {
  /// Orders names by project, database, then path.
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
