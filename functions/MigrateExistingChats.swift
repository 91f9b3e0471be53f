public import FunctionsRuntime
import PsstModels
public import PsstServices

extension MessageFunctions {
  /// Gives trainers the missing contacts of clients they chat with; for administrators.
  ///
  /// It is for chats that began before there were contacts. The run is dry unless the order says
  /// otherwise twice. A run after a crash does what is left; `rollbackMigration` takes a run back.
  public var migrateExistingChats: OnCall<MigrateExistingChatsOrder, MigrationReport> {
    .init(
      "migrateExistingChats",
      callers: .claim("admin"),
      options: .init(memory: .mib512, timeout: .seconds(3600))
    ) { request in
      let isDry = try Self.isDry(
        request.data.dryRun,
        confirmedBy: request.data.confirm,
        MigrateExistingChatsOrder.confirmation
      )
      let trainerIDs = try request.data.checkedTrainerIDs()
      let logger = request.logger
      return try await administering {
        let report = try await services.migration.run(trainerIDs: trainerIDs, dryRun: isDry) {
          logger.info("Migration goes on", metadata: Self.metadata($0))
        }
        logger.info("Migration ended", metadata: Self.metadata(report))
        return report
      }
    }
  }

  private static func metadata(_ report: MigrationReport) -> Logger.Metadata {
    [
      "migration.run": "\(report.run)", "migration.dry": "\(report.dryRun)",
      "migration.trainers": "\(report.counts.trainers)",
      "migration.created": "\(report.counts.created)",
      "migration.existing": "\(report.counts.existing)",
      "migration.skipped": "\(report.counts.skipped)",
      "migration.errors": "\(report.counts.errors)",
    ]
  }
}

/// The order for `migrateExistingChats`.
public struct MigrateExistingChatsOrder: Codable, Sendable, Hashable {
  /// The trainers to migrate, at most 1000; all unless given.
  public var trainerIds: [String]?
  /// Whether to write nothing; true unless given.
  public var dryRun: Bool?
  /// The word `migrate`, without which nothing is written.
  public var confirm: String?

  static let confirmation = "migrate"
  private static let trainerIDsMax = 1000

  /// An order.
  public init(trainerIds: [String]? = nil, dryRun: Bool? = nil, confirm: String? = nil) {
    self.trainerIds = trainerIds
    self.dryRun = dryRun
    self.confirm = confirm
  }

  /// The trainers, if these can be ids; otherwise throws `invalid-argument` with what to change.
  func checkedTrainerIDs() throws -> [String]? {
    guard let trainerIds else { return nil }
    guard !trainerIds.isEmpty, trainerIds.count <= Self.trainerIDsMax else {
      throw CallableError(
        .invalidArgument,
        "trainerIds must be 1 to \(Self.trainerIDsMax) ids; leave it out for all trainers."
      )
    }
    guard trainerIds.allSatisfy(\.isUserID) else {
      throw CallableError(.invalidArgument, "trainerIds must be the ids of users.")
    }
    return trainerIds
  }
}
