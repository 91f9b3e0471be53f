public import FunctionsRuntime
import PsstModels
public import PsstBackend

extension AppFunctions {
  /// Removes the contacts that one run of the migration created; for administrators.
  ///
  /// Contacts that were changed since stay, and the reply lists them. The run is dry unless the
  /// order sets `dryRun: false` and `confirm`. Throws `not-found` if no contact belongs to the run.
  public var rollbackMigration: OnCall<RollbackMigrationOrder, RollbackReport> {
    .init(
      "rollbackMigration",
      callers: .claim("admin"),
      options: .init(memory: .mib512, timeout: .seconds(3600))
    ) { request in
      let isDry = try Self.isDry(
        request.data.dryRun,
        confirmedBy: request.data.confirm,
        RollbackMigrationOrder.confirmation
      )
      let run = try request.data.checkedRun()
      let logger = request.logger
      return try await administering {
        let report = try await services.rollback.run(run, dryRun: isDry) {
          logger.info("Rollback continues", metadata: Self.metadata($0))
        }
        logger.info("Rollback ended", metadata: Self.metadata(report))
        guard report.counts.removed + report.counts.kept > 0 else {
          throw CallableError(
            .notFound,
            "No contact is of the run \(run). Its id is in the reply and the log of the migration."
          )
        }
        return report
      }
    }
  }

  private static func metadata(_ report: RollbackReport) -> Logger.Metadata {
    [
      "migration.run": "\(report.run)", "rollback.dry": "\(report.dryRun)",
      "rollback.removed": "\(report.counts.removed)", "rollback.kept": "\(report.counts.kept)",
    ]
  }
}

/// The order for `rollbackMigration`.
public struct RollbackMigrationOrder: Codable, Sendable, Hashable {
  /// The id of the migration's run, from the reply of `migrateExistingChats`.
  public var run: String
  /// True to remove nothing; true if nil.
  public var dryRun: Bool?
  /// The word `rollback`, required for a real run.
  public var confirm: String?

  static let confirmation = "rollback"
  /// The most bytes that the security rules allow in a contact's source.
  private static let runBytesMax = 100

  /// Creates an order; by default a dry run.
  public init(run: String, dryRun: Bool? = nil, confirm: String? = nil) {
    self.run = run
    self.dryRun = dryRun
    self.confirm = confirm
  }

  /// Returns the run's id if it is valid.
  ///
  /// Otherwise throws `invalid-argument` with the reason.
  func checkedRun() throws -> String {
    // Contacts with this source were created by the trainers themselves.
    guard !run.isEmpty, run.utf8.count <= Self.runBytesMax, run != Client.trainerSource else {
      throw CallableError(.invalidArgument, "run must be the id of a run of migrateExistingChats.")
    }
    return run
  }
}
