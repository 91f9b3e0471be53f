public import FunctionsRuntime
public import PsstBackend

extension AppFunctions {
  /// Embeds every message that has no vector yet; for administrators.
  ///
  /// Embedding costs money, so the call only counts messages unless the order sets `dryRun: false`
  /// and `confirm`. The run can be killed and started again safely. Only one real run is active at
  /// a time.
  public var backfillEmbeddings: OnCall<BackfillOrder, BackfillReport> {
    .init(
      "backfillEmbeddings",
      callers: .claim("admin"),
      options: .init(
        memory: .mib512,
        timeout: .seconds(3600),
        secrets: Self.secrets
      )
    ) { request in
      let (order, isDry) = try request.data.checked()
      let logger = request.logger
      return try await administering {
        let report = try await services.embeddingBackfill.run(
          chatID: order.chatId,
          limit: order.limit,
          maxCostUSD: order.maxCostUSD,
          dryRun: isDry
        ) { report in
          logger.info("Backfill continues", metadata: report.metadata)
        }
        logger.log(end: report, of: "Backfill", metadata: services.modelMetadata)
        return report
      }
    }
  }
}
