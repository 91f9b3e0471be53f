public import FirestoreClient
import Logging
public import PsstModels
import Synchronization

/// The contacts of the signed-in trainer: clients and prospects.
///
/// The access rules let only the trainer read and write them. A client gets `unauthorized`, but may
/// ask whether they are a contact.
public struct ContactService: Sendable {
  private let firestore: Firestore
  private let uid: String
  private let users: UserService
  private let functions: CallableClient
  private let documents: DocumentReader
  private let searched: SearchedContacts

  /// Creates a service for the user with the given uid, as whom `firestore` and `functions` act.
  public init(
    firestore: Firestore,
    uid: String,
    users: UserService,
    functions: CallableClient,
    documents: DocumentReader = DocumentReader(),
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    self.firestore = firestore
    self.uid = uid
    self.users = users
    self.functions = functions
    self.documents = documents
    searched = SearchedContacts(now: now)
  }

  // MARK: Clients

  /// Adds the user with an address as a client, including one the trainer removed earlier.
  ///
  /// Throws `ContactError`, for example `alreadyExists`.
  @discardableResult
  public func addClient(email: String) async throws -> Client {
    let user = try await client(email: email)
    return try await changing {
      try await add(user)
    }
  }

  /// Removes a client, who can then read the common chat but not write to it.
  ///
  /// A record of the removal keeps migrations from adding the client again. Throws `ContactError`,
  /// for example `clientNotFound`.
  public func removeClient(clientId: String) async throws {
    try await changing {
      guard clientId.isUserID else { throw ContactError.clientNotFound }
      var batch = firestore.batch()
      try batch.delete(reference(clientId), .exists)
      try batch.set(removal(clientId), ["removedAt": .serverTimestamp])
      try await batch.commit()
    }
  }

  /// Returns the clients, those added last first, with the names of their profiles.
  ///
  /// Names are at most a minute old, as `UserService` keeps them. The clients beyond the first 1000
  /// have the names that they had when they were added. Throws `ContactError`.
  public func getClients() async throws -> [Client] {
    try await ContactError.mapping { try await clients(in: try await clientsQuery.get()) }
  }

  /// The clients now and after every change of a contact, those added last first.
  ///
  /// They have the names that `getClients()` gives them.
  public func observeClients() -> Updates<[Client]> {
    Updates(clientsQuery.snapshots(), errors: ContactError.self) { try await clients(in: $0) }
  }

  /// Returns true if the client is a contact of the trainer; the user is one of the two.
  ///
  /// A client cannot read contacts, and asks a function. Throws `ContactError`, in particular
  /// `unauthorized` for other people's relation.
  public func validateRelationship(trainerId: String, clientId: String) async throws -> Bool {
    try await ContactError.mapping {
      guard trainerId.isUserID, clientId.isUserID else { return false }
      if trainerId == uid { return try await reference(clientId).get().exists }
      guard clientId == uid else { throw ContactError.unauthorized }
      let reply: ValidateRelationshipReply = try await functions.call(
        "validateRelationship",
        ValidateRelationshipRequest(trainerId: trainerId, clientId: clientId)
      )
      return reply.isContact
    }
  }

  // MARK: Prospects

  /// Adds a person who has no account yet.
  ///
  /// Throws `ContactError`, for example `invalidName`.
  @discardableResult
  public func addProspect(name: String) async throws -> Prospect {
    guard let name = DisplayName(name) else { throw ContactError.invalidName }
    return try await changing {
      let reference = collection(Prospect.collection).document()
      let email = Self.placeholderEmail(of: name)
      var batch = firestore.batch()
      try batch.create(
        reference,
        [
          "id": .value(reference.id), "prospectId": .value(reference.id),
          "displayName": .value(name.text), "placeholderEmail": .value(email),
          "addedAt": .serverTimestamp,
        ]
      )
      let result = try await batch.commit()
      return Prospect(
        id: reference.id,
        displayName: name.text,
        placeholderEmail: email,
        addedAt: result.writeResults.first?.serverTime ?? result.commitTime
      )
    }
  }

