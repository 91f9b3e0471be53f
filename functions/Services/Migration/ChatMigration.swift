public import FirestoreClient
import PsstModels

/// Gives every trainer the missing contacts of the clients they share a chat with.
///
/// A contact is written only where there is none, each by a write that fails otherwise: so runs may
/// be repeated, killed and run beside each other, and nothing is overwritten, doubled or deleted. A
/// run notes the last trainer it has done; the next run begins after that trainer, but looks at all
/// the others too, so that its report is about the whole database.
///
/// Holds one page of documents at a time, and the people that one trainer shares chats with.
public struct ChatMigration: Sendable {
  /// The name of the checkpoint.
  public static let name = "migrateExistingChats"

  let firestore: Firestore
  let documents: DocumentReader
  private let backup: any DatabaseBackup
  private let sleep: @Sendable (Duration) async throws -> Void

  static let pageSize = 300
  /// Contacts that are looked at, and written, together.
  private static let batchSize = 100
  /// The most partners of a trainer; more than this is a fault in the data.
  private static let partnersMax = 100_000
  private static let attemptsMax = 5

  /// A migration of a database, after a backup.
  public init(
    firestore: Firestore,
    documents: DocumentReader,
    backup: any DatabaseBackup,
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    self.firestore = firestore
    self.documents = documents
    self.backup = backup
    self.sleep = sleep
  }

  /// Migrates or, in a dry run, finds what would be migrated.
  ///
  /// `progress` is called now and then with the counts so far. Throws `FirestoreError` or
  /// `ServiceError` when the database or the backup cannot be reached; finished work is then kept,
  /// and the next run continues after it.
  public func run(
    dryRun: Bool,
    progress: @Sendable (MigrationReport.Counts) -> Void = { _ in }
  ) async throws -> MigrationReport {
    var run = Run(
      migration: self,
      keeper: try await CheckpointKeeper(Self.name, in: firestore, ignoring: dryRun),
      report: MigrationReport(isDryRun: dryRun)
    )
    if !dryRun { try await run.backUp(backup) }
    try await run.trainers(progress)
    try await run.validate()
    if !dryRun { try await run.keeper.finish(counts: run.checkpointCounts) }
    return run.report
  }

  /// One run in progress.
  struct Run {
    let migration: ChatMigration
    var keeper: CheckpointKeeper
    var report: MigrationReport

    private var firestore: Firestore { migration.firestore }
    private var users: CollectionReference { firestore.collection(User.collection) }

    init(migration: ChatMigration, keeper: CheckpointKeeper, report: MigrationReport) {
      self.migration = migration
      self.keeper = keeper
      self.report = report
    }

    var checkpointCounts: [String: Int] {
      [
        "trainers": report.counts.trainers, "created": report.counts.created,
        "existing": report.counts.existing,
      ]
    }

    mutating func backUp(_ backup: any DatabaseBackup) async throws {
      // The run's id ends the name: two runs never write into one folder.
      report.backup = try await backup.backUp(named: "before-\(ChatMigration.name)-\(keeper.run)")
    }

    // MARK: Trainers

    /// Visits all trainers once, beginning after the trainer where an earlier run ended.
    mutating func trainers(_ progress: (MigrationReport.Counts) -> Void) async throws {
      let start = keeper.cursor.map { firestore.document($0) }
      report.resumedAfter = keeper.cursor
      try await trainers(after: start, upTo: nil, progress)
      if let start { try await trainers(after: nil, upTo: start, progress) }
    }

    private mutating func trainers(
      after: DocumentReference?,
      upTo: DocumentReference?,
      _ progress: (MigrationReport.Counts) -> Void
    ) async throws {
      var query = users.query.select(User.migratedFields)
      if let upTo { query = query.where("__name__", .lessThanOrEqual, upTo) }
      try await query.pages(of: ChatMigration.pageSize, after: after) { page in
        for snapshot in page {
          guard let user = user(snapshot) else { continue }
          switch user.effectiveRole {
          case .client: continue
          case nil:
            report.skip(snapshot.reference.path, "the user's role is neither trainer nor client")
            continue
          case .trainer where user.role == nil:
            report.skip(snapshot.reference.path, "has no role; counts as a trainer")
          case .trainer: break
          }
          try await trainer(snapshot.id)
          report.counts.trainers += 1
          try await keeper.save(cursor: snapshot.reference.path, counts: checkpointCounts)
        }
        progress(report.counts)
        return true
      }
    }

