import FirestoreClient
import PsstModels

extension User {
  /// The fields that a migration reads.
  static let migratedFields = ["role", "displayName", "email"]

  /// The user's name as a trainer's contact; nil when the user has neither name nor address.
  var contactName: String? {
    [displayName, email ?? ""].first { name in name.contains { !$0.isWhitespace } }
  }
}

/// The members of a chat, as a migration reads them.
struct MigratedChat: Sendable {
  /// The chat's place.
  var path: String
  /// The members, each once.
  var members: Set<String>
  /// When the chat began.
  var createdAt: Timestamp
  /// What is wrong with the members, or nil.
  var flaw: String?

  /// The fields read.
  static let fields = ["members", "createdAt"]

  init(_ snapshot: DocumentSnapshot, _ documents: DocumentReader) {
    let read = documents.read(snapshot, as: Chat.self)
    path = snapshot.reference.path
    members = Set(read?.value?.members ?? [])
    createdAt = read?.value?.createdAt ?? snapshot.createTime ?? snapshot.readTime
    flaw = (read?.error ?? read?.value?.unreadable.first)?.description
  }
}

/// What a migration does about a trainer and somebody they share a chat with.
enum MigrationStep: Hashable {
  /// There must be a contact with this name and address.
  case contact(name: String, email: String)
  /// There must be no contact, which is as it should be.
  case nothing
  /// There must be no contact, for this reason.
  case skip(String)

  /// Decides on a member; `partner` is nil when the member has no user.
  init(partner: User?) {
    guard let partner else {
      self = .skip("this member of the trainer's chats has no user")
      return
    }
    switch partner.effectiveRole {
    // An unknown role is reported at the user's own visit.
    case .trainer, nil: self = .nothing
    case .client:
      guard let name = partner.contactName else {
        self = .skip("the client has neither a name nor an address")
        return
      }
      self = .contact(name: name, email: partner.email ?? "")
    }
  }
}

/// A contact that there must be.
struct WantedContact: Sendable {
  var place: Place
  var data: Contact

  /// The places of a client among a trainer's contacts.
  struct Place: Sendable {
    /// The contact.
    var contact: DocumentReference
    /// The note that the trainer removed the client.
    var removal: DocumentReference

    init(trainerID: String, clientID: String, in firestore: Firestore) {
      contact = Contact.reference(in: firestore, trainerID: trainerID, clientID: clientID)
      removal = Contact.removalReference(in: firestore, trainerID: trainerID, clientID: clientID)
    }

    /// Both places, the contact's first.
    var references: [DocumentReference] { [contact, removal] }
  }

  /// What there is in the place of a wanted contact.
  enum State: Hashable {
    /// Nothing.
    case missing
    /// A contact that this run has made, without hearing of it.
    case made
    /// A contact, whoever made it.
    case existing
    /// A note that the trainer removed the client.
    case removed

    init(contact: DocumentSnapshot, removal: DocumentSnapshot, run: String) {
      switch (contact.exists, removal.exists) {
      case (true, _): self = contact["source"] == .string(run) ? .made : .existing
      case (false, true): self = .removed
      case (false, false): self = .missing
      }
    }
  }
}

extension DocumentQuery {
  /// All documents in the order of their names, one page at a time.
  ///
  /// `body` returns whether to go on.
  func pages(of size: Int, _ body: (QuerySnapshot) async throws -> Bool) async throws {
    let ordered = order(by: "__name__").limit(size)
    var page = try await ordered.get()
    while let last = page.last {
      try Task.checkCancellation()
      guard try await body(page), page.count == size else { return }
      page = try await ordered.start(after: last.reference).get()
    }
  }
}

extension Firestore {
  /// The most attempts of a transaction whose answer is lost.
  private static let lostAnswersMax = 5

  /// Runs a transaction, and runs it again when nobody knows whether it was committed.
  ///
  /// So `body` must do right by what an earlier commit of its own has left. `sleep` waits between
  /// the attempts. Throws as `Firestore.runTransaction` does, after five attempts in any case.
  func runTransaction<Output: Sendable>(
    sleep: (Duration) async throws -> Void,
    _ body: (Transaction) async throws -> Output
  ) async throws -> Output {
    var attempt = 1
    while true {
      do {
        return try await runTransaction(body)
      } catch let error as FirestoreError
        where error.mayHaveActed && attempt < Self.lostAnswersMax
      {
        try await sleep(.milliseconds(100) * (1 << attempt))
        attempt += 1
      }
    }
  }
}
