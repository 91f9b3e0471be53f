import FirestoreClient
public import FunctionsRuntime
public import PsstServices

extension MessageFunctions {
  /// Gives trainers the contacts of clients they have had chats with since before there were
  /// contacts; for administrators.
  ///
  /// Dry unless told otherwise twice. Run again after a crash, or beside another run, it only does
  /// what is left.
  public var migrateExistingChats:
    some CloudFunction<CallableRequest<MigrateExistingChatsOrder>, MigrateExistingChatsReply>
  {
    onCall(
      "migrateExistingChats",
      MigrateExistingChatsOrder.self,
      callers: .administrators,
      options: FunctionOptions(memory: .mib512, timeout: .seconds(3600))
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

/// What `migrateExistingChats` is told.
public struct MigrateExistingChatsOrder: Codable, Sendable, Hashable {
  /// Whether to write nothing; so unless given.
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

/// What `migrateExistingChats` answers.
///
/// The lists hold the first few ten thousand entries, so that the reply stays below what a callable
/// may answer; `truncated` says that there were more, and `counts` how many.
public struct MigrateExistingChatsReply: Codable, Sendable, Hashable {
  /// Whether nothing was written.
  public var dryRun: Bool
  /// The contacts that this call wrote or would write.
  public var contacts: [MigratedContact]
  /// How many there were of each, in all.
  public var counts: MigrationReport.Counts
  /// What was left out, and users whose role had to be guessed.
  public var skips: [MigrationReport.Note]
  /// What is malformed or could not be written.
  public var errors: [MigrationReport.Note]
  /// Where the backup lies; null for a dry run.
  public var backup: String?
  /// How the database is at the end or, dry, would be.
  public var validation: MigrationValidation
  /// The trainer behind whom an unfinished run was taken up, else null.
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

  /// Writes every key, those without a value as null.
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
