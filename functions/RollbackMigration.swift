public import FunctionsRuntime
import PsstModels
public import PsstServices

extension MessageFunctions {
  /// Removes the contacts that one run of the migration made; for administrators.
  ///
  /// Contacts that somebody has changed since stay, and the reply says which. The run is dry unless
  /// the order says otherwise twice. Answers `not-found` when no contact is of the run.
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
          logger.info("Rollback goes on", metadata: Self.metadata($0))
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
  /// The id of the migration's run, as its reply has it.
  public var run: String
  /// Whether to remove nothing; true unless given.
  public var dryRun: Bool?
  /// The word `rollback`, without which nothing is removed.
  public var confirm: String?

  static let confirmation = "rollback"
  /// The most bytes that the rules allow in a contact's source.
  private static let runBytesMax = 100

  /// An order.
  public init(run: String, dryRun: Bool? = nil, confirm: String? = nil) {
    self.run = run
    self.dryRun = dryRun
    self.confirm = confirm
  }

  /// The run, if it can be one; otherwise throws `invalid-argument` with what to change.
  func checkedRun() throws -> String {
    // Contacts with this source are the trainers' own.
    guard !run.isEmpty, run.utf8.count <= Self.runBytesMax, run != Contact.trainerSource else {
      throw CallableError(.invalidArgument, "run must be the id of a run of migrateExistingChats.")
    }
    return run
  }
}
