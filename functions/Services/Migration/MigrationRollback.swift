import FirestoreClient
import PsstModels

/// Removes the contacts that one run of the migration made and nobody has touched since.
///
/// A contact is touched when somebody changed its name or address, or made it their own with the
/// source `trainer`. A message sets `lastContactedAt` by itself, which is nobody's decision about
/// the contact and keeps none. A contact is removed in a transaction that looks at it again, so that
/// no change at the same moment is lost. No note of a removal is left, because the trainer removed
/// nobody: the next migration makes the contact again, if a chat still calls for it.
public struct MigrationRollback: Sendable {
  private let firestore: Firestore
  private let documents: DocumentReader
  private let sleep: @Sendable (Duration) async throws -> Void
  private let clock: any Clock<Duration>

  /// A rollback in a database.
  ///
  /// `sleep` waits between attempts, and `clock` is that of the lease.
  init(
    firestore: Firestore,
    documents: DocumentReader,
    sleep: @escaping @Sendable (Duration) async throws -> Void,
    clock: any Clock<Duration>
  ) {
    self.firestore = firestore
    self.documents = documents
    self.sleep = sleep
    self.clock = clock
  }

  /// Removes the contacts of a run or, in a dry run, finds them; none for an unknown run.
  ///
  /// `progress` is called now and then with the report so far. Throws `FirestoreError` when the
  /// database cannot be reached, and `LeaseError` for a real run beside another or beside a
  /// migration; finished work is kept.
  public func run(
    _ run: String,
    dryRun: Bool,
    progress: @escaping @Sendable (RollbackReport) -> Void = { _ in }
  ) async throws -> RollbackReport {
    guard !dryRun else { return try await rollBack(run, dryRun: true, progress) }
    let lease = Lease(ChatMigration.leaseName, in: firestore, clock: clock)
    return try await lease.hold { try await rollBack(run, dryRun: false, progress) }
  }

  private func rollBack(
    _ run: String,
    dryRun: Bool,
    _ progress: @Sendable (RollbackReport) -> Void
  ) async throws -> RollbackReport {
    var report = RollbackReport(dryRun: dryRun, run: run)
    let contacts = firestore.collectionGroup(Contact.clients).where("source", .equal, run)
    try await contacts.pages(of: ChatMigration.batchSize) { page in
      let contacts = page.filter(\.reference.isContact)
      let users = firestore.collection(User.collection)
      let found = try await firestore.getAll(contacts.map { users.document($0.id) })
      let clients = found.map { documents.read($0, as: User.self)?.value }
      let outcomes =
        dryRun
        ? zip(contacts, clients).map { Outcome($0, of: run, client: $1) }
        : try await remove(contacts, of: run, clients)
      for (contact, outcome) in zip(contacts, outcomes) {
        switch outcome {
        case .removed: report.remove(contact.reference.path)
        case .kept(let reason): report.keep(contact.reference.path, reason)
        case .gone: break
        }
      }
      progress(report)
      return true
    }
    return report
  }

  /// Removes those of the contacts that are untouched by now.
  private func remove(
    _ contacts: [DocumentSnapshot],
    of run: String,
    _ clients: [User?]
  ) async throws -> [Outcome] {
    // The contacts that a commit may have removed although its answer was lost.
    var asked: Set<DocumentReference> = []
    return try await firestore.runTransaction(sleep: sleep) { transaction in
      let found = try await transaction.getAll(contacts.map(\.reference))
      return try zip(found, clients).map { contact, client in
        let outcome = Outcome(contact, of: run, client: client)
        if !contact.exists, asked.contains(contact.reference) { return .removed }
        if outcome == .removed {
          asked.insert(contact.reference)
          try transaction.delete(contact.reference)
        }
        return outcome
      }
    }
  }

  /// What becomes of a contact.
  private enum Outcome: Hashable {
    case removed
    /// It stays, for this reason.
    case kept(String)
    /// It is not, or no longer, one of the run.
    case gone

    /// Decides on a contact; `client` is its user, nil when there is none.
    init(_ contact: DocumentSnapshot, of run: String, client: User?) {
      guard contact["source"] == .string(run) else {
        self = .gone
        return
      }
      // What a message leaves behind differs from what was made in `lastContactedAt` alone.
      if contact.createTime == contact.updateTime {
        self = .removed
      } else if let client {
        let isAsMade =
          contact["displayName"] == client.contactName.map { .string($0) }
          && contact["email"] == .string(client.email ?? "")
        self = isAsMade ? .removed : .kept("it was changed: name or address is not the client's")
      } else {
        self = .kept("it was changed, and its client has no user to compare it with")
      }
    }
  }
}

extension DocumentReference {
  /// Whether this is `contacts/{trainerId}/clients/{clientId}` and no other `clients` collection's.
  fileprivate var isContact: Bool {
    let segments = path.split(separator: "/")
    return segments.count == 4 && segments[0] == Contact.collection
      && segments[2] == Contact.clients
  }
}
