public import FirestoreClient
public import PsstModels
import Synchronization

/// The users of the app, as a signed-in user sees them.
///
/// Users that were read are kept for a minute, because the lists of an app ask for the same names
/// again and again.
public final class UserService: Sendable {
  private let firestore: Firestore
  private let uid: String
  private let documents: DocumentReader
  private let now: @Sendable () -> ContinuousClock.Instant
  private let cache = Mutex<[String: Known]>([:])

  private struct Known {
    var user: User
    var until: ContinuousClock.Instant
  }

  /// Creates a service for the user with the given uid, as whom `firestore` acts.
  public init(
    firestore: Firestore,
    uid: String,
    documents: DocumentReader = DocumentReader(),
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    self.firestore = firestore
    self.uid = uid
    self.documents = documents
    self.now = now
  }

  // MARK: Writing

  /// Creates the document of a user who has signed up.
  ///
  /// `AuthenticationService` does this with the sign-up; call it only for accounts that were made
  /// in another way. Throws `UserServiceError`, for example `documentAlreadyExists`.
  public func createUser(
    id: String,
    email: String,
    displayName: String,
    role: UserRole,
    photoURL: String? = nil
  ) async throws {
    guard let address = EmailAddress(email) else { throw UserServiceError.invalidEmail }
    guard let name = DisplayName(displayName) else { throw UserServiceError.invalidName }
    forget(id)
    try await UserServiceError.mapping {
      guard id.isUserID else { throw UserServiceError.permissionDenied }
      try await document(id).create(
        User.newFields(
          id: id,
          email: address.text,
          name: name.text,
          role: role,
          photoURL: photoURL
        )
      )
    }
  }

  /// Changes the name or the picture of the signed-in user; nil leaves a field as it is.
  ///
  /// An empty `photoURL` removes the picture. Throws `UserServiceError`.
  public func updateUser(displayName: String? = nil, photoURL: String? = nil) async throws {
    var fields: [String: FieldValue] = ["updatedAt": .serverTimestamp]
    if let displayName {
      guard let name = DisplayName(displayName) else { throw UserServiceError.invalidName }
      fields["displayName"] = .value(name.text)
    }
    if let photoURL { fields["photoURL"] = photoURL.isEmpty ? .delete : .value(photoURL) }
    forget(uid)
    try await UserServiceError.mapping { try await document(uid).update(fields) }
  }

  // MARK: Reading

  /// Returns a user; throws `UserServiceError`, for example `userNotFound`.
  public func getUser(_ id: String) async throws -> User {
    guard let user = try await getUsers([id])[id] else { throw UserServiceError.userNotFound }
    return user
  }

  /// Returns the existing users, by uid; users that are not cached are read in batches.
  ///
  /// Throws `UserServiceError`.
  public func getUsers(_ ids: some Collection<String> & Sendable) async throws -> [String: User] {
    var users: [String: User] = [:]
    var missing: Set<String> = []
    let time = now()
    cache.withLock { cache in
      for id in ids where id.isUserID {
        if let known = cache[id], known.until > time {
          users[id] = known.user
        } else {
          missing.insert(id)
        }
      }
    }
    guard !missing.isEmpty else { return users }
    let asked = missing.sorted()
    for start in stride(from: 0, to: asked.count, by: Self.batchSize) {
      let ids = asked[start..<min(start + Self.batchSize, asked.count)]
      let snapshots = try await UserServiceError.mapping {
        try await firestore.getAll(ids.map(document))
      }
      for snapshot in snapshots { users[snapshot.id] = keep(snapshot) }
    }
    return users
  }

  /// Finds the user with an address, without regard to case.
  ///
  /// Returns nil if nobody has it. Throws `UserServiceError`, in particular `invalidEmail`.
  public func getUserByEmail(_ email: String) async throws -> User? {
    guard let address = EmailAddress(email) else { throw UserServiceError.invalidEmail }
    // Old apps stored addresses as they were typed.
    let found = try await UserServiceError.mapping {
      try await firestore.collection(User.collection)
        .where("email", .in, Array(Set([address.text, address.typed])).sorted())
        .limit(Self.sameAddressMax).get()
    }
    return found.oldest.flatMap(keep)
  }

  /// The user with the given uid now and after every change; nil while there is none.
  public func observeUser(_ id: String) -> Updates<User?> {
    Updates(document(id).snapshots(), errors: UserServiceError.self) { self.keep($0) }
  }

  // MARK: Helpers

  private func document(_ id: String) -> DocumentReference {
    firestore.collection(User.collection).document(id)
  }

  /// Remembers and returns the user of a snapshot; one who does not exist is asked for again.
  private func keep(_ snapshot: DocumentSnapshot) -> User? {
    guard var user = documents.read(snapshot, as: User.self)?.value else {
      forget(snapshot.id)
      return nil
    }
    user.id = snapshot.id
    let known = Known(user: user, until: now() + Self.cacheTime)
    cache.withLock { cache in
      if cache.count >= Self.cacheMax { cache = [:] }
      cache[snapshot.id] = known
    }
    return user
  }

  private func forget(_ id: String) { cache.withLock { $0[id] = nil } }

  /// The time for which a user is not read again.
  private static let cacheTime: Duration = .seconds(60)
  /// The maximum number of users kept, less than a megabyte.
  private static let cacheMax = 2000
  /// The number of users read with one request.
  private static let batchSize = 300
  /// The rules let one user have an address, but old documents may share it.
  private static let sameAddressMax = 10
}

extension User {
  /// Returns the fields of a new user's document.
  static func newFields(
    id: String,
    email: String,
    name: String,
    role: UserRole,
    photoURL: String? = nil
  ) -> [String: FieldValue] {
    var fields: [String: FieldValue] = [
      "id": .value(id), "uid": .value(id), "email": .value(email), "displayName": .value(name),
      "role": .value(role), "createdAt": .serverTimestamp, "updatedAt": .serverTimestamp,
    ]
    if let photoURL { fields["photoURL"] = .value(photoURL) }
    return fields
  }
}