  /// Makes a prospect a client, once the person has signed up with an address.
  ///
  /// The client is added and the prospect marked as converted, both or neither. A repeated call
  /// with the same address returns the same client. Throws `ContactError`: `prospectNotFound` also
  /// for a prospect already converted to a different client, and `alreadyExists` for the address of
  /// a client who was not this prospect.
  @discardableResult
  public func upgradeProspectToClient(
    prospectId: String,
    email: String
  ) async throws -> Client {
    let user = try await client(email: email)
    guard prospectId.isDocumentID else { throw ContactError.prospectNotFound }
    let prospect = collection(Prospect.collection).document(prospectId)
    return try await changing {
      for _ in 0..<Self.attemptsMax {
        let snapshots = try await firestore.getAll([prospect, reference(user.id)])
        let (stored, contact) = (snapshots[0], snapshots[1])
        guard stored.exists else { throw ContactError.prospectNotFound }
        switch stored["convertedToClientId"] {
        case nil, .null: break
        case .string(user.id):
          if let client = client(in: contact) { return client }
        default: throw ContactError.prospectNotFound
        }
        guard !contact.exists else { throw ContactError.alreadyExists }
        do {
          return try await add(user) { batch in
            try batch.update(
              prospect,
              ["convertedToClientId": .value(user.id)],
              lastUpdated: stored.updateTime
            )
          }
        } catch let error as FirestoreError {
          // Another upgrade was faster, or this one was made and its confirmation lost.
          guard [.failedPrecondition, .alreadyExists, .aborted].contains(error.code) else {
            throw error
          }
        }
      }
      throw ContactError.networkError
    }
  }

  /// Deletes a prospect; throws `ContactError`, for example `prospectNotFound`.
  public func deleteProspect(prospectId: String) async throws {
    try await changing {
      guard prospectId.isDocumentID else { throw ContactError.prospectNotFound }
      do {
        try await collection(Prospect.collection).document(prospectId).delete(.exists)
      } catch let error as FirestoreError where error.code == .notFound {
        throw ContactError.prospectNotFound
      }
    }
  }

  /// Returns the prospects, those added last first, without those that have become clients.
  ///
  /// Throws `ContactError`.
  public func getProspects() async throws -> [Prospect] {
    try await ContactError.mapping { prospects(in: try await prospectsQuery.get()) }
  }

  /// The prospects now and after every change, those added last first.
  public func observeProspects() -> Updates<[Prospect]> {
    Updates(prospectsQuery.snapshots(), errors: ContactError.self) { prospects(in: $0) }
  }

  // MARK: Search

  /// Returns the clients and prospects whose name contains every word of the query.
  ///
  /// Case, accents and width do not matter. A blank query returns all, and names that begin with
  /// the query come first. The contacts are read at most every five seconds, so that a search can
  /// follow each letter that the trainer types; own changes count at once. Throws `ContactError`.
  /// An app that observes its contacts can search them with `ContactSearch` instead.
  public func searchContacts(query: String) async throws -> [any Contact] {
    let contacts = try await searched.contacts {
      async let clients = getClients()
      async let prospects = getProspects()
      return try await clients + prospects
    }
    return ContactSearch(query).matches(in: contacts)
  }

  // MARK: Helpers

  /// Makes changes as the trainer; the next search reads the contacts again, whatever happens.
  private func changing<Output>(_ changes: () async throws -> Output) async throws -> Output {
    defer { searched.forget() }
    return try await ContactError.mapping(changes)
  }

  private func client(email: String) async throws -> User {
    let user = try await ContactError.mapping {
      do {
        return try await users.getUserByEmail(email)
      } catch UserServiceError.invalidEmail {
        throw ContactError.invalidEmail
      }
    }
    guard let user else { throw ContactError.userNotFound }
    guard user.id != uid else { throw ContactError.ownAddress }
    guard user.effectiveRole == .client else { throw ContactError.notAClient }
    return user
  }

