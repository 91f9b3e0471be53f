import FirestoreClient
import PsstModels
import PsstServices

/// A migration that gives every trainer the missing contacts of clients in common chats.
///
/// A contact is created only if there is none and the trainer has not removed the client, in a
/// transaction that reads both. Runs may therefore be repeated and killed, and no contact is
/// overwritten, duplicated, deleted or restored. Finished work is not repeated, so every run starts
/// from the beginning. A `Lease`, shared with the rollback, ensures that there is only one real run
/// at a time.
///
/// A run holds one page of documents in memory, and the people who share chats with one trainer.
public struct ChatMigration: Sendable {
  static let leaseName = "migration"

  let firestore: Firestore
  let documents: DocumentReader
  private let backup: any DatabaseBackup
  private let sleep: @Sendable (Duration) async throws -> Void
  private let clock: any Clock<Duration>

  static let pageSize = 300
  /// The number of contacts that are examined and written together.
  static let batchSize = 100
  /// The maximum number of people in chats with one trainer; more indicate an error in the data.
  private static let partnersMax = 100_000

  /// Creates a migration of a database, which makes a backup first.
  ///
  /// `sleep` waits between attempts, and `clock` is the clock of the lease.
  init(
    firestore: Firestore,
    documents: DocumentReader,
    backup: any DatabaseBackup,
    sleep: @escaping @Sendable (Duration) async throws -> Void,
    clock: any Clock<Duration>
  ) {
    self.firestore = firestore
    self.documents = documents
    self.backup = backup
    self.sleep = sleep
    self.clock = clock
  }

  /// Migrates the given trainers or all; a dry run only finds what would be migrated.
  ///
  /// `progress` is called at the start, and then regularly, with the report so far. Throws
  /// `FirestoreError` or `ServiceError` if the database or the backup cannot be reached, and
  /// `LeaseError` for a real run during another. Finished work is kept.
  public func run(
    trainerIDs: [String]? = nil,
    dryRun: Bool,
    progress: @escaping @Sendable (MigrationReport) -> Void = { _ in }
  ) async throws -> MigrationReport {
    let lease = Lease(Self.leaseName, in: firestore, clock: clock)
    let report = MigrationReport(dryRun: dryRun, run: lease.run)
    guard !dryRun else { return try await migrate(trainerIDs, report, progress) }
    return try await lease.hold {
      var report = report
      // The name ends with the run's id, so that two runs never write into one folder.
      report.backup = try await backup.backUp(named: "before-migration-\(report.run)")
      return try await migrate(trainerIDs, report, progress)
    }
  }

  private func migrate(
    _ trainerIDs: [String]?,
    _ report: MigrationReport,
    _ progress: @Sendable (MigrationReport) -> Void
  ) async throws -> MigrationReport {
    var run = Run(migration: self, report: report)
    progress(report)
    if let trainerIDs {
      try await run.trainers(trainerIDs)
    } else {
      try await run.trainers(progress)
      try await run.chatsWithoutTrainer()
    }
    return run.report
  }

  /// The state of one run.
  struct Run {
    let migration: ChatMigration
    var report: MigrationReport
    /// The malformed chats already reported, because a chat may be found for several members.
    private var malformed: Set<String> = []

    private var firestore: Firestore { migration.firestore }
    private var users: CollectionReference { firestore.collection(User.collection) }

    init(migration: ChatMigration, report: MigrationReport) {
      self.migration = migration
      self.report = report
    }

    // MARK: Trainers

    fileprivate mutating func trainers(
      _ progress: (MigrationReport) -> Void
    ) async throws {
      let query = users.query.select(User.migratedFields)
      try await query.pages(of: ChatMigration.pageSize) { page in
        for snapshot in page {
          if user(snapshot)?.effectiveRole != .client { try await trainer(snapshot) }
        }
        progress(report)
        return true
      }
    }

    fileprivate mutating func trainers(_ ids: [String]) async throws {
      // Duplicates are removed, and the order is that of a run for all trainers.
      for id in Set(ids).sorted() {
        try Task.checkCancellation()
        try await trainer(users.document(id).get())
      }
    }

    private mutating func trainer(_ snapshot: DocumentSnapshot) async throws {
      let path = snapshot.reference.path
      guard let user = user(snapshot) else { return report.skip(path, "there is no such user") }
      switch user.effectiveRole {
      case .client: return report.skip(path, "the user is a client, not a trainer")
      case nil: return report.skip(path, "the user's role is neither trainer nor client")
      case .trainer: break
      }
      if user.storedRole == nil { report.skip(path, "has no role; counts as a trainer") }
      report.counts.trainers += 1
      let partners = try await partners(of: snapshot.id)
      let ids = partners.keys.sorted()
      for start in stride(from: 0, to: ids.count, by: ChatMigration.batchSize) {
        let part = ids[start..<min(start + ChatMigration.batchSize, ids.count)]
        try await contacts(of: snapshot.id, with: Array(part), partners)
      }
    }

