import FirestoreClient
import PsstModels
import PsstServices

extension User {
  /// The fields that a migration reads.
  static let migratedFields = ["role", "displayName", "email"]

  /// The user's name as a trainer's contact; nil if the user has neither name nor email address.
  var contactName: String? {
    [displayName, email ?? ""].first { name in name.contains { !$0.isWhitespace } }
  }
}

/// A chat as a migration reads it.
struct MigratedChat: Sendable {
  /// The path of the chat.
  var path: String
  /// The distinct members.
  var members: Set<String>
  /// The time at which the chat began.
  var createdAt: Timestamp
  /// The problem with the members; nil if there is none.
  var flaw: String?

  static let fields = ["members", "createdAt"]

  init(_ snapshot: DocumentSnapshot, _ documents: DocumentReader) {
    let read = documents.read(snapshot, as: Chat.self)
    path = snapshot.reference.path
    members = Set(read?.value?.members ?? [])
    createdAt = read?.value?.createdAt ?? snapshot.createTime ?? snapshot.readTime
    flaw = (read?.error ?? read?.value?.unreadable.first)?.description
  }
}

/// The step of a migration for a trainer and another member of their chats.
enum MigrationStep: Hashable {
  /// Ensure that there is a contact with this name and email address.
  case contact(name: String, email: String)
  /// Create no contact, because none is needed.
  case nothing
  /// Create no contact, and report the given reason.
  case skip(String)

  /// Decides on a member; `partner` is nil if the member has no user document.
  init(partner: User?) {
    guard let partner else {
      self = .skip("this member of the trainer's chats has no user")
      return
    }
    switch partner.effectiveRole {
    // An unknown role is reported when the user is processed as a trainer.
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

/// A contact that must exist.
struct WantedContact: Sendable {
  var place: Place
  var data: Client

  /// The references of a client's documents below a trainer.
  struct Place: Sendable {
    /// The reference of the contact.
    var contact: DocumentReference
    /// The reference of the record that the trainer removed the client.
    var removal: DocumentReference

    init(trainerID: String, clientID: String, in firestore: Firestore) {
      contact = Client.reference(in: firestore, trainerID: trainerID, clientID: clientID)
      removal = Client.removalReference(in: firestore, trainerID: trainerID, clientID: clientID)
    }

    /// Both references, the contact's first.
    var references: [DocumentReference] { [contact, removal] }
  }

  /// The stored state of a wanted contact.
  enum State: Hashable {
    /// No contact and no removal exists.
    case missing
    /// This run created the contact, but its commit was not confirmed.
    case made
    /// A contact exists that this run did not create.
    case existing
    /// The trainer removed the client.
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
  /// Passes all documents to `body`, in the order of their names, one page at a time.
  ///
  /// `body` returns true to continue.
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
  /// The maximum number of attempts of a transaction with an unknown outcome.
  private static let lostAnswersMax = 5
  /// The delays between these attempts.
  private static let backOff = BackOff(initial: .milliseconds(200), maximum: .seconds(2))

  /// Runs a transaction, and repeats it if its outcome is unknown.
  ///
  /// An earlier attempt may have been committed, so `body` must handle its effects. `sleep` waits
  /// between the attempts. Throws as `Firestore.runTransaction` does, at the latest after five
  /// attempts.
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
        try await sleep(Self.backOff.delay(afterFailures: attempt))
        attempt += 1
      }
    }
  }
}
