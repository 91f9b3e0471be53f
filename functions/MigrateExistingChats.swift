public import FunctionsRuntime
import PsstModels
public import PsstBackend

extension AppFunctions {
  /// Creates the missing contacts of clients that trainers chat with; for administrators.
  ///
  /// The migration is for chats that are older than the contacts feature. The run is dry unless the
  /// order sets `dryRun: false` and
  /// `confirm`. A run after a crash does the remaining work. `rollbackMigration` undoes a run.
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
          logger.info("Migration continues", metadata: Self.metadata($0))
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
  /// The ids of the trainers to migrate, at most 1000; all trainers if nil.
  public var trainerIds: [String]?
  /// True to write nothing; true if nil.
  public var dryRun: Bool?
  /// The word `migrate`, required for a real run.
  public var confirm: String?

  static let confirmation = "migrate"
  private static let trainerIDsMax = 1000

  /// Creates an order; by default a dry run over all trainers.
  public init(trainerIds: [String]? = nil, dryRun: Bool? = nil, confirm: String? = nil) {
    self.trainerIds = trainerIds
    self.dryRun = dryRun
    self.confirm = confirm
  }

  /// Returns the ids of the trainers if they are valid.
  ///
  /// Otherwise throws `invalid-argument` with the reason.
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
