public import FunctionsRuntime
public import PsstServices

extension MessageFunctions {
  /// Reads every message for its client's profile that was not read yet; for administrators.
  ///
  /// Only counts, unless the order says `dryRun: false` and confirms it: reading costs money. Safe
  /// to kill and to run again; there is one real run at a time. A run that takes longer than a call
  /// may ends and says so.
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
          logger.info("Backfill of profiles goes on", metadata: report.metadata)
        }
        logger.log(end: report, of: "Backfill of profiles")
        return report
      }
    }
  }
}
