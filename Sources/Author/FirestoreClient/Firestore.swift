@_exported public import DocumentModel
import FirestoreProtos
import FirestoreWire
import GoogleAccess
import Identifiers
public import OutboundHTTP

/// A Firestore database, as used by a function or a server.
///
/// ```swift
/// let firestore = Firestore(environment: await FunctionsApp.environment())
/// let user: User = try await firestore.document("users/tina").get().data()
/// ```
///
/// It is a value, and copies share their connections. By default it has the access rights of the
/// server client, so security rules do not apply. Use `acting(as:)` for other rights.
public struct Firestore: Sendable {
  /// The project and id of the database.
  public let database: DatabaseName
  let calls: FirestoreCalls

  /// Creates a client that accesses a database over HTTP, according to the settings.
  ///
  /// Without `http` it creates a client of its own: an `OutboundClient`, or a `URLSessionTransport`
  /// on systems without libcurl, such as iOS.
  public init(
    _ settings: FirestoreSettings,
    http: (any HTTPTransport)? = nil
  ) {
    let http = http ?? PlatformTransport.make()
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

  /// Creates a client for the database that an environment describes.
  ///
  /// See `FirestoreSettings(environment:)` for the variables. Without `http` it creates a client of
  /// its own, as `init(_:http:)` does. A missing variable throws with the first call instead of
  /// here, because a functions binary also runs without any variables to write its manifest.
  public init(
    environment: [String: String],
    http: (any HTTPTransport)? = nil
  ) {
    do {
      let settings = try FirestoreSettings(environment: environment)
      self.init(settings, http: http ?? PlatformTransport.make(environment: environment))
    } catch {
      self.init(
        project: environment["GCLOUD_PROJECT"] ?? "unknown",
        transport: UnavailableTransport(reason: error)
      )
    }
  }

  /// Creates a client with another transport, such as one that calls an emulator directly.
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
      identity: .fixed(credential),
      retries: retries,
      makeID: makeID
    )
  }

  private init(database: DatabaseName, calls: FirestoreCalls) {
    self.database = database
    self.calls = calls
  }

  /// Returns the same database with other access rights.
  ///
  /// With a user's ID token the security rules decide what is read and written. The token expires
  /// after an hour; `acting(as:)` with an `IDTokenSource` renews it.
  public func acting(as credential: FirestoreCredential) -> Firestore {
    acting(as: .fixed(credential))
  }

  /// Returns the same database with the access rights of a signed-in user.
  ///
  /// The security rules decide what is read and written. The tokens of `source` are renewed as
  /// needed, also while a listener runs. Calls throw `FirestoreError`, and the errors of `source`.
  public func acting(as source: any IDTokenSource) -> Firestore {
    acting(as: .user(source))
  }

  private func acting(as identity: CallIdentity) -> Firestore {
    var calls = calls
    calls.identity = identity
    return Firestore(database: database, calls: calls)
  }

  // MARK: References

  /// Returns a reference to a collection by its path, such as `chats` or `chats/c1/messages`.
  ///
  /// Every slash separates segments. Pass an untrusted id to the `document(_:)` method of a
  /// reference instead, which refuses slashes. A path that does not name a collection throws where
  /// the reference is used.
  public func collection(_ path: String) -> CollectionReference {
    CollectionReference(firestore: self, resourcePath: ResourcePath(slashSeparated: path))
  }

  /// Returns a reference to a document by its path, such as `chats/c1`.
  ///
  /// Every slash separates segments; see `collection(_:)`. A path that does not name a document
  /// throws where the reference is used.
  public func document(_ path: String) -> DocumentReference {
    DocumentReference(firestore: self, resourcePath: ResourcePath(slashSeparated: path))
  }

  /// Returns a reference to a document by the path that its ids make.
  ///
  /// An id that contains a slash throws where the reference is used.
  public func document(_ path: some DocumentPath) -> DocumentReference {
    DocumentReference(firestore: self, resourcePath: path.documentPath)
  }

  /// Returns a reference to a document by its full resource name, as stored in values and events.
  ///
  /// A document of another database throws where the reference is used.
  public func document(_ name: DocumentName) -> DocumentReference {
    let path = name.database == database ? name.path : ResourcePath()
    return DocumentReference(firestore: self, resourcePath: path)
  }

  /// Returns a query for the documents of all collections with the same id, wherever they are.
  public func collectionGroup(_ id: String) -> DocumentQuery {
    DocumentQuery(
      firestore: self,
      query: Query(database: database, collectionID: id, allDescendants: true)
    )
  }

  /// Lists the collections at the root of the database.
  ///
  /// Throws `FirestoreError`, as `DocumentReference.get()` does.
  public func listCollections() async throws -> [CollectionReference] {
    try await calls.listCollectionIDs(database: database, parent: ResourcePath())
      .map { collection($0) }
  }

  //MARK: Multiple documents

  /// Reads documents as of one moment, in the given order.
  ///
  /// If a document does not exist, `exists` of its snapshot is false. Throws `FirestoreError`, as
  /// `DocumentReference.get()` does.
  public func getAll(_ references: [DocumentReference]) async throws -> [DocumentSnapshot] {
    try await calls.get(references, of: self, transaction: nil)
  }

  /// Returns an empty batch of writes, which are committed together or not at all.
  public func batch() -> WriteBatch {
    WriteBatch(firestore: self)
  }
}
