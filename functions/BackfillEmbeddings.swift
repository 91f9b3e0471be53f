public import FunctionsRuntime
public import PsstServices

extension MessageFunctions {
  /// Embeds every message that has no vector yet; for administrators.
  ///
  /// Only counts, unless the order says `dryRun: false` and confirms it: embedding costs money.
  /// Safe to kill and to run again; there is one real run at a time.
  public var backfillEmbeddings: OnCall<BackfillEmbeddingsOrder, BackfillReport> {
    .init(
      "backfillEmbeddings",
      callers: .claim("admin"),
      options: .init(
        memory: .mib512,
        timeout: .seconds(3600),
        secrets: Self.secrets
      )
    ) { request in
      let isDry = try Self.isDry(
        request.data.dryRun,
        confirmedBy: request.data.confirm,
        BackfillEmbeddingsOrder.confirmation
      )
      let order = try request.data.checked()
      let logger = request.logger
      return try await administering {
        let report = try await services.backfill.run(
          chatID: order.chatId,
          limit: order.limit,
          maxCostUSD: order.maxCostUSD,
          dryRun: isDry
        ) { report in
          logger.info("Backfill goes on", metadata: Self.metadata(report))
        }
        logger.info(
          "Backfill ended",
          metadata: Self.metadata(report).merging(services.modelMetadata) { $1 }
        )
        return report
      }
    }
  }

  private static func metadata(_ report: BackfillReport) -> Logger.Metadata {
    [
      "backfill.dry": "\(report.dryRun)", "backfill.scanned": "\(report.scanned)",
      "backfill.missing": "\(report.missing)", "backfill.embedded": "\(report.embedded)",
      "backfill.failed": "\(report.failed)", "backfill.tokens": "\(report.tokens)",
      "backfill.stopped": "\(report.stopped ?? "no")",
    ]
  }
}

/// The order for `backfillEmbeddings`.
public struct BackfillEmbeddingsOrder: Codable, Sendable, Hashable {
  /// One chat to embed; all chats unless given.
  public var chatId: String?
  /// The most messages to embed; no limit unless given.
  public var limit: Int?
  /// Whether only to count; true unless given.
  public var dryRun: Bool?
  /// `backfill`, without which nothing is embedded.
  public var confirm: String?
  /// The most that embedding may cost, in US dollars; no limit unless given.
  public var maxCostUSD: Double?

  static let confirmation = "backfill"

  /// An order.
  public init(
    chatId: String? = nil,
    limit: Int? = nil,
    dryRun: Bool? = nil,
    confirm: String? = nil,
    maxCostUSD: Double? = nil
  ) {
    self.chatId = chatId
    self.limit = limit
    self.dryRun = dryRun
    self.confirm = confirm
    self.maxCostUSD = maxCostUSD
  }

  /// The order, if it makes sense; otherwise throws `invalid-argument` with what to change.
  func checked() throws -> BackfillEmbeddingsOrder {
    if let limit, limit < 1 {
      throw CallableError(.invalidArgument, "limit must be 1 or more.")
    }
    if let maxCostUSD, !(maxCostUSD.isFinite && maxCostUSD >= 0) {
      throw CallableError(.invalidArgument, "maxCostUSD must be a number of dollars, 0 or more.")
    }
    if let chatId, chatId.isEmpty || chatId.contains("/") {
      throw CallableError(.invalidArgument, "chatId must be the id of a chat.")
    }
    return self
  }
}