    /// Returns the people who share a chat with a trainer, with the start of the first chat.
    private mutating func partners(of uid: String) async throws -> [String: Timestamp] {
      var partners: [String: Timestamp] = [:]
      var isWhole = true
      let chats = firestore.collection(Chat.collection).where("members", .arrayContains, uid)
        .select(MigratedChat.fields)
      try await chats.pages(of: ChatMigration.pageSize) { page in
        for snapshot in page {
          let chat = MigratedChat(snapshot, migration.documents)
          reportFlaw(of: chat)
          for member in chat.members where member != uid {
            partners[member] = min(partners[member] ?? chat.createdAt, chat.createdAt)
          }
        }
        isWhole = partners.count <= ChatMigration.partnersMax
        return isWhole
      }
      if !isWhole {
        report.fail(
          users.document(uid).path,
          "shares chats with more than \(ChatMigration.partnersMax) people; the rest is left out"
        )
      }
      return partners
    }

    mutating func reportFlaw(of chat: MigratedChat) {
      guard let flaw = chat.flaw, malformed.insert(chat.path).inserted else { return }
      report.fail(chat.path, flaw)
    }

    /// Reads a user; nil if it does not exist or cannot be read.
    func user(_ snapshot: DocumentSnapshot) -> User? {
      migration.documents.read(snapshot, as: User.self)?.value
    }

    // MARK: Contacts

    private mutating func contacts(
      of trainerID: String,
      with ids: [String],
      _ since: [String: Timestamp]
    ) async throws {
      var wanted: [WantedContact] = []
      for member in try await firestore.getAll(ids.map { users.document($0) }) {
        let place = WantedContact.Place(trainerID: trainerID, clientID: member.id, in: firestore)
        switch MigrationStep(partner: user(member)) {
        case .nothing: break
        case .skip(let reason): report.skip(place.contact.path, reason)
        case .contact(let name, let email):
          let data = Client(
            clientId: member.id,
            displayName: name,
            email: email,
            addedAt: since[member.id] ?? member.readTime,
            source: report.run
          )
          wanted.append(WantedContact(place: place, data: data))
        }
      }
      guard !wanted.isEmpty else { return }
      if report.dryRun {
        let found = try await firestore.getAll(wanted.flatMap(\.place.references))
        record(wanted, states(of: wanted, found))
      } else {
        try await make(wanted)
      }
    }

    /// Creates the missing contacts.
    private mutating func make(_ wanted: [WantedContact]) async throws {
      do {
        let states = try await firestore.runTransaction(sleep: migration.sleep) { transaction in
          let found = try await transaction.getAll(wanted.flatMap(\.place.references))
          let states = self.states(of: wanted, found)
          for (contact, state) in zip(wanted, states) where state == .missing {
            try transaction.create(contact.place.contact, contact.data)
          }
          return states
        }
        record(wanted, states)
      } catch let error as FirestoreError where error.code == .invalidArgument {
        if wanted.count > 1 {
          // Each contact is written alone, to find the one that cannot be written.
          for contact in wanted { try await make([contact]) }
        } else {
          for contact in wanted { report.fail(contact.place.contact.path, error.message) }
        }
      }
    }

    private func states(
      of wanted: [WantedContact],
      _ found: [DocumentSnapshot]
    ) -> [WantedContact.State] {
      wanted.indices.map { index in
        WantedContact.State(
          contact: found[2 * index],
          removal: found[2 * index + 1],
          run: report.run
        )
      }
    }

    private mutating func record(_ wanted: [WantedContact], _ states: [WantedContact.State]) {
      for (contact, state) in zip(wanted, states) {
        let path = contact.place.contact.path
        switch state {
        case .missing, .made: report.create(MigratedContact(path: path, data: contact.data))
        case .existing: report.counts.existing += 1
        case .removed: report.skip(path, "the trainer has removed this client")
        }
      }
    }
  }
}

extension BackendServices {
  /// The migration that creates contacts for chats older than contacts.
  public var migration: ChatMigration {
    ChatMigration(
      firestore: firestore,
      documents: documents,
      backup: settings.backup.backup(over: http),
      sleep: retries.sleep,
      clock: clock
    )
  }
}