  /// Writes a new contact together with other changes.
  private func add(
    _ user: User,
    with changes: (inout WriteBatch) throws -> Void = { _ in }
  ) async throws -> Client {
    let email = user.email ?? ""
    guard let name = DisplayName(stored: user.displayName, or: email) else {
      throw ContactError.userNotFound
    }
    var batch = firestore.batch()
    try batch.create(
      reference(user.id),
      [
        "id": .value(user.id), "clientId": .value(user.id), "displayName": .value(name.text),
        "email": .value(email), "addedAt": .serverTimestamp,
        "source": .value(Client.trainerSource),
      ]
    )
    try batch.delete(removal(user.id))
    try changes(&batch)
    let result = try await batch.commit()
    return Client(
      clientId: user.id,
      displayName: name.text,
      email: email,
      addedAt: result.writeResults.first?.serverTime ?? result.commitTime,
      source: Client.trainerSource
    )
  }

  private func collection(_ name: String) -> CollectionReference {
    firestore.collection(Client.collection).document(uid).collection(name)
  }

  private func reference(_ clientID: String) -> DocumentReference {
    Client.reference(in: firestore, trainerID: uid, clientID: clientID)
  }

  private func removal(_ clientID: String) -> DocumentReference {
    Client.removalReference(in: firestore, trainerID: uid, clientID: clientID)
  }

  private var clientsQuery: DocumentQuery {
    collection(Client.clients).order(by: "addedAt", descending: true).limit(Self.contactsMax)
  }

  private var prospectsQuery: DocumentQuery {
    collection(Prospect.collection).order(by: "addedAt", descending: true)
      .limit(Self.contactsMax)
  }

  private func clients(in snapshot: QuerySnapshot) async throws -> [Client] {
    var clients = snapshot.compactMap(client)
    do {
      let profiles = try await users.getUsers(clients.prefix(Self.profilesMax).map(\.id))
      for index in clients.indices {
        guard let profile = profiles[clients[index].id],
          let name = DisplayName(stored: profile.displayName)
        else { continue }
        clients[index].displayName = name.text
      }
    } catch let error as UserServiceError {
      // The list is shown with the names that the contacts have.
      Logger.current.warning(
        "The profiles of clients cannot be read",
        metadata: ["reason": "\(error)"]
      )
    }
    return clients
  }

  private func client(in snapshot: DocumentSnapshot) -> Client? {
    var client = documents.read(snapshot, as: Client.self)?.value
    client?.id = snapshot.id
    return client
  }

  private func prospects(in snapshot: QuerySnapshot) -> [Prospect] {
    snapshot.compactMap { snapshot in
      var prospect = documents.read(snapshot, as: Prospect.self)?.value
      prospect?.id = snapshot.id
      return prospect?.convertedToClientId == nil ? prospect : nil
    }
  }

  /// Returns a prospect's placeholder address, such as
  /// `prospect-anna-smith@psst.app`.
  static func placeholderEmail(of name: DisplayName) -> String {
    let words = ContactSearch.folded(name.text)
      .split { !$0.isLetter && !$0.isNumber }
      .joined(separator: "-")
    return "prospect-\(words.isEmpty ? "unnamed" : words)@psst.app"
  }

  /// The maximum number of clients, and of prospects, in a list.
  private static let contactsMax = 10_000
  /// The maximum number of profiles read for a list, in a few requests.
  private static let profilesMax = 1000
  /// The number of times an upgrade is tried while others change the same prospect.
  private static let attemptsMax = 5
}

/// The contacts of the last search, for a few seconds.
private final class SearchedContacts: Sendable {
  private struct State {
    var contacts: [any Contact]?
    var until: ContinuousClock.Instant?
    /// The number of changes, by which a list that was read before a change is not kept.
    var changes = 0
  }

  private let state = Mutex(State())
  private let now: @Sendable () -> ContinuousClock.Instant

  init(now: @escaping @Sendable () -> ContinuousClock.Instant) {
    self.now = now
  }

  func contacts(_ read: () async throws -> [any Contact]) async throws -> [any Contact] {
    let (known, changes) = state.withLock { state in
      let isKnown = state.until.map { $0 > now() } ?? false
      return (isKnown ? state.contacts : nil, state.changes)
    }
    if let known { return known }
    let contacts = try await read()
    state.withLock { state in
      guard state.changes == changes else { return }
      state.contacts = contacts
      state.until = now() + Self.lifetime
    }
    return contacts
  }

  func forget() {
    state.withLock { state in
      state.contacts = nil
      state.until = nil
      state.changes += 1
    }
  }

  private static let lifetime: Duration = .seconds(5)
}
