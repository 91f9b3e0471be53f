@_exported public import DocumentModel
import FirestoreProtos
import FirestoreWire
import GoogleAccess
public import OutboundHTTP
import RuntimeSupport

/// A Firestore database, as a function or a server sees it.
///
/// ```swift
/// let firestore = Firestore(environment: await FunctionsApp.environment())
/// let user: User = try await firestore.document("users/tina").get().data()
/// ```
///
/// It is a value; copies share connections. It has the rights of the server client: access rules do
/// not apply, unless `acting(as:)` says otherwise.
public struct Firestore: Sendable {
  /// The database's name.
  public let database: DatabaseName
  let calls: FirestoreCalls

  /// A database reached over HTTP, according to the settings.
  public init(
    _ settings: FirestoreSettings,
    http: any HTTPTransport = OutboundClient()
  ) {
    self.init(
      project: settings.project,
      database: settings.database,
      transport: RESTTransport(
        endpoint: settings.endpoint,
        timeout: settings.timeout,
        responseBytesMax: settings.responseBytesMax,
        http: http,
        tokens: settings.credentials.map { GoogleCredentials(source: $0, http: http) }
      ),
      credential: settings.credential
    )
  }

  /// A database that an environment describes, see `FirestoreSettings(environment:)`.
  ///
  /// A missing variable throws with the first call and not here, because a functions binary also
  /// runs without any variables, to write its manifest.
  public init(
    environment: [String: String],
    http: (any HTTPTransport)? = nil
  ) {
    do {
      let settings = try FirestoreSettings(environment: environment)
      self.init(
        settings,
        http: http ?? OutboundClient(configuration: .init(environment: environment))
      )
    } catch {
      self.init(
        project: environment["GCLOUD_PROJECT"] ?? "unknown",
        transport: UnavailableTransport(reason: error)
      )
    }
  }

  /// A database reached in any other way, such as straight through an emulator's handlers.
  package init(
    project: String,
    database: String = "(default)",
    transport: any FirestoreTransport,
    credential: FirestoreCredential = .admin,
    retries: CallRetries = CallRetries(),
    makeID: @escaping @Sendable () -> String = { RandomID.make() }
  ) {
    self.database = DatabaseName(project: project, database: database)
    calls = FirestoreCalls(
      transport: transport,
      credential: credential,
      retries: retries,
      makeID: makeID
    )
  }

  private init(database: DatabaseName, calls: FirestoreCalls) {
    self.database = database
    self.calls = calls
  }

  /// The same database with the rights of someone else.
  ///
  /// With a user's token the access rules decide what is read and written.
  public func acting(as credential: FirestoreCredential) -> Firestore {
    var calls = calls
    calls.credential = credential
    return Firestore(database: database, calls: calls)
  }

  // MARK: References

  /// A collection by its path, such as `chats` or `chats/c1/messages`.
  ///
  /// Every slash separates: pass an id that comes from outside to a reference's `document(_:)`,
  /// which refuses slashes. A path that does not name a collection throws where it is used.
  public func collection(_ path: String) -> CollectionReference {
    CollectionReference(firestore: self, resourcePath: ResourcePath(slashSeparated: path))
  }

  /// A document by its path, such as `chats/c1`.
  ///
  /// Every slash separates, see `collection(_:)`.
  public func document(_ path: String) -> DocumentReference {
    DocumentReference(firestore: self, resourcePath: ResourcePath(slashSeparated: path))
  }

  /// A document by its full name, as reference values and events hold it.
  ///
  /// The document must be in this database; any other throws where it is used.
  public func document(_ name: DocumentName) -> DocumentReference {
    let path = name.database == database ? name.path : ResourcePath()
    return DocumentReference(firestore: self, resourcePath: path)
  }

  /// All collections with one id, wherever they are.
  public func collectionGroup(_ id: String) -> DocumentQuery {
    DocumentQuery(
      firestore: self,
      query: Query(database: database, collectionID: id, allDescendants: true)
    )
  }

  /// The collections at the root.
  ///
  /// Throws `FirestoreError`, as `DocumentReference.get()` does.
  public func listCollections() async throws -> [CollectionReference] {
    try await calls.listCollectionIDs(database: database, parent: ResourcePath())
      .map { collection($0) }
  }

  // MARK: Many documents

  /// Reads documents as of one moment, in the given order; missing ones have `exists` false.
  ///
  /// Throws `FirestoreError`, as `DocumentReference.get()` does.
  public func getAll(_ references: [DocumentReference]) async throws -> [DocumentSnapshot] {
    try await calls.get(references, of: self, transaction: nil)
  }

  /// An empty batch of writes that are committed together or not at all.
  public func batch() -> WriteBatch {
    WriteBatch(firestore: self)
  }
}