    private mutating func trainer(_ uid: String) async throws {
      let partners = try await partners(of: uid)
      let ids = partners.keys.sorted()
      for start in stride(from: 0, to: ids.count, by: ChatMigration.batchSize) {
        let part = ids[start..<min(start + ChatMigration.batchSize, ids.count)]
        try await contacts(of: uid, with: Array(part), partners)
      }
    }

    /// The people who share a chat with a trainer, and when the first of these chats began.
    private mutating func partners(of uid: String) async throws -> [String: Timestamp] {
      var partners: [String: Timestamp] = [:]
      var isWhole = true
      let chats = firestore.collection(Chat.collection).where("members", .arrayContains, uid)
        .select(MigratedChat.fields)
      try await chats.pages(of: ChatMigration.pageSize) { page in
        for snapshot in page {
          let chat = MigratedChat(snapshot, migration.documents)
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

    private mutating func contacts(
      of trainerID: String,
      with ids: [String],
      _ since: [String: Timestamp]
    ) async throws {
      let references = ids.map { contact(trainerID, $0) }
      let snapshots = try await firestore.getAll(ids.map { users.document($0) } + references)
      var missing: [MigratedContact] = []
      for (index, id) in ids.enumerated() {
        let path = references[index].path
        switch MigrationStep(partner: user(snapshots[index])) {
        case .nothing: break
        case .skip(let reason): report.skip(path, reason)
        case .contact(let name, let email):
          guard !snapshots[ids.count + index].exists else {
            report.counts.existing += 1
            continue
          }
          let addedAt = since[id] ?? snapshots[index].readTime
          missing.append(
            MigratedContact(
              path: path,
              data: Contact(clientId: id, displayName: name, email: email, addedAt: addedAt)
            )
          )
        }
      }
      if report.isDryRun {
        for contact in missing { report.create(contact) }
      } else if !missing.isEmpty {
        try await keeper.claim(backup: report.backup)
        try await create(missing)
      }
    }

    /// A user; nil when there is none.
    func user(_ snapshot: DocumentSnapshot) -> User? {
      migration.documents.read(snapshot, as: User.self)?.value
    }

    func contact(_ trainerID: String, _ clientID: String) -> DocumentReference {
      Contact.reference(in: firestore, trainerID: trainerID, clientID: clientID)
    }

    // MARK: Writing

    /// Writes contacts that nobody else has meanwhile written.
    private mutating func create(_ contacts: [MigratedContact]) async throws {
      var contacts = contacts
      for attempt in 1...ChatMigration.attemptsMax where !contacts.isEmpty {
        do {
          var batch = firestore.batch()
          for contact in contacts {
            try batch.create(firestore.document(contact.path), contact.data)
          }
          try await batch.commit()
          for contact in contacts { report.create(contact) }
          return
        } catch let error as FirestoreError where error.code == .invalidArgument {
          return try await createOneByOne(contacts, error)
        } catch let error as FirestoreError where Self.mayHaveWritten(error) {
          contacts = try await stillMissing(contacts)
          guard attempt < ChatMigration.attemptsMax || contacts.isEmpty else { throw error }
          if error.code != .alreadyExists {
            try await migration.sleep(.milliseconds(100) * (1 << attempt))
          }
        }
      }
    }

    /// Writes one contact at a time, to find the one that cannot be written.
    private mutating func createOneByOne(
      _ contacts: [MigratedContact],
      _ error: FirestoreError
    ) async throws {
      guard contacts.count > 1 else {
        for contact in contacts { report.fail(contact.path, error.message) }
        return
      }
      for contact in contacts { try await create([contact]) }
    }

    private static func mayHaveWritten(_ error: FirestoreError) -> Bool {
      switch error.code {
      case .alreadyExists, .aborted, .unavailable, .deadlineExceeded, .internal, .unknown: true
      default: false
      }
    }

    /// The contacts that a failed batch has left to write; counts those that exist by now.
    private mutating func stillMissing(
      _ contacts: [MigratedContact]
    ) async throws -> [MigratedContact] {
      let snapshots = try await firestore.getAll(contacts.map { firestore.document($0.path) })
      var missing: [MigratedContact] = []
      for (contact, snapshot) in zip(contacts, snapshots) {
        if !snapshot.exists {
          missing.append(contact)
        } else if try snapshot.data(as: Lenient<Contact>.self).value == contact.data {
          // The contact is this run's own, although the answer was lost, or an equal one of a
          // parallel run. An unreadable contact is somebody else's.
          report.create(contact)
        } else {
          report.counts.existing += 1
        }
      }
      return missing
    }
  }
}
