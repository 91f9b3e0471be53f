/// A collection, whether or not it holds anything.
public struct CollectionReference: Sendable {
  /// The database it belongs to.
  public let firestore: Firestore
  let resourcePath: ResourcePath

  init(firestore: Firestore, resourcePath: ResourcePath) {
    self.firestore = firestore
    self.resourcePath = resourcePath
  }

  /// The collection's own id.
  public var id: String { resourcePath.id ?? "" }

  /// The path below the database, such as `chats/c1/messages`.
  public var path: String { resourcePath.description }

  /// The document that the collection belongs to; nil at the root.
  public var parent: DocumentReference? {
    resourcePath.segments.count < 2
      ? nil : DocumentReference(firestore: firestore, resourcePath: resourcePath.parent)
  }

  /// A document of this collection.
  ///
  /// An id with a slash throws where the reference is used, so ids from outside are safe here.
  public func document(_ id: String) -> DocumentReference {
    DocumentReference(firestore: firestore, resourcePath: resourcePath.appending(id))
  }

  /// A document with a new random id of 20 characters; nothing is written yet.
  public func document() -> DocumentReference {
    document(firestore.calls.makeID())
  }

  /// Creates a document with a new random id.
  ///
  /// Throws `FirestoreError`, and `ValueCodingError` for data that cannot be encoded.
  @discardableResult
  public func add(_ data: some Encodable) async throws -> DocumentReference {
    let reference = document()
    try await reference.create(data)
    return reference
  }

  /// Creates a document with a new random id.
  ///
  /// Throws `FirestoreError`, and `ValueCodingError` for data that cannot be encoded.
  @discardableResult
  public func add(_ fields: [String: FieldValue]) async throws -> DocumentReference {
    let reference = document()
    try await reference.create(fields)
    return reference
  }

  /// One page of the documents, including missing documents with collections below them.
  ///
  /// `pageToken` is the token of the previous page.
  /// Throws `FirestoreError`, as `DocumentReference.get()` does.
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
  /// Whether both are the same collection of the same database.
  public static func == (left: CollectionReference, right: CollectionReference) -> Bool {
    left.firestore.database == right.firestore.database && left.resourcePath == right.resourcePath
  }

  /// Hashes what `==` compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(firestore.database)
    hasher.combine(resourcePath)
  }
}

extension CollectionReference {
  /// All documents of the collection, to be narrowed down.
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

  /// Documents whose field relates to a value as the operator says.
  public func `where`(
    _ field: String,
    _ relation: FilterOperator,
    _ value: some Encodable
  ) -> DocumentQuery {
    query.where(field, relation, value)
  }

  /// Documents that meet a condition.
  public func `where`(_ filter: QueryFilter) -> DocumentQuery { query.where(filter) }

  /// The documents that have a field, ordered by its value.
  public func order(by field: String, descending: Bool = false) -> DocumentQuery {
    query.order(by: field, descending: descending)
  }

  /// At most this many documents.
  public func limit(_ count: Int) -> DocumentQuery { query.limit(count) }

  /// Reads all documents of the collection.
  ///
  /// Throws `FirestoreError`, as `DocumentQuery.get()` does.
  public func get() async throws -> QuerySnapshot { try await query.get() }

  /// The documents now and after every change, see `QuerySnapshots`.
  public func snapshots() -> QuerySnapshots { query.snapshots() }

  /// Counts the documents without reading them.
  ///
  /// Throws `FirestoreError`, as `DocumentQuery.get()` does.
  public func count() async throws -> Int { try await query.count() }
}

/// One page of a listing.
public struct DocumentPage: Sendable {
  /// The documents, by id.
  public var references: [DocumentReference]
  /// The token for the next page; nil on the last page.
  public var nextPageToken: String?
}

extension ResourcePath {
  /// Whether no segment is empty or hides a slash.
  var isWellFormed: Bool { segments.allSatisfy { !$0.isEmpty && !$0.utf8.contains(0x2F) } }
}

extension Result {
  /// The failure's error, or nil.
  var failure: (any Error)? {
    if case .failure(let error) = self { error } else { nil }
  }
}
