import FirestoreClient
import PsstModels
import PsstServices

/// A rollback that removes the unchanged contacts of one run of the migration.
///
/// A contact counts as changed if its name or email address was changed, or if the trainer took it
/// over by setting the source to `trainer`. Messages update `lastContactedAt` automatically, which
/// does not count as a change. Each contact is removed in a transaction that checks it again, so
/// that no concurrent change is lost. No record of a removal is written, because the trainer did
/// not remove the client: the next migration creates the contact again if a chat still requires it.
public struct MigrationRollback: Sendable {
  private let firestore: Firestore
  private let documents: DocumentReader
  private let sleep: @Sendable (Duration) async throws -> Void
  private let clock: any Clock<Duration>

  /// Creates a rollback for a database.
  ///
  /// `sleep` waits between attempts, and `clock` is the clock of the lease.
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

  /// Removes the contacts of a run; a dry run only finds them.
  ///
  /// An unknown run has no contacts. `progress` is called regularly with the report so far. Throws
  /// `FirestoreError` if the database cannot be reached, and `LeaseError` for a real run during
  /// another run or a migration. Finished work is kept.
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
    let contacts = firestore.collectionGroup(Client.clients).where("source", .equal, run)
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

  /// Removes the contacts that are still unchanged, and returns the outcome of each.
  private func remove(
    _ contacts: [DocumentSnapshot],
    of run: String,
    _ clients: [User?]
  ) async throws -> [Outcome] {
    // The contacts that an unconfirmed commit may have removed.
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

  /// The outcome for a contact.
  private enum Outcome: Hashable {
    case removed
    /// The contact is kept, for the given reason.
    case kept(String)
    /// The contact does not, or no longer, belong to the run.
    case gone

    /// Decides on a contact; `client` is nil if the contact has no user document.
    init(_ contact: DocumentSnapshot, of run: String, client: User?) {
      guard contact["source"] == .string(run) else {
        self = .gone
        return
      }
      // A message changes only `lastContactedAt`.
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
  /// True if this is the path of a contact, not of another `clients` collection's document.
  fileprivate var isContact: Bool {
    let segments = path.split(separator: "/")
    return segments.count == 4 && segments[0] == Client.collection
      && segments[2] == Client.clients
  }
}

extension BackendServices {
  /// The rollback that removes the contacts created by a run of the migration.
  public var rollback: MigrationRollback {
    MigrationRollback(
      firestore: firestore,
      documents: documents,
      sleep: retries.sleep,
      clock: clock
    )
  }
}
