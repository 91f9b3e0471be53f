import FirestoreClient
public import FunctionsRuntime
public import PsstServices

extension MessageFunctions {
  /// Gives trainers the missing contacts of clients they chat with; for administrators.
  ///
  /// It is for chats that began before there were contacts. The run is dry unless told otherwise
  /// twice. A run after a crash, or beside another run, only does what is left.
  public var migrateExistingChats: OnCall<MigrateExistingChatsOrder, MigrateExistingChatsReply> {
    .init(
      "migrateExistingChats",
      callers: .claim("admin"),
      options: .init(memory: .mib512, timeout: .seconds(3600))
    ) { request in
      let isDryRun = try request.data.isDryRun()
      let logger = request.logger
      do {
        let report = try await services.migration.run(dryRun: isDryRun) { counts in
          logger.info("Migration goes on", metadata: Self.metadata(counts))
        }
        logger.info(
          "Migration ended",
          metadata: Self.metadata(report.counts).merging([
            "migration.dry": "\(isDryRun)", "migration.valid": "\(report.validation.ok)",
          ]) { $1 }
        )
        return MigrateExistingChatsReply(report)
      } catch let error as ServiceError {
        throw error.administrationError
      } catch let error as FirestoreError {
        logger.error("Migration stopped", metadata: ["reason": "\(error)"])
        throw error.interruptionError
      }
    }
  }

  private static func metadata(_ counts: MigrationReport.Counts) -> Logger.Metadata {
    [
      "migration.trainers": "\(counts.trainers)", "migration.created": "\(counts.created)",
      "migration.existing": "\(counts.existing)", "migration.skipped": "\(counts.skipped)",
      "migration.errors": "\(counts.errors)",
    ]
  }
}

/// The order for `migrateExistingChats`.
public struct MigrateExistingChatsOrder: Codable, Sendable, Hashable {
  /// Whether to write nothing; true unless given.
  public var dryRun: Bool?
  /// The word `migrate`, without which nothing is written.
  public var confirm: String?

  /// An order.
  public init(dryRun: Bool? = nil, confirm: String? = nil) {
    self.dryRun = dryRun
    self.confirm = confirm
  }

  /// Whether to write nothing; throws `invalid-argument` for a real run that is not confirmed.
  func isDryRun() throws -> Bool {
    guard dryRun == false else { return true }
    guard confirm == "migrate" else {
      throw CallableError(
        .invalidArgument,
        #"A real run must be confirmed: send {"dryRun": false, "confirm": "migrate"}."#
      )
    }
    return false
  }
}

/// The answer of `migrateExistingChats`.
///
/// The lists hold the first few ten thousand entries, so that the reply stays below what a callable
/// may answer; `truncated` says that there were more, and `counts` how many.
public struct MigrateExistingChatsReply: Codable, Sendable, Hashable {
  /// Whether nothing was written.
  public var dryRun: Bool
  /// The contacts that this call wrote or would write.
  public var contacts: [MigratedContact]
  /// The full count of each kind.
  public var counts: MigrationReport.Counts
  /// What was left out, and users whose role had to be guessed.
  public var skips: [MigrationReport.Note]
  /// What is malformed or could not be written.
  public var errors: [MigrationReport.Note]
  /// The place of the backup; null for a dry run.
  public var backup: String?
  /// The state of the database at the end or, for a dry run, the state it would have.
  public var validation: MigrationValidation
  /// The trainer after whom an unfinished run was resumed; null if none was.
  public var resumedAfter: String?
  /// Whether one of the lists lacks entries.
  public var truncated: Bool

  init(_ report: MigrationReport) {
    dryRun = report.isDryRun
    contacts = report.contacts.elements
    counts = report.counts
    skips = report.skips.elements
    errors = report.errors.elements
    backup = report.backup
    validation = report.validation
    resumedAfter = report.resumedAfter
    truncated = report.isTruncated
  }

  /// Writes every key, with null for a missing value.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(dryRun, forKey: .dryRun)
    try container.encode(contacts, forKey: .contacts)
    try container.encode(counts, forKey: .counts)
    try container.encode(skips, forKey: .skips)
    try container.encode(errors, forKey: .errors)
    try container.encode(backup, forKey: .backup)
    try container.encode(validation, forKey: .validation)
    try container.encode(resumedAfter, forKey: .resumedAfter)
    try container.encode(truncated, forKey: .truncated)
  }

  private enum CodingKeys: String, CodingKey {
    case dryRun, contacts, counts, skips, errors, backup, validation, resumedAfter, truncated
  }
}
