/// A reference to a collection, which may be empty.
public struct CollectionReference: Sendable {
  /// The database that contains the collection.
  public let firestore: Firestore
  let resourcePath: ResourcePath

  init(firestore: Firestore, resourcePath: ResourcePath) {
    self.firestore = firestore
    self.resourcePath = resourcePath
  }

  /// The last segment of the collection's path.
  public var id: String { resourcePath.id ?? "" }

  /// The collection's path below the database, such as `chats/c1/messages`.
  public var path: String { resourcePath.description }

  /// The document that contains the collection; nil for a collection at the root.
  public var parent: DocumentReference? {
    resourcePath.segments.count < 2
      ? nil : DocumentReference(firestore: firestore, resourcePath: resourcePath.parent)
  }

  /// Returns a reference to a document of this collection.
  ///
  /// You can pass untrusted ids: an id that contains a slash cannot point elsewhere, and throws
  /// where the reference is used.
  public func document(_ id: String) -> DocumentReference {
    DocumentReference(firestore: firestore, resourcePath: resourcePath.appending(id))
  }

  /// Returns a reference to a new document with a random id of 20 characters, without writing it.
  public func document() -> DocumentReference {
    document(firestore.calls.makeID())
  }

  /// Creates a document with a random id and returns a reference to it.
  ///
  /// Throws `FirestoreError`, and `ValueCodingError` for data that cannot be encoded.
  @discardableResult
  public func add(_ data: some Encodable) async throws -> DocumentReference {
    let reference = document()
    try await reference.create(data)
    return reference
  }

  /// Creates a document with a random id and returns a reference to it.
  ///
  /// Throws `FirestoreError`, and `ValueCodingError` for data that cannot be encoded.
  @discardableResult
  public func add(_ fields: [String: FieldValue]) async throws -> DocumentReference {
    let reference = document()
    try await reference.create(fields)
    return reference
  }

  /// Reads one page of the documents, including missing documents that have subcollections.
  ///
  /// `pageToken` is the token that the previous page returned. Throws `FirestoreError`, as
  /// `DocumentReference.get()` does.
  public func listDocuments(
    pageSize: Int = 300,
    pageToken: String? = nil
  ) async throws -> DocumentPage {
    try await firestore.calls.listDocuments(self, pageSize: pageSize, pageToken: pageToken)
  }

  func validPath() throws(FirestoreError) -> ResourcePath {
    guard resourcePath.isCollection, resourcePath.isWellFormed else {
      throw FirestoreError(.invalidArgument, "\"\(path)\" is not the path of a collection")
    }
    return resourcePath
  }
}

extension CollectionReference: Hashable {
  /// Returns true if both refer to the same collection of the same database.
  public static func == (left: CollectionReference, right: CollectionReference) -> Bool {
    left.firestore.database == right.firestore.database && left.resourcePath == right.resourcePath
  }

  /// Hashes the database and the path.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(firestore.database)
    hasher.combine(resourcePath)
  }
}

extension CollectionReference {
  /// A query for all documents of the collection.
  public var query: DocumentQuery {
    DocumentQuery(
      firestore: firestore,
      query: Query(
        database: firestore.database,
        parent: resourcePath.parent,
        collectionID: id
      ),
      failure: Result { try validPath() }.failure
    )
  }

  /// Returns a query for the documents whose field satisfies a comparison with a value.
  public func `where`(
    _ field: String,
    _ relation: FilterOperator,
    _ value: some Encodable
  ) -> DocumentQuery {
    query.where(field, relation, value)
  }

  /// Returns a query for the documents whose field at a path satisfies a comparison with a value.
  public func `where`(
    _ field: FieldPath,
    _ relation: FilterOperator,
    _ value: some Encodable
  ) -> DocumentQuery {
    query.where(field, relation, value)
  }

  /// Returns a query for documents that match a filter.
  public func `where`(_ filter: QueryFilter) -> DocumentQuery { query.where(filter) }

  /// Returns a query for the documents that have a field, ordered by its value.
  public func order(by field: String, descending: Bool = false) -> DocumentQuery {
    query.order(by: field, descending: descending)
  }

  /// Returns a query for the documents that have a field at a path, ordered by its value.
  public func order(by field: FieldPath, descending: Bool = false) -> DocumentQuery {
    query.order(by: field, descending: descending)
  }

  /// Returns a query for at most this many documents.
  public func limit(_ count: Int) -> DocumentQuery { query.limit(count) }

  /// Reads all documents of the collection.
  ///
  /// Throws `FirestoreError`, as `DocumentQuery.get()` does.
  public func get() async throws -> QuerySnapshot { try await query.get() }

  /// Returns a sequence of the current documents and their state after every change.
  ///
  /// See `QuerySnapshots` for its behavior.
  public func snapshots() -> QuerySnapshots { query.snapshots() }

  /// Counts the documents without reading them.
  ///
  /// Throws `FirestoreError`, as `DocumentQuery.get()` does.
  public func count() async throws -> Int { try await query.count() }
}

/// One page of a listing of documents.
public struct DocumentPage: Sendable {
  /// The documents of the page, ordered by id.
  public var references: [DocumentReference]
  /// The token that reads the next page; nil on the last page.
  public var nextPageToken: String?
}

extension ResourcePath {
  /// True if no segment is empty or contains a slash.
  var isWellFormed: Bool { segments.allSatisfy { !$0.isEmpty && !$0.utf8.contains(0x2F) } }
}

extension Result {
  /// The error of a failure; nil for a success.
  var failure: (any Error)? {
    if case .failure(let error) = self { error } else { nil }
  }
}
