public import FunctionsRuntime
public import PsstBackend

extension AppFunctions {
  /// Reads every unread message for its client's profile; for administrators.
  ///
  /// Reading costs money, so the call only counts messages unless the order sets `dryRun: false`
  /// and `confirm`. The run can be killed and started again safely. Only one real run is active at
  /// a time. A run that would exceed the time limit of a call ends early, and its report says so.
  public var backfillProfiles: OnCall<BackfillOrder, BackfillReport> {
    .init(
      "backfillProfiles",
      callers: .claim("admin"),
      options: .init(
        memory: .mib512,
        timeout: .seconds(3600),
        secrets: ["OPENAI_API_KEY"]
      )
    ) { request in
      let (order, isDry) = try request.data.checked()
      let logger = request.logger
      return try await administering {
        let report = try await services.profileBackfill.run(
          chatID: order.chatId,
          limit: order.limit,
          maxCostUSD: order.maxCostUSD,
          dryRun: isDry
        ) { report in
          logger.info("Backfill of profiles continues", metadata: report.metadata)
        }
        logger.log(end: report, of: "Backfill of profiles")
        return report
      }
    }
  }
}
